"""Turns CuTe's notation (`(32,4):(4,128)`, `Swizzle<3,4,3> o (8,64):(64,1)`) into layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.layout.algebra import make_layout
from sectorwise.layout.reader import open_reader, read_number
from sectorwise.layout.swizzle import Swizzle, SwizzledLayout

if TYPE_CHECKING:
    from sectorwise.layout.algebra import IntTuple, Layout
    from sectorwise.tokens import Cursor

_SWIZZLES = ("Swizzle", "Sw", "S", "swizzle")


def parse_layout(text: str) -> Layout | SwizzledLayout:
    """The layout that a text denotes; strides that are left out are compact, the first mode fastest.

    CuTe's own output is read too, with static numbers written `_8`. Raises `ArgumentError` with a caret.

    >>> parse_layout("(32,4):(4,128)")(33)
    132
    """
    reader = open_reader(text, "layout")
    layout = read_layout(reader)
    reader.expect_end()
    return layout


def parse_swizzle(text: str) -> Swizzle:
    """The swizzle of `Swizzle<3,4,3>`, `Sw<3,4,3>` or `3,4,3`."""
    reader = open_reader(text, "swizzle")
    swizzle = read_swizzle(reader) if reader.at_name(*_SWIZZLES) else _make_swizzle(reader, closing=None)
    reader.expect_end()
    return swizzle


def at_swizzle(reader: Cursor) -> bool:
    """Whether a swizzle comes next."""
    return reader.at_name(*_SWIZZLES) and reader.following.text == "<"


def read_swizzle(reader: Cursor) -> Swizzle:
    """The swizzle that comes next."""
    reader.take()
    reader.expect("<", "'<' of Swizzle<bits,base,shift>")
    return _make_swizzle(reader, closing=">")


def read_layout(reader: Cursor) -> Layout | SwizzledLayout:
    """The layout that comes next: shape, and strides behind a colon."""
    if at_swizzle(reader):
        return _read_swizzled(reader)
    first = reader.token
    shape = _read_tuple(reader, "a shape, such as (32,4)")
    stride = _read_tuple(reader, "strides, such as (4,128)") if reader.accept(":") else None
    try:
        return make_layout(shape, stride)
    except ArgumentError as error:
        raise reader.error(str(error), first) from None


def _read_swizzled(reader: Cursor) -> SwizzledLayout:
    first = reader.token
    swizzle = read_swizzle(reader)
    offset = 0
    if not reader.at_name("o"):
        raise reader.error(f"expected 'o' and a layout behind {swizzle}, got {reader.token}")
    reader.take()
    if reader.token.kind == "number" and reader.following.text == "o":
        offset = read_number(reader)
        reader.take()
    inner = read_layout(reader)
    if isinstance(inner, SwizzledLayout):
        raise reader.error("a swizzle of a swizzle is no layout here", first)
    return SwizzledLayout(swizzle, inner, offset)


def _make_swizzle(reader: Cursor, closing: str | None) -> Swizzle:
    first = reader.token
    numbers = [_read_signed(reader, "the bits")]
    for name in ("the base", "the shift"):
        reader.expect(",", f"',' and {name} of Swizzle<bits,base,shift>")
        numbers.append(_read_signed(reader, name))
    if closing is not None:
        reader.expect(closing)
    try:
        return Swizzle(*numbers)
    except ArgumentError as error:
        raise reader.error(str(error), first) from None


def _read_signed(reader: Cursor, wanted: str) -> int:
    return -read_number(reader, wanted) if reader.accept("-") else read_number(reader, wanted)


def _read_tuple(reader: Cursor, wanted: str) -> IntTuple:
    if not reader.accept("("):
        return _read_extent(reader, wanted)
    reader.enter()
    parts = [_read_tuple(reader, wanted)]
    while reader.accept(","):
        if reader.at(")"):
            break
        parts.append(_read_tuple(reader, wanted))
    reader.expect(")", "',' or ')'")
    reader.leave()
    return tuple(parts)


def _read_extent(reader: Cursor, wanted: str) -> int:
    token = reader.token
    if token.kind == "name" and token.text.startswith("_") and token.text[1:].isdecimal():
        reader.take()
        return int(token.text[1:])
    return read_number(reader, wanted)
