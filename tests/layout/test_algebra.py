from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import tensor_layouts

from sectorwise.errors import ArgumentError
from sectorwise.layout.algebra import (
    Layout,
    coalesce,
    complement,
    compose,
    flatten,
    logical_divide,
    logical_product,
    make_layout,
    zipped_divide,
)
from sectorwise.layout.interchange import from_tensor_layouts, to_tensor_layouts
from sectorwise.layout.swizzle import Swizzle, SwizzledLayout
from tests.layout.random_layouts import draw_any, draw_compact, draw_injective, make_random

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.layout.algebra import IntTuple

LAYOUTS = 10_000
PAIRS = 1500


def read(layout: Layout) -> list[int]:
    offsets: list[int] = layout.offsets().tolist()
    return offsets


def read_theirs(layout: object) -> list[int]:
    assert callable(layout)
    return [layout(index) for index in range(tensor_layouts.size(layout))]


T = TypeVar("T")


def attempt(call: Callable[[], T], errors: tuple[type[Exception], ...]) -> T | None:
    try:
        return call()
    except errors:
        return None


def test_layouts_are_the_same_functions_as_those_of_tensor_layouts() -> None:
    random = make_random(1)
    for _ in range(LAYOUTS):
        ours = draw_any(random)
        theirs: Any = to_tensor_layouts(ours)
        assert read(ours) == read_theirs(theirs), ours
        assert (ours.size, ours.cosize) == (tensor_layouts.size(theirs), tensor_layouts.cosize(theirs))
        assert from_tensor_layouts(theirs) == ours
        index = random.randrange(ours.size)
        coordinate = tensor_layouts.idx2crd(index, theirs.shape)
        assert ours(coordinate) == ours(index) == theirs(index)
        flat = coalesce(ours)
        assert read(flat) == read(ours)
        assert flat == from_tensor_layouts(tensor_layouts.coalesce(theirs))


def test_compositions_are_compositions_and_those_of_tensor_layouts() -> None:
    random = make_random(2)
    composed = refused = 0
    for number in range(PAIRS):
        outer = draw_any(random) if number % 2 else draw_injective(random)
        inner = draw_injective(random)
        if inner.cosize > outer.size:
            continue
        ours = attempt(lambda: compose(outer, inner), (ArgumentError,))  # noqa: B023 - called at once
        theirs = attempt(
            lambda: tensor_layouts.compose(to_tensor_layouts(outer), to_tensor_layouts(inner)),  # noqa: B023
            (ValueError, NotImplementedError),
        )
        if ours is None:
            refused += 1
            continue
        composed += 1
        assert read(ours) == [outer(int(index)) for index in inner.offsets()], (outer, inner)
        assert theirs is None or read_theirs(theirs) == read(ours), (outer, inner)
        if isinstance(inner.shape, int):
            assert ours.size == inner.size
            continue
        assert [math.prod(flatten(ours.mode(k).shape)) for k in range(inner.rank)] == [
            math.prod(flatten(inner.mode(k).shape)) for k in range(inner.rank)
        ]
    assert composed > PAIRS // 10
    assert refused < composed


def test_complements_fill_every_gap_once_and_equal_those_of_tensor_layouts() -> None:
    random = make_random(3)
    filled = 0
    for _ in range(PAIRS):
        layout = draw_injective(random)
        bound = layout.cosize * random.choice((1, 2, 3))
        ours = attempt(lambda: complement(layout, bound), (ArgumentError,))  # noqa: B023
        theirs = attempt(lambda: tensor_layouts.complement(to_tensor_layouts(layout), bound), (ValueError,))  # noqa: B023
        assert (ours is None) == (theirs is None), layout
        if ours is None:
            continue
        filled += 1
        assert coalesce(ours) == from_tensor_layouts(tensor_layouts.coalesce(theirs)), (layout, bound)
        if ours.size > 512:
            continue
        sums = [one + other for one in set(read(layout)) for other in read(ours)]
        assert len(set(sums)) == len(sums), layout
        assert set(range(bound)) <= set(sums), layout
    assert filled > PAIRS // 2


