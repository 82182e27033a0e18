"""Turns the table of goals into launches to be timed: what is moved, what of it is rotated, what must be reached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.arrays import DeviceArray, contiguous_strides
from sectorwise.kernels.batches import Batch
from sectorwise.kernels.gemv_plans import plan_product
from sectorwise.kernels.int4_plans import GROUP
from sectorwise.kernels.matmul_plans import plan_matmul
from sectorwise.kernels.movement import plan_move
from sectorwise.kernels.plan import Operand, divide_up
from sectorwise.kernels.product import Product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.kernels.plan import KernelPlan

_SMALL: Final = ((1024, 4096, 4.6), (2560, 4096, 7.0), (4096, 4096, 9.7))
_LARGE: Final = ((14336, 4096, 29.3), (4096, 14336, 28.9), (8192, 8192, 32.3))
_HUGE: Final = ((28672, 8192), (57344, 7168), (128256, 4096))
_HUGE_TBPS: Final = 4.37
_INT4: Final = ((4096, 4096, 4.3), (14336, 4096, 9.5), (8192, 8192, 10.4), (28672, 8192, 34.5))
_BYTES: Final = ((4096, 4096, 5.8), (14336, 4096, 15.5), (28672, 8192, 58.0))

_MATRICES: Final = (2048, 4096, 8192)
"""Sides of products that are to have 0.95 of the speed of the peer in the same run: in long runs clocks fall."""


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One line of the table.

    `sizes_bytes` are those of the operands; `rotated` are taken anew for each launch, so that none is found in L2.
    `goal_us`, or `goal_tbps` of `moved_bytes`, is what the H200 must reach, `goal_of_memcpy` the part of the driver's
    own copy of the same run; where there is none the peer is to take `goal_of_peer` times as long, or more.
    `peer` names what PyTorch does instead, with `shape` and `batch`.
    """

    name: str
    plan: KernelPlan
    sizes_bytes: Mapping[str, int]
    rotated: tuple[str, ...]
    moved_bytes: int
    peer: str
    shape: tuple[int, ...]
    batch: int = 1
    goal_us: float | None = None
    goal_tbps: float | None = None
    goal_of_memcpy: float | None = None
    goal_of_peer: float = 1.0


def list_cases(multiprocessors: int, capability: tuple[int, int]) -> tuple[BenchCase, ...]:
    """All lines, for a GPU of so many SMs and that compute capability."""
    gpu = multiprocessors, capability
    cases = [_multiply("bf16", n, k, 1, gpu, goal) for n, k, goal in (*_SMALL, *_LARGE)]
    cases += [_multiply("bf16", n, k, 1, gpu, None, _HUGE_TBPS) for n, k in _HUGE]
    shapes = [(n, k) for n, k, _ in (*_SMALL, *_LARGE)] + [_HUGE[0]]
    cases += [
        replace(_multiply("bf16", n, k, batch, gpu), goal_of_peer=1.3 if (n, k) in shapes[:3] else 1.0)
        for batch in (4, 8, 16)
        for n, k in shapes
    ]
    cases += [_multiply("u4", n, k, 1, gpu, goal) for n, k, goal in _INT4]
    for kind in ("e4m3", "i8"):
        cases += [_multiply(kind, n, k, batch, gpu, goal) for n, k, goal in _BYTES for batch in (1, 4, 16)]
    cases.append(_copy(576 << 20))
    cases += [_turn(item, (side, side), of_memcpy=0.95) for item in (4, 2) for side in (8192, 12288, 16384)]
    cases += [_turn(4, shape) for shape in ((4097, 8191), (3, 10_000_000), (4096, 64, 64))]
    cases += [_turn(4, (1 << 24, 12), 0.95 * 4.26), _turn(4, (12, 1 << 24), 0.95 * 4.26)]
    cases += [replace(_multiply_matrices((side,) * 3, *gpu), goal_of_peer=0.95) for side in _MATRICES]
    cases.append(_multiply_matrices((4096, 4096, 14336), *gpu, turned=True))
    cases.append(_multiply_matrices((48, 4096, 4096), *gpu))
    return tuple(cases)


