"""Turns a block packed with LZ4 into its content, with the package `lz4` where it is installed."""

from __future__ import annotations

_SHORTEST_MATCH = 4
_LONG = 15


def unpack_lz4(packed: memoryview, size_bytes: int) -> bytes | None:
    """Return what the block unpacks to, at most `size_bytes`; None where it is no such block."""
    try:
        import lz4.block
    except ImportError:
        return unpack_lz4_slowly(packed, size_bytes)
    try:
        content: bytes = lz4.block.decompress(packed, uncompressed_size=size_bytes)
    except lz4.block.LZ4BlockError:
        return None
    return content


def unpack_lz4_slowly(packed: memoryview, size_bytes: int) -> bytes | None:
    """The same in Python alone.

    LZ4 block format: a token with the length of the literals and of the match in its halves, 15 meaning that bytes
    follow that are added; the literals; the distance of the match in two bytes. The last sequence has literals alone.
    """
    source = bytes(packed)
    out = bytearray()
    at = 0
    try:
        while True:
            token = source[at]
            literals, at = _read_length(source, at + 1, token >> 4)
            out += source[at : at + literals]
            at += literals
            if at >= len(source):
                return bytes(out) if at == len(source) else None
            distance = source[at] | source[at + 1] << 8
            length, at = _read_length(source, at + 2, token & _LONG)
            if not 0 < distance <= len(out) or len(out) > size_bytes:
                return None
            _repeat(out, distance, length + _SHORTEST_MATCH)
    except IndexError:
        return None


def _read_length(source: bytes, at: int, length: int) -> tuple[int, int]:
    if length == _LONG:
        while True:
            more = source[at]
            at += 1
            length += more
            if more != 0xFF:
                break
    return length, at


def _repeat(out: bytearray, distance: int, length: int) -> None:
    """Append `length` bytes from `distance` back; they may overlap with what they make."""
    start = len(out) - distance
    if distance >= length:
        out += out[start : start + length]
    else:
        pattern = bytes(out[start:])
        out += (pattern * (length // distance + 1))[:length]