def test_divided_layouts_walk_tile_by_tile() -> None:
    random = make_random(4)
    divided = 0
    for _ in range(PAIRS):
        layout = draw_compact(random) if random.random() < 0.5 else draw_injective(random)
        extents = [extent for extent in range(1, layout.size + 1) if layout.size % extent == 0]
        tiler = make_layout(random.choice(extents), random.choice((1, 1, 2)))
        if layout.size % (tiler.size * flatten(tiler.stride)[0]):
            continue
        ours = attempt(lambda: logical_divide(layout, tiler), (ArgumentError,))  # noqa: B023
        theirs = attempt(
            lambda: tensor_layouts.logical_divide(to_tensor_layouts(layout), to_tensor_layouts(tiler)),  # noqa: B023
            (ValueError,),
        )
        if ours is None:
            assert theirs is None, (layout, tiler)
            continue
        divided += 1
        assert ours.rank == 2
        assert ours.mode(0).size == tiler.size
        assert sorted(read(ours)) == sorted(read(layout))
        assert read(ours.mode(0)) == [layout(int(index)) for index in tiler.offsets()]
        assert theirs is None or read_theirs(theirs) == read(ours), (layout, tiler)
    assert divided > PAIRS // 3


def test_products_repeat_the_layout_without_overlap() -> None:
    random = make_random(5)
    made = 0
    for _ in range(PAIRS):
        layout, copies = draw_injective(random), draw_compact(random)
        if layout.size * copies.size > 4096:
            continue
        ours = attempt(lambda: logical_product(layout, copies), (ArgumentError,))  # noqa: B023
        theirs = attempt(
            lambda: tensor_layouts.logical_product(to_tensor_layouts(layout), to_tensor_layouts(copies)),  # noqa: B023
            (ValueError,),
        )
        if ours is None:
            continue
        made += 1
        assert read(ours.mode(0)) == read(layout)
        assert len(set(read(ours))) == ours.size
        assert theirs is None or read_theirs(theirs) == read(ours), (layout, copies)
    assert made > PAIRS // 20


def test_a_matrix_is_divided_by_a_tile_of_two_axes() -> None:
    matrix = Layout((128, 64), (64, 1))
    tiles = zipped_divide(matrix, (make_layout(32), make_layout(16)))
    assert tiles.mode(0).size == 32 * 16
    assert tiles((3, 5), (2, 1)) == (2 * 32 + 3) * 64 + 16 + 5
    theirs = tensor_layouts.zipped_divide(to_tensor_layouts(matrix), (32, 16))
    assert read(tiles) == read_theirs(theirs)


def test_swizzles_equal_those_of_tensor_layouts() -> None:
    random = make_random(6)
    for _ in range(1000):
        bits = random.randint(0, 4)
        shift = random.choice((-1, 1)) * random.randint(bits, bits + 3)
        swizzle = Swizzle(bits, random.randint(0, 5), shift)
        theirs: Any = to_tensor_layouts(swizzle)
        for offset in (random.randrange(1 << 16) for _ in range(20)):
            assert swizzle(offset) == theirs(offset), swizzle
            assert swizzle(swizzle(offset)) == offset
        assert from_tensor_layouts(theirs) == swizzle
    for offset in (0, 64):
        layout = SwizzledLayout(Swizzle(3, 4, 3), Layout((8, 64), (128, 2)), offset)
        composed: Any = to_tensor_layouts(layout)
        assert layout.offsets().tolist() == read_theirs(composed)
        assert from_tensor_layouts(composed) == layout


@pytest.mark.parametrize(
    ("shape", "stride", "message"),
    [
        ((2, 3), (1,), "nested alike"),
        ((2, 0), (1, 2), "an extent is 0"),
        ((2, 3), (1, -2), "a stride is -2"),
        ((2, (3, 4)), (1, 2), "nested alike"),
        ((), (), "nested alike"),
    ],
)
def test_what_is_no_layout_is_refused(shape: IntTuple, stride: IntTuple, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Layout(shape, stride)


def test_wrong_operations_are_explained() -> None:
    with pytest.raises(ArgumentError, match="no multiple of 4"):
        compose(Layout((4, 6), (1, 100)), Layout(6, 1))
    with pytest.raises(ArgumentError, match="does not divide"):
        compose(Layout((4, 6), (1, 100)), Layout(2, 3))
    with pytest.raises(ArgumentError, match="stride 3 is no multiple of 4"):
        complement(Layout((4, 2), (1, 3)))
    with pytest.raises(ArgumentError, match="is no coordinate"):
        Layout((4, 2), (1, 4))(1, 2, 3)
    with pytest.raises(ArgumentError, match="its 3 bits overlap"):
        Swizzle(3, 4, 2)
    with pytest.raises(ArgumentError, match="expected a Layout"):
        from_tensor_layouts(7)
