"""Turns the arrays of a product of matrices into the launch that computes it best."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.kernels.batches import turn_matrix
from sectorwise.kernels.gemv_plans import C_TYPES, VECTOR_BYTES, describe_product, plan_product
from sectorwise.kernels.plan import KernelPlan, Number, Numbers, Pointer, TensorMap, divide_up
from sectorwise.kernels.warpgroup_plans import CAPABILITY, plan_warpgroups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.kernels.arrays import DeviceArray
    from sectorwise.kernels.batches import Batch
    from sectorwise.kernels.plan import Argument

_ACROSS: Final = 128
_DEPTH: Final = 64
_STAGES: Final = 3
_ITEM_BYTES: Final = 2
_FEW: Final = 16
"""Vectors that are multiplied with weights read once."""

_MOST: Final = 1 << 30
"""Kernels count rows, columns and depth in 32 bits."""


def plan_matmul(batch: Batch, multiprocessors: int, capability: tuple[int, int]) -> KernelPlan:
    """The launch of products C [m, n] = A [m, k] B [k, n] on a GPU of so many SMs and that compute capability.

    Shapes fit, types are bf16 or f16, C is not empty. Operands are called a, b and c. What wgmma cannot take is
    multiplied by mma.sync, and what lies in no whole pieces of 16 bytes element by element.

    Raises:
        ArgumentError: an axis has 2**30 elements or more.
    """
    (m, k), n = batch.a.shape, batch.b.shape[1]
    if max(m, n, k) >= _MOST:
        raise ArgumentError(f"expected fewer than 2**30 rows, columns and depth, got {m:,}, {n:,} and {k:,}")
    plan = _plan_thin(batch, multiprocessors, capability)
    if plan is not None:
        return plan
    if capability == CAPABILITY and k and multiprocessors > 1:
        plan = plan_warpgroups(batch, multiprocessors)
        if plan is not None:
            return plan
    a, b, c = batch.a, batch.b, batch.c
    a_by_rows, b_by_rows = (_find_order(a, batch.apart[0]), _find_order(b, batch.apart[1]))
    if k == 0 or a_by_rows is None or b_by_rows is None:
        return _plan_any(batch)
    tall = 128 if divide_up(m, 128) * divide_up(n, _ACROSS) * batch.count >= multiprocessors else 64
    down, across = divide_up(m, tall), divide_up(n, _ACROSS)
    flags = ", ".join(str(flag).lower() for flag in (a_by_rows, b_by_rows))
    arguments: tuple[Argument, ...] = (
        *(Pointer("a"), Pointer("b"), Pointer("c")),
        *(Number(number, 4) for number in (m, n, k)),
        *(Number(a.strides[0 if a_by_rows else 1]), Number(b.strides[0 if b_by_rows else 1])),
        *(Number(c.strides[0]), Number(c.strides[1]), Number(down, 4), Number(across, 4), Numbers(batch.apart)),
    )
    return KernelPlan(
        "matmul.cu",
        f"matmul_tensor<{C_TYPES[a.dtype]}, {tall}, {flags}>",
        (down * across, batch.count, 1),
        (128, 1, 1),
        arguments,
        dynamic_shared_bytes=_STAGES * (tall + _ACROSS) * _DEPTH * _ITEM_BYTES,
    )


def _plan_thin(batch: Batch, multiprocessors: int, capability: tuple[int, int]) -> KernelPlan | None:
    """Few rows, or columns, as vectors times weights; None where they are not few, or the depth is not contiguous."""
    if batch.count > 1 or batch.a.shape[1] == 0:
        return None
    a, b, c = batch.a, batch.b, batch.c
    forms = ((a, turn_matrix(b), c, ("a", "b", "c")), (turn_matrix(b), a, turn_matrix(c), ("b", "a", "c")))
    for x, weights, y, names in forms:
        if x.shape[0] <= _FEW and x.strides[1] == weights.strides[1] == 1:
            plan = plan_product(describe_product(x, weights, y), multiprocessors, capability)
            if plan is not None:
                named = dict(zip(("x", "weights", "y"), names, strict=True))
                return replace(plan, arguments=tuple(_rename(each, named) for each in plan.arguments))
    return None


def _rename(argument: Argument, names: Mapping[str, str]) -> Argument:
    match argument:
        case Pointer() | TensorMap():
            return replace(argument, operand=names[argument.operand])
        case _:
            return argument


def _find_order(array: DeviceArray, apart: int) -> bool | None:
    """Whether matrices lie by rows, else by columns, in whole pieces of 16 bytes; None where they do neither."""
    for near in (1, 0):
        extent, step = array.shape[near], array.strides[1 - near]
        steps = step * _ITEM_BYTES if array.shape[1 - near] > 1 else 0, apart * _ITEM_BYTES
        if (
            array.strides[near] == 1
            and gcd(VECTOR_BYTES, array.operand.address, extent * _ITEM_BYTES, *steps) == VECTOR_BYTES
        ):
            return near == 1
    return None


def _plan_any(batch: Batch) -> KernelPlan:
    a, b, c = batch.a, batch.b, batch.c
    down, across = divide_up(c.shape[0], 16), divide_up(c.shape[1], 16)
    arguments: tuple[Argument, ...] = (
        *(Pointer("a"), Pointer("b"), Pointer("c")),
        *(Number(number, 4) for number in (c.shape[0], c.shape[1], a.shape[1])),
        *(Number(stride) for array in (a, b, c) for stride in array.strides),
        Number(across, 4),
        Numbers(batch.apart),
    )
    return KernelPlan(
        "matmul.cu", f"matmul_any<{C_TYPES[a.dtype]}>", (down * across, batch.count, 1), (256, 1, 1), arguments
    )