def _multiply(
    kind: str,
    rows: int,
    depth: int,
    batch: int,
    gpu: tuple[int, tuple[int, int]],
    goal_us: float | None = None,
    goal_tbps: float | None = None,
) -> BenchCase:
    row_bytes = {"bf16": 2 * depth, "u4": divide_up(depth, GROUP) * (GROUP // 2)}.get(kind, depth)
    row = depth if kind == "bf16" else row_bytes
    step = rows if kind == "u4" else 1
    strides = ((depth, 1), (row, 1), (rows, 1))
    plan = plan_product(
        Product("bf16", kind, batch, rows, depth, *strides, 0, 0, kind != "bf16", step, ready=True), *gpu
    )
    scales = {"bf16": 0, "u4": 2 * rows * divide_up(depth, GROUP)}.get(kind, 4 * rows)
    sizes = {"weights": rows * row_bytes, "scales": scales, "x": 2 * batch * depth, "y": 2 * batch * rows}
    return BenchCase(
        name=f"{'gemv' if batch == 1 else f'gemv x{batch}'} {kind} {rows} x {depth}",
        plan=_expect(plan),
        sizes_bytes={name: size for name, size in sizes.items() if size},
        rotated=("weights", "scales") if scales else ("weights",),
        moved_bytes=sum(sizes.values()),
        peer={"bf16": "linear", "u4": "int4pack_mm", "e4m3": "scaled_mm", "i8": "int_mm"}[kind],
        shape=(rows, depth),
        batch=batch,
        goal_us=goal_us,
        goal_tbps=goal_tbps,
    )


def _copy(size: int) -> BenchCase:
    plan = plan_move(_lay((size,), 1), _lay((size,), 1))
    sizes = {"from": size, "to": size}
    name = f"copy {size >> 20} MiB"
    return BenchCase(name, _expect(plan), sizes, ("from", "to"), 2 * size, "copy", (size,), goal_of_memcpy=0.97)


def _turn(
    item: int, shape: tuple[int, ...], goal_tbps: float | None = None, of_memcpy: float | None = None
) -> BenchCase:
    given = _lay(shape, item)
    *outer, rows, columns = shape
    *steps, down, across = given.strides_bytes
    turned = Operand(0, (*outer, columns, rows), (*steps, across, down), item)
    plan = _expect(plan_move(turned, _lay(turned.shape, item)))
    size = item
    for extent in shape:
        size *= extent
    name = f"transpose {8 * item} bit {' x '.join(map(str, shape))}"
    sizes = {"from": size, "to": size}
    return BenchCase(
        name=name,
        plan=plan,
        sizes_bytes=sizes,
        rotated=("from", "to"),
        moved_bytes=2 * size,
        peer=f"transpose{item}",
        shape=shape,
        goal_tbps=goal_tbps,
        goal_of_memcpy=of_memcpy,
    )


def _multiply_matrices(
    sizes: tuple[int, int, int],
    multiprocessors: int,
    capability: tuple[int, int],
    *,
    turned: bool = False,
) -> BenchCase:
    """A product of m x k and k x n; `turned` where A lies by columns and B too."""
    m, n, k = sizes
    strides = (((2, 2 * m), (2, 2 * k)) if turned else ((2 * k, 2), (2 * n, 2)), (2 * n, 2))
    a, b, c = (
        DeviceArray(name, Operand(0, shape, steps, 2), "bf16", 0, read_only=False)
        for name, shape, steps in zip("abc", ((m, k), (k, n), (m, n)), (*strides[0], strides[1]), strict=True)
    )
    bytes_of = {"a": 2 * m * k, "b": 2 * k * n, "c": 2 * m * n}
    return BenchCase(
        name=f"matmul bf16 {m} x {n} x {k}{' turned' if turned else ''}",
        plan=plan_matmul(Batch(a, b, c), multiprocessors, capability),
        sizes_bytes=bytes_of,
        rotated=("a", "b", "c"),
        moved_bytes=sum(bytes_of.values()),
        peer="matmul_turned" if turned else "matmul",
        shape=sizes,
    )


def _lay(shape: tuple[int, ...], item: int) -> Operand:
    return Operand(0, shape, contiguous_strides(shape, item), item)


def _expect(plan: KernelPlan | None) -> KernelPlan:
    if plan is None:
        message = "a case of the table has nothing to do"
        raise ValueError(message)
    return plan
