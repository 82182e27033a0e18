"""Turns Python values into arguments of a launch, and arrays that share memory into pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sectorwise as sw
from sectorwise.errors import ArgumentError, LaunchError
from sectorwise.launch.config import BufferArgument, Contents, PointerArgument, ScalarArgument
from sectorwise.launch.contents import open_values
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


def test_views_bring_what_lies_between() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    buffer = _buffer(array[:, :2])
    assert (buffer.count, buffer.shape) == (10, None)
    assert open_values(buffer).tolist() == list(range(10))
    assert _buffer(array.T).count == 12


def test_specs_of_a_text_that_is_wrong() -> None:
    with pytest.raises(LaunchError, match="at least one element"):
        read_value("f32[0]", "args[1]")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(4, np.complex64), "elements of type complex64 cannot be passed"),
        (np.zeros(4)[::-1], "lies backwards"),
        (np.zeros(0), "without elements"),
        (np.zeros(400)[1:], "begins 8 bytes inside another one"),
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


def test_arrays_that_overlap_in_part() -> None:
    whole = np.zeros(1024, np.float32)
    with pytest.raises(ArgumentError, match="arguments a and b overlap in memory, and neither holds the other"):
        share_buffers([_buffer(whole[:512], "a"), _buffer(whole[256:], "b")])
