"""Turns an array to be read and one of the same shape to be written into the launch that moves the elements best."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.kernels.axes import Axis, walk_together
from sectorwise.kernels.plan import MOST_BLOCKS, KernelPlan, Number, Numbers, Pointer, divide_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.kernels.axes import Walk
    from sectorwise.kernels.plan import Argument, Operand

VECTOR_BYTES: Final = 16
"""The widest load of a lane up to compute capability 9.0."""

COPY_LOADS: Final = 1
"""Loads of a lane before its first store: 2,048 threads x 16 B are 32 KiB in flight an SM, enough. With more of them an
H200 moves less, 3.9 TB/s where one makes 4.28: reads and writes take turns in longer stretches."""

_COPY_THREADS: Final = 128
_STRIDED_THREADS: Final = 256
_LEAST_RECORDS: Final = 256
_RECORD_BYTES: Final = 128
"""Records of a block up to this size leave room for 24 blocks of 64 of them in the shared memory of an SM."""

_MOST_AXES: Final = 6
_BATCH_AXES: Final = 4
_INDEX_LIMIT: Final = 1 << 32
_MOST_BESIDE: Final = 65535
"""Blocks along the second and third axis of a grid (CUDA programming guide, compute capabilities)."""


def plan_move(source: Operand, target: Operand) -> KernelPlan | None:
    """The launch that writes the elements of `source` to those of `target`, None where there are none.

    Both have one shape and one size of element, 1, 2, 4, 8 or 16 bytes; strides are free, also 0 and negative in
    `source`. A transpose is a copy between arrays whose strides differ. Operands are called `from` and `to`.

    Raises:
        ArgumentError: no kernel walks so many axes.
    """
    if 0 in source.shape:
        return None
    walk = walk_together(source, target)
    item = source.item_bytes
    bases = (source.address + walk.from_offset, target.address + walk.to_offset)
    axes = walk.axes or (Axis(1, item, item),)
    inner = axes[0]
    if len(axes) == 1 and inner.from_bytes == inner.to_bytes == item:
        return _plan_bytes(walk, bases, inner.extent * item)
    if inner.from_bytes == inner.to_bytes == item:
        return _plan_rows(walk, bases, item)
    turned = next((axis for axis in axes[1:] if axis.from_bytes == item), None)
    batch = tuple(axis for axis in axes[1:] if axis is not turned)
    if inner.to_bytes == item and turned is not None and len(batch) <= _BATCH_AXES:
        return _plan_turn(walk, bases, item, turned, batch)
    return _plan_strided(walk, axes, item)


def _plan_bytes(walk: Walk, bases: tuple[int, int], size_bytes: int) -> KernelPlan:
    apart = bases[0] - bases[1]
    width = gcd(apart, VECTOR_BYTES)
    head = min(-bases[1] % width, size_bytes)
    words, tail = divmod(size_bytes - head, width)
    blocks = max(divide_up(words, _COPY_THREADS * COPY_LOADS), 1)
    arguments = (*_pointers(walk), Number(head), Number(words), Number(tail))
    return _plan("copy.cu", f"copy_bytes<{width}, {COPY_LOADS}>", blocks, _COPY_THREADS, arguments)


def _plan_rows(walk: Walk, bases: tuple[int, int], item: int) -> KernelPlan:
    """Rows that are whole in both, in the widest words that all of their beginnings and lengths are multiples of."""
    inner = walk.axes[0]
    steps = [step for axis in walk.axes[1:] for step in (axis.from_bytes, axis.to_bytes)]
    width = gcd(VECTOR_BYTES, inner.extent * item, *bases, *steps)
    return _plan_strided(walk, (Axis(inner.extent * item // width, width, width), *walk.axes[1:]), width)


def _plan_strided(walk: Walk, axes: Sequence[Axis], width: int) -> KernelPlan:
    if len(axes) > _MOST_AXES:
        raise ArgumentError(
            f"expected arrays that differ in at most {_MOST_AXES} axes once neighbours are merged, got {len(axes)}; "
            "copy one outer axis at a time"
        )
    kept = next(count for count in (2, 4, 6) if count >= len(axes))
    words = prod(axis.extent for axis in axes)
    index = "unsigned int" if words < _INDEX_LIMIT else "unsigned long long"
    arguments = (*_pointers(walk), _batch(axes, kept), Number(words))
    blocks = divide_up(words, _STRIDED_THREADS)
    return _plan("copy.cu", f"copy_strided<{width}, {kept}, {index}>", blocks, _STRIDED_THREADS, arguments)


def _plan_turn(walk: Walk, bases: tuple[int, int], item: int, turned: Axis, batch: Sequence[Axis]) -> KernelPlan:
    inner = walk.axes[0]
    rows, columns = inner.extent, turned.extent
    if inner.from_bytes == columns * item and columns * item <= _RECORD_BYTES and rows >= _LEAST_RECORDS:
        begins = (bases[0], *(axis.from_bytes for axis in batch))
        return _plan_records(walk, "records_to_arrays", (item, columns, rows), turned.to_bytes, begins, batch)
    if turned.to_bytes == rows * item and rows * item <= _RECORD_BYTES and columns >= _LEAST_RECORDS:
        begins = (bases[1], *(axis.to_bytes for axis in batch))
        return _plan_records(walk, "arrays_to_records", (item, rows, columns), inner.from_bytes, begins, batch)
    per_vector = VECTOR_BYTES // item
    begins = (*bases, inner.from_bytes, turned.to_bytes, *(s for a in batch for s in (a.from_bytes, a.to_bytes)))
    if rows % per_vector == columns % per_vector == 0 and gcd(VECTOR_BYTES, *begins) == VECTOR_BYTES:
        squares = 8 if item == 1 else 16
        kernel, side, threads = f"transpose_vectors<{item}, {squares}>", squares * per_vector, squares * squares
    else:
        kernel, side, threads = f"transpose_elements<{item}>", 64 if item < 4 else 32, 256
    across, down = divide_up(columns, side), divide_up(rows, side)
    arguments = (
        *_pointers(walk),
        *(Number(rows), Number(columns), Number(inner.from_bytes), Number(turned.to_bytes)),
        *(Number(across, 4), Number(down, 4), _batch(batch, _BATCH_AXES)),
    )
    matrices = prod(axis.extent for axis in batch)
    deep = divide_up(across, _MOST_BESIDE)
    plan = _plan("transpose.cu", kernel, down * matrices, threads, arguments)
    return replace(plan, grid=(down * matrices, divide_up(across, deep), deep))


def _plan_records(
    walk: Walk,
    kernel: str,
    sizes: tuple[int, int, int],
    field_bytes: int,
    begins: Sequence[int],
    batch: Sequence[Axis],
) -> KernelPlan:
    item, fields, records = sizes
    width = VECTOR_BYTES if gcd(VECTOR_BYTES, *begins) == VECTOR_BYTES else item
    threads = 64 if item * fields >= 32 else 256  # threads_for of records.cu
    blocks = divide_up(records, threads)
    arguments = (
        *_pointers(walk),
        *(Number(records), Number(field_bytes), Number(blocks, 4), _batch(batch, _BATCH_AXES)),
    )
    total = blocks * prod(axis.extent for axis in batch)
    return _plan("records.cu", f"{kernel}<{item}, {fields}, {width}>", total, threads, arguments)


def _pointers(walk: Walk) -> tuple[Pointer, Pointer]:
    return Pointer("from", walk.from_offset), Pointer("to", walk.to_offset)


def _batch(axes: Sequence[Axis], count: int) -> Numbers:
    filled = (*axes, *[Axis(1, 0, 0)] * (count - len(axes)))
    parts = zip(*((axis.extent, axis.from_bytes, axis.to_bytes) for axis in filled), strict=True)
    return Numbers(tuple(number for part in parts for number in part))


def _plan(source: str, kernel: str, blocks: int, threads: int, arguments: tuple[Argument, ...]) -> KernelPlan:
    if blocks > MOST_BLOCKS:
        raise ArgumentError(f"expected at most {MOST_BLOCKS:,} blocks, got {blocks:,}: move the array in parts")
    return KernelPlan(source, kernel, (blocks, 1, 1), (threads, 1, 1), arguments)
