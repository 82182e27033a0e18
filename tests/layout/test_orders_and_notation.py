from __future__ import annotations

import numpy as np
import pytest

from sectorwise.errors import ArgumentError
from sectorwise.layout.algebra import Layout
from sectorwise.layout.notation import parse_layout, parse_swizzle
from sectorwise.layout.orders import (
    blocked,
    c_order,
    fortran_order,
    padded_rows,
    with_byte_strides,
    with_strides,
)
from sectorwise.layout.swizzle import Swizzle, SwizzledLayout


@pytest.mark.parametrize("shape", [(7,), (4, 6), (3, 4, 5), (2, 3, 4, 5)])
def test_orders_are_numpys(shape: tuple[int, ...]) -> None:
    for order, make in (("C", c_order), ("F", fortran_order)):
        array = np.zeros(shape, dtype=np.float32, order=order)  # type: ignore[call-overload]
        assert make(shape) == with_byte_strides(shape, array.strides, 4)
        assert with_strides(shape, [step // 4 for step in array.strides]) == make(shape)
    positions = np.arange(np.prod(shape)).reshape(shape)
    for place in np.ndindex(shape):
        assert c_order(shape)(*place) == positions[place]


def test_padding_follows_the_last_axis() -> None:
    assert str(padded_rows((32, 32), 1)) == "(32,32):(33,1)"
    assert str(padded_rows((2, 3, 4), 4)) == "(2,3,4):(24,8,1)"
    big = np.zeros((2, 3, 8))[:, :, :4]
    assert padded_rows((2, 3, 4), 4) == with_byte_strides((2, 3, 4), big.strides, 8)


def test_blocks_are_contiguous() -> None:
    layout = blocked((6, 8), (2, 4))
    stored = np.arange(48).reshape(3, 2, 2, 4).transpose(0, 2, 1, 3).reshape(6, 8)
    assert [[layout(r, c) for c in range(8)] for r in range(6)] == stored.tolist()
    with pytest.raises(ArgumentError, match="axis 1: 8 elements"):
        blocked((6, 8), (2, 3))


@pytest.mark.parametrize(
    "text", ["(32,4):(4,128)", "32:4", "(4,(2,2)):(8,(1,4))", "Swizzle<3,4,3> o (8,64):(128,2)", "((2,2),3):((1,2),4)"]
)
def test_notation_is_read_as_it_is_written(text: str) -> None:
    assert str(parse_layout(text)) == text


def test_shorter_and_cutes_own_notations_are_read() -> None:
    assert parse_layout("(8,4)") == Layout((8, 4), (1, 8))
    assert parse_layout("(_8,_4):(_4,_1)") == Layout((8, 4), (4, 1))
    assert parse_layout("Sw<3,4,3> o 64 o (8,8):(128,2)") == SwizzledLayout(
        Swizzle(3, 4, 3), Layout((8, 8), (128, 2)), 64
    )
    assert parse_swizzle("3,4,3") == parse_swizzle("Sw<3,4,3>") == Swizzle(3, 4, 3)
    assert parse_swizzle("2,3,-3") == Swizzle(2, 3, -3)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("(32,4):(4", "expected ',' or '\\)', got the end", 9),
        ("(32,4):(4,128) 7", "expected the end, got '7'", 15),
        ("(32,x):(4,1)", "expected a shape, such as \\(32,4\\), got 'x'", 4),
        ("(32,4):4", "nested alike", 0),
        ("Swizzle<3,4> o 8", "expected ',' and the shift", 11),
        ("Swizzle<3,4,1> o 8", "overlap", 8),
        ("Swizzle<3,4,3>", "expected 'o' and a layout", 14),
        ("(0,4)", "an extent is 0", 0),
        ("9999999999999999", "more than 48 bits", 0),
    ],
)
def test_a_caret_stands_under_the_fault(text: str, message: str, column: int) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        parse_layout(text)
    shown, carets = str(caught.value).splitlines()[-2:]
    assert shown.strip() == text
    assert carets.index("^") - 2 == column


def test_hostile_texts_are_refused() -> None:
    for text in ("", "   ", "(" * 200, "1" * 3000, "(\x1b[2J)"):
        with pytest.raises(ArgumentError):
            parse_layout(text)
