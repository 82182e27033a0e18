"""Turns Python values into arguments of a launch, and arrays that share memory into pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sectorwise as sw
from sectorwise.errors import ArgumentError, LaunchError
from sectorwise.launch.addresses import PlacedBuffer, find_address, find_buffers
from sectorwise.launch.config import BufferArgument, Contents, LaunchConfig, PointerArgument, ScalarArgument
from sectorwise.launch.contents import materialise, open_values
from sectorwise.launch.sharing import share_buffers
from sectorwise.launch.values import read_value

if TYPE_CHECKING:
    from sectorwise.launch.config import Argument


def _buffer(value: Any, name: str | None = None) -> BufferArgument:  # noqa: ANN401 - any array
    found = read_value(value, name)
    assert isinstance(found, BufferArgument)
    return found


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        (3, ScalarArgument(3)),
        (2.5, ScalarArgument(2.5)),
        (np.int64(7), ScalarArgument(7, "i64")),
        (np.float16(0.5), ScalarArgument(0.5, "f16")),
        (sw.f32[1 << 4], BufferArgument("f32", 16, Contents())),
        (sw.i16[4, 8], BufferArgument("i16", 32, Contents(), shape=(4, 8))),
        (sw.u8[64].filled("perm(7)"), BufferArgument("u8", 64, Contents("perm", seed=7))),
        ("bf16[3]=arange", BufferArgument("bf16", 3, Contents("arange"))),
        ("i64(5)", ScalarArgument(5, "i64")),
        (True, True),
        (None, None),
        ("relu", "relu"),
        (float, float),
    ],
)
def test_values(value: object, argument: object) -> None:
    assert read_value(value) == argument


def test_every_public_name_is_there() -> None:
    assert {name for name in sw.__all__ if not hasattr(sw, name)} == set()


def test_arrays_keep_their_elements_and_their_shape() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    buffer = _buffer(array, "a")
    assert (buffer.dtype, buffer.count, buffer.shape, buffer.name) == ("f32", 12, (3, 4), "a")
    assert open_values(buffer).tolist() == array.ravel().tolist()
    # It is the array itself, not a copy: what changes before the launch is seen.
    array[0, 0] = 9
    assert open_values(buffer)[0] == 9


def test_views_bring_what_lies_between_and_around() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    buffer = _buffer(array[:, 1:3])
    # Elements 1 to 10 are the view's own, with gaps; a kernel that reads element 0 or 11 reads memory that is there.
    assert (buffer.count, buffer.skip, buffer.passed, buffer.behind) == (12, 1, 10, 1)
    assert (buffer.shape, buffer.strides) == ((3, 2), (4, 1))
    assert open_values(buffer).tolist() == list(range(12))
    turned = _buffer(array.T)
    assert (turned.count, turned.passed, turned.shape, turned.strides) == (12, 12, (4, 3), (1, 4))
    repeated = _buffer(np.broadcast_to(array[:, :1], (3, 4)))
    assert (repeated.count, repeated.passed, repeated.strides) == (12, 9, (4, 0))


def test_of_much_memory_around_a_view_some_comes_along() -> None:
    whole = np.zeros(48 << 20, np.uint8)
    view = _buffer(whole[(24 << 20) + 700 : (24 << 20) + 800])
    # 700 is 188 more than a multiple of 512: so is the number of bytes before the view.
    assert (view.skip, view.passed, view.behind) == ((4 << 20) + 188, 100, 4 << 20)


def test_specs_of_a_text_that_is_wrong() -> None:
    with pytest.raises(LaunchError, match="at least one element"):
        read_value("f32[0]", "args[1]")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(4, np.complex64), "elements of type complex64 cannot be passed"),
        (np.zeros(4)[::-1], "lies backwards"),
        (np.zeros(0), "without elements"),
        (np.zeros(400, "u1")[1:397].view("u4"), "begins 1 bytes inside another one"),
    ],
)
def test_arrays_that_cannot_be_passed(array: Any, said: str) -> None:  # noqa: ANN401 - an array of any type
    with pytest.raises(ArgumentError, match=said):
        read_value(array, "x")


def test_arrays_in_the_same_memory_are_one_buffer() -> None:
    whole = np.zeros(1024, np.float32)
    buffers: list[Argument] = [
        _buffer(whole[256:512], "part"),
        _buffer(whole, "whole"),
        _buffer(whole, "again"),
        ScalarArgument(1),
    ]
    assert share_buffers(buffers) == (
        PointerArgument("whole", 1024, "part"),
        buffers[1],
        PointerArgument("whole", 0, "again"),
        buffers[3],
    )


def test_the_address_of_a_view_is_where_it_begins() -> None:
    whole = np.arange(1024, dtype=np.float32)
    view = _buffer(whole[130:200], "view")
    assert (view.count, view.skip, view.passed, view.behind) == (1024, 130, 70, 824)
    assert materialise(view).tolist() == list(range(1024))
    # The address that a kernel gets is 130 elements behind one that 512 divides.
    launch = LaunchConfig("k", (1, 1, 1), (1, 1, 1), 0, (view,))
    placed = tuple(PlacedBuffer(*found, 4096) for found in find_buffers(launch))
    assert find_address(view, (0,), placed) == 4096 + 4 * 130


def test_arrays_that_overlap_in_part_are_one_buffer() -> None:
    whole = np.arange(1024, dtype=np.float32)
    left, right = share_buffers([_buffer(whole[:512], "a"), _buffer(whole[257:], "b")])
    assert isinstance(left, BufferArgument)
    assert materialise(left).tolist() == list(range(1024))
    assert right == PointerArgument("a", 4 * 257, "b")


def test_columns_of_a_matrix_are_one_buffer_however_they_are_ordered() -> None:
    matrix = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    parts = [_buffer(matrix[:, first : first + 32], name) for name, first in (("k", 32), ("q", 0), ("v", 64))]
    k, q, v = share_buffers(parts)
    assert isinstance(q, BufferArgument)
    assert (materialise(q).tolist(), q.skip, q.passed) == (list(range(64 * 96)), 0, 64 * 96)
    assert (k, v) == (PointerArgument("q", 4 * 32, "k"), PointerArgument("q", 4 * 64, "v"))


def test_parts_that_do_not_overlap_are_buffers_of_their_own() -> None:
    whole = np.arange(1024, dtype=np.float32)
    left, right = share_buffers([_buffer(whole[:512], "a"), _buffer(whole[512:], "b")])
    assert isinstance(left, BufferArgument)
    assert isinstance(right, BufferArgument)
    assert (left.passed, left.behind, right.skip, right.passed) == (512, 512, 512, 512)


def test_memory_that_ends_within_an_element() -> None:
    whole = np.zeros(1021, np.uint8)
    with pytest.raises(ArgumentError, match="arguments a and b overlap in memory, in parts of elements"):
        share_buffers([_buffer(whole[:600].view("f4"), "a"), _buffer(whole[512:], "b")])
