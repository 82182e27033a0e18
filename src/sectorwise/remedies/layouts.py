"""Turns a shared array into the layouts that it might have instead: padded rows, swizzled words or chunks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.arrays import add_to, resolve_constant, rewrite_extents, rewrite_indices
from sectorwise.remedies.workshop import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.remedies.arrays import SharedArray
    from sectorwise.remedies.workshop import Workshop

_PADS: Final = (1, 2, 4, 8, 16)
_MOST_PAD_BYTES: Final = 32
_CHUNK_BYTES: Final = 16
_LINE_BYTES: Final = 128
_WORD_BYTES: Final = 4
_MULTIPLIER: Final = re.compile(r"\*\s*(\w+)|(\b\w+)\s*(?=\*)")
_MOST_PITCHES: Final = 3


def list_paddings(workshop: Workshop, array: SharedArray) -> Iterator[Change]:
    """The array with rows that are longer by up to 32 bytes, in elements that are powers of two."""
    size_bytes = array.element_bytes or _WORD_BYTES
    for pad in _PADS:
        if pad * size_bytes > _MOST_PAD_BYTES:
            continue
        if len(array.extents) == 1:
            yield from _pad_flat(workshop, array, pad)
            continue
        extents = (*array.extents[:-1], add_to(array.extents[-1], pad))
        yield Change(
            title=f"pad the rows of {array.name} by {pad} element{'s' if pad > 1 else ''} ({pad * size_bytes} B)",
            code=f"__shared__ {array.type} {array.name}{_write(extents)};",
            text=rewrite_extents(workshop.text, array, extents),
            launch=workshop.launch,
        )


def _pad_flat(workshop: Workshop, array: SharedArray, pad: int) -> Iterator[Change]:
    """A one-dimensional array whose indices multiply a row by a pitch: that pitch, made longer.

    Which factor is the pitch only the execution tells: each that occurs is tried.
    """
    factors: dict[str, None] = {}

    def collect(groups: tuple[str, ...]) -> tuple[str, ...]:
        for index in groups:
            factors.update(dict.fromkeys(after or before for after, before in _MULTIPLIER.findall(index)))
        return groups

    rewrite_indices(workshop.text, array, collect)
    pitches = [factor for factor in factors if (resolve_constant(workshop.text, factor) or 0) > 1]
    for pitch in sorted(pitches, key=str.isdecimal)[:_MOST_PITCHES]:
        yield from _lengthen_pitch(workshop, array, pad, pitch)


def _lengthen_pitch(workshop: Workshop, array: SharedArray, pad: int, pitch: str) -> Iterator[Change]:
    longer = add_to(pitch, pad) if pitch.isdecimal() else f"({pitch} + {pad})"

    def lengthen(groups: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_replace_multiplier(index, pitch, longer) for index in groups)

    text = rewrite_indices(workshop.text, array, lengthen)
    if text is None:
        return
    title = f"pad the rows of {array.name} by {pad} element{'s' if pad > 1 else ''}: a pitch of {longer}"
    if array.dynamic:
        row = resolve_constant(workshop.text, pitch) or 1
        size_bytes = -(-workshop.launch.dynamic_shared_bytes // row) * (row + pad)
        yield Change(
            title=f"{title}, and {size_bytes:,} B of dynamic shared memory",
            code=f"{longer}  // for {pitch} in the indices of {array.name}",
            text=text,
            launch=replace(workshop.launch, dynamic_shared_bytes=size_bytes),
        )
        return
    extent = f"({array.extents[0].strip()}) / {pitch} * {longer}"
    yield Change(
        title=title,
        code=f"__shared__ {array.type} {array.name}[{extent}];  // and {longer} for {pitch} in its indices",
        text=rewrite_extents(text, array, (extent,)),
        launch=workshop.launch,
    )


def list_swizzles(workshop: Workshop, array: SharedArray) -> Iterator[Change]:
    """The array with the column of each element changed by its row: by words, and by chunks of 16 bytes."""
    if len(array.extents) != 2 or array.element_bytes is None:
        return
    columns = resolve_constant(workshop.text, array.extents[1])
    width = array.extents[1].strip()
    width = width if width.isalnum() else f"({width})"
    if array.element_bytes >= _WORD_BYTES:
        known = columns == _LINE_BYTES // _WORD_BYTES and array.element_bytes == _WORD_BYTES
        name = "Swizzle<5,2,5> on byte offsets" if known else "XOR of column and row"
        yield from _swizzle(workshop, array, name, "({column}) ^ (({row}) % " + width + ")")
    if columns is None or _CHUNK_BYTES % array.element_bytes:
        return
    row_bytes = columns * array.element_bytes
    chunk = _CHUNK_BYTES // array.element_bytes
    for bits in (3, 2, 1):
        if row_bytes & (row_bytes - 1) or row_bytes < _CHUNK_BYTES << bits:
            continue
        rows_a_line = max(1, _LINE_BYTES // row_bytes)
        row = "({row})" if rows_a_line == 1 else f"({{row}}) / {rows_a_line}"
        distance = max(_LINE_BYTES, row_bytes).bit_length() - 1 - 4
        name = f"Swizzle<{bits},4,{distance}> on byte offsets"
        yield from _swizzle(workshop, array, name, f"({{column}}) ^ ({row} % {1 << bits} * {chunk})")
        if row_bytes > _LINE_BYTES:
            line = f"(({{row}}) * {width} + {{column}}) / {_LINE_BYTES // array.element_bytes}"
            name = f"Swizzle<{bits},4,3> on byte offsets"
            yield from _swizzle(workshop, array, name, f"({{column}}) ^ ({line} % {1 << bits} * {chunk})")
        return


def _swizzle(workshop: Workshop, array: SharedArray, name: str, form: str) -> Iterator[Change]:
    def index(groups: tuple[str, ...]) -> tuple[str, ...] | None:
        if len(groups) != 2 or any(sign in index for sign in ("++", "--", "=") for index in groups):
            return None
        return groups[0], form.format(row=groups[0].strip(), column=groups[1].strip())

    text = rewrite_indices(workshop.text, array, index)
    if text is not None:
        shown = form.format(row="row", column="column").replace("(row)", "row").replace("(column)", "column")
        yield Change(
            title=f"swizzle {array.name}: {name}",
            code=f"{array.name}[row][{shown}]  // for {array.name}[row][column], everywhere",
            text=text,
            launch=workshop.launch,
        )


def _replace_multiplier(index: str, pitch: str, longer: str) -> str:
    return re.sub(rf"(\*\s*){pitch}\b|\b{pitch}(\s*\*)", lambda at: f"{at[1] or ''}{longer}{at[2] or ''}", index)


def _write(extents: tuple[str, ...]) -> str:
    return "".join(f"[{extent.strip()}]" for extent in extents)
