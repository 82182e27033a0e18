"""Turns a library, an object file or a fat binary into the device images in it, without unpacking any.

The format is not documented; what is read here was found by compiling small files with every mode of compression of
nvcc 13.0 and looking, and agrees with what github.com/n-eiling/cuda-fatbin-decompression says of older ones: containers
of a 16-byte header (magic, version, header size, size of what follows) and entries, each with a header of its own.
Containers are found by their magic number wherever they lie, so that ELF, archives and Windows libraries are alike.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.binary.lz4 import unpack_lz4
from sectorwise.errors import CorruptBinaryError, MissingToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

_MAGIC = (0xBA55ED50).to_bytes(4, "little")
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "ptx", 2: "cubin"}
_FLAG_LZ4 = 0x2000
_FLAG_ZSTD = 0x8000
_LARGEST_IMAGE_BYTES = 1 << 31


class Compression(StrEnum):
    """How an image is packed."""

    NONE = "none"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Image(Struct, frozen=True):
    """A cubin or PTX (`kind`) for a compute capability, as it lies in the file, packed or not.

    `origin` names the file, and its place there, in errors; `size_bytes` is the size when unpacked.
    """

    kind: str
    capability: tuple[int, int]
    origin: str
    packed: memoryview
    compression: Compression
    size_bytes: int


def read_images(data: bytes | mmap, origin: str) -> tuple[Image, ...]:
    """Return the images of all containers in a file, in their order; `origin` is what errors call it.

    What is not looked at is not copied: of a mapped file only the pages are read that matter.

    Raises:
        CorruptBinaryError: a container contradicts itself; the text has the offset.
    """
    view = memoryview(data)
    images: list[Image] = []
    at = data.find(_MAGIC)
    while at >= 0:
        following = at + len(_MAGIC)
        if _is_container(data, at):
            *_, header_bytes, size_bytes = _CONTAINER.unpack_from(data, at)
            following = at + header_bytes + size_bytes
            images += _read_entries(view, at + header_bytes, following, origin)
        at = data.find(_MAGIC, following)
    return tuple(images)


def unpack_image(image: Image) -> bytes:
    """Return the cubin, or the text of the PTX.

    Raises:
        CorruptBinaryError: it does not unpack to what its header says.
        MissingToolError: it is packed with zstd, and neither Python 3.14 nor `zstandard` is there.
    """
    content: bytes | None
    match image.compression:
        case Compression.NONE:
            content = bytes(image.packed)
        case Compression.LZ4:
            content = unpack_lz4(image.packed, image.size_bytes)
        case Compression.ZSTD:
            content = _unpack_zstd(image)
    if content is None or len(content) != image.size_bytes:
        raise CorruptBinaryError(f"{image.origin}: this image does not unpack to {image.size_bytes} bytes")
    return content


def _is_container(content: bytes | mmap, at: int) -> bool:
    """Whether a container begins here: code that looks for the magic number has it, too."""
    if at + _CONTAINER.size > len(content):
        return False
    _, version, header_bytes, size_bytes = _CONTAINER.unpack_from(content, at)
    fits: bool = size_bytes <= len(content) - at - header_bytes
    return version == 1 and header_bytes == _CONTAINER.size and fits


def _read_entries(view: memoryview, start: int, end: int, origin: str) -> Iterator[Image]:
    at = start
    while at + _ENTRY.size <= end:
        kind, _, header_bytes, room_bytes, packed_bytes, _, minor, major, arch, _, _, flags, _, unpacked_bytes = (
            _ENTRY.unpack_from(view, at)
        )
        where = f"{origin} at byte 0x{at:x}"
        begin = at + header_bytes
        if header_bytes < _ENTRY.size or room_bytes > end - begin or unpacked_bytes > _LARGEST_IMAGE_BYTES:
            raise CorruptBinaryError(f"{where}: the header of this image contradicts that of its fat binary")
        compression = Compression.ZSTD if flags & _FLAG_ZSTD else Compression.LZ4 if flags & _FLAG_LZ4 else None
        if kind in _KINDS:
            used_bytes = room_bytes if compression is None else min(packed_bytes, room_bytes)
            yield Image(
                kind=_KINDS[kind],
                capability=(arch // 10, arch % 10) if arch else (major, minor),
                origin=where,
                packed=view[begin : begin + used_bytes],
                compression=compression or Compression.NONE,
                size_bytes=room_bytes if compression is None else unpacked_bytes,
            )
        at = begin + room_bytes


def _unpack_zstd(image: Image) -> bytes | None:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore] # from Python 3.14 on
    except ImportError:
        return _unpack_zstandard(image)
    try:
        content: bytes = zstd.decompress(image.packed)
    except zstd.ZstdError:
        return None
    return content


def _unpack_zstandard(image: Image) -> bytes | None:
    try:
        import zstandard
    except ImportError:
        message = f"{image.origin} is packed with zstd: pip install 'sectorwise[libraries]' brings what unpacks it"
        raise MissingToolError(message) from None
    try:
        return zstandard.ZstdDecompressor().decompress(image.packed, max_output_size=image.size_bytes)
    except zstandard.ZstdError:
        return None
