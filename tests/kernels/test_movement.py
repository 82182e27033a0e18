"""Copies, transposes and records, executed: every byte of what was written, and of what was not, is NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.errors import ArgumentError
from sectorwise.kernels.movement import plan_move
from sectorwise.kernels.plan import Operand
from tests.kernels.engine import place, run_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.kernels.plan import KernelPlan

Array = npt.NDArray[Any]
_UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def make(item: int, shape: Sequence[int], lead: int = 0, seed: int = 1, tail: int = 16) -> tuple[Array, Array]:
    """Memory of random bytes, and an array of so many elements of it, `lead` bytes from its beginning."""
    size = int(np.prod(shape)) * item
    memory = np.random.default_rng(seed).integers(0, 120, lead + size + tail, dtype=np.uint8)
    return memory, np.ndarray(tuple(shape), _UNSIGNED[item], memory, lead)


def distance(view: Array, memory: Array) -> int:
    """Bytes from the beginning of the memory to element 0."""
    return int(view.__array_interface__["data"][0]) - int(memory.__array_interface__["data"][0])


def move(source: Array, memory: Array, target: Array, kept: Array) -> KernelPlan | None:
    """Execute the move from a view of `memory` to a view of `kept`, and compare all of the memory that is kept."""
    offsets = {"from": distance(source, memory), "to": distance(target, kept)}
    plan = plan_move(place(source, 512 + offsets["from"]), place(target, 512 + offsets["to"]))
    before = kept.copy()
    after = before if plan is None else run_plan(plan, {"from": memory, "to": before}, offsets)["to"]
    target[...] = source
    np.testing.assert_array_equal(after, kept)
    return plan


@pytest.mark.parametrize(
    ("count", "lead", "kept", "kernel"),
    [
        (40_000, 0, 0, "copy_bytes<16, 1>"),
        (4_103, 3, 3, "copy_bytes<16, 1>"),
        (4_103, 4, 0, "copy_bytes<4, 1>"),
        (1_001, 1, 0, "copy_bytes<1, 1>"),
        (5, 7, 7, "copy_bytes<16, 1>"),
        (1, 0, 0, "copy_bytes<16, 1>"),
    ],
)
def test_bytes_that_lie_alike(count: int, lead: int, kept: int, kernel: str) -> None:
    memory, source = make(1, (count,), lead)
    room, target = make(1, (count,), kept, seed=2)
    plan = move(source, memory, target, room)
    assert plan is not None
    assert plan.kernel == kernel


@pytest.mark.parametrize(
    ("item", "shape", "kernel"),
    [
        (16, (24, 40), "transpose_vectors<16, 16>"),
        (8, (70, 36), "transpose_vectors<8, 16>"),
        (4, (100, 132), "transpose_vectors<4, 16>"),
        (4, (3, 64, 64), "transpose_vectors<4, 16>"),
        (2, (136, 264), "transpose_vectors<2, 16>"),
        (1, (144, 272), "transpose_vectors<1, 8>"),
        (4, (97, 65), "transpose_elements<4>"),
        (8, (33, 31), "transpose_elements<8>"),
        (2, (67, 131), "transpose_elements<2>"),
        (1, (65, 130), "transpose_elements<1>"),
        (2, (2, 3, 5, 2, 33, 17), "transpose_elements<2>"),
        (4, (300, 1), "copy_bytes<16, 1>"),
        (4, (1, 300), "copy_bytes<16, 1>"),
        (4, (3, 1000), "arrays_to_records<4, 3, 16>"),
        (4, (1000, 3), "records_to_arrays<4, 3, 16>"),
    ],
)
def test_transposes(item: int, shape: tuple[int, ...], kernel: str) -> None:
    memory, source = make(item, shape)
    room, target = make(item, (*shape[:-2], shape[-1], shape[-2]), seed=2)
    plan = move(source.swapaxes(-1, -2), memory, target, room)
    assert plan is not None
    assert plan.kernel == kernel


def test_transpose_of_views_with_gaps_and_into_views_with_gaps() -> None:
    memory, source = make(4, (70, 160))
    room, target = make(4, (128, 96), seed=2)
    plan = move(source[2:66, 16:144].T, memory, target[:, 32:96], room)
    assert plan is not None
    assert plan.kernel == "transpose_vectors<4, 16>"
    plan = move(source[1:66, 17:100].T, memory, target[4:87, 3:68], room)
    assert plan is not None
    assert plan.kernel == "transpose_elements<4>"


def test_misaligned_bases_take_the_path_of_elements() -> None:
    memory, source = make(2, (64, 64), lead=2)
    room, target = make(2, (64, 64), lead=6, seed=2)
    plan = move(source.T, memory, target, room)
    assert plan is not None
    assert plan.kernel == "transpose_elements<2>"


@pytest.mark.parametrize(("item", "fields"), [(1, 8), (2, 16), (4, 12), (16, 6)])
def test_records_of_all_sizes(item: int, fields: int) -> None:
    memory, records = make(item, (600, fields))
    room, arrays = make(item, (fields, 600), seed=2)
    plan = move(records.T, memory, arrays, room)
    assert plan is not None
    assert plan.kernel == f"records_to_arrays<{item}, {fields}, 16>"
    plan = move(arrays.T, room, records, memory)
    assert plan is not None
    assert plan.kernel == f"arrays_to_records<{item}, {fields}, 16>"


def test_records_of_48_bytes_misaligned_and_in_a_batch() -> None:
    memory, records = make(4, (2, 259, 12), lead=4)
    room, arrays = make(4, (2, 12, 259), lead=8, seed=2)
    plan = move(records.swapaxes(1, 2), memory, arrays, room)
    assert plan is not None
    assert plan.kernel == "records_to_arrays<4, 12, 4>"
    plan = move(arrays.swapaxes(1, 2), room, records, memory)
    assert plan is not None
    assert plan.kernel == "arrays_to_records<4, 12, 4>"


def test_rows_of_views_are_copied_in_the_widest_words() -> None:
    memory, source = make(2, (12, 5, 64))
    room, target = make(2, (12, 5, 48), seed=2)
    plan = move(source[:, :, 8:56], memory, target, room)
    assert plan is not None
    assert plan.kernel == "copy_strided<16, 2, unsigned int>"
    plan = move(source[::2, ::3, 1:46], memory, target[::2, ::3, 2:47], room)
    assert plan is not None
    assert plan.kernel == "copy_strided<2, 4, unsigned int>"


def test_reversed_repeated_and_permuted_axes() -> None:
    memory, source = make(4, (6, 7, 8))
    room, target = make(4, (6, 7, 8), seed=2)
    move(source[::-1, :, ::-1], memory, target, room)
    move(source, memory, target[:, ::-1, ::-1], room)
    move(np.broadcast_to(source[:, :1, :], (6, 7, 8)), memory, target, room)
    move(source.transpose(2, 0, 1), memory, np.ndarray((8, 6, 7), "u4", room), room)
    move(source[:, ::2, ::2], memory, target[:, ::2, ::2], room)


def test_nothing_is_launched_for_nothing() -> None:
    memory, source = make(4, (0, 5))
    room, target = make(4, (0, 5), seed=2)
    assert move(source, memory, target, room) is None


def test_scalars_are_arrays_of_one_element() -> None:
    memory, source = make(8, ())
    room, target = make(8, (), seed=2)
    assert move(source, memory, target, room) is not None


def test_too_many_axes_are_refused() -> None:
    shape = (2,) * 7
    strides = tuple(12 << axis for axis in range(7))
    with pytest.raises(ArgumentError, match="at most 6 axes once neighbours are merged, got 7"):
        plan_move(Operand(0, shape, strides, 4), Operand(1 << 20, shape, strides[::-1], 4))
