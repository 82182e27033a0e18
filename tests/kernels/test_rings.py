"""Products by blocks that stay, executed, against products in float64; and which of them for which shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.kernels.gemv_plans import describe_product
from sectorwise.kernels.plan import TensorMap
from sectorwise.kernels.ring_plans import RingForm, choose_ring, plan_ring
from tests.kernels.engine import run_plan
from tests.kernels.test_gemv import STORED, compare, draw, hold, read

if TYPE_CHECKING:
    from sectorwise.kernels.gemv_plans import Product

Array = npt.NDArray[Any]
NAN = {"bf16": 0x7FC0, "f16": 0x7E00, "e4m3": 0x7F, "i8": 77}


def surround(values: Array, kind: str, left: int, right: int) -> Array:
    """A view of rows with NaN, or something, to both sides and a row of it above and below."""
    rows, columns = values.shape
    bits = {"bf16": np.uint16, "f16": np.uint16}.get(kind, values.dtype)
    memory = np.full((rows + 2, left + columns + right), NAN[kind], bits).view(values.dtype)
    memory[1:-1, left : left + columns] = values
    return memory[1:-1, left : left + columns]


def multiply_in_form(
    x: Array, weights: Array, kinds: tuple[str, str], scales: Array | None, form: RingForm, multiprocessors: int
) -> tuple[str, Array]:
    """Execute y = x W^T in a form; the kernel, and the result."""
    kind, weights_kind = kinds
    room = np.full((x.shape[0] + 1, weights.shape[0] + 3), 77, STORED[kind])
    y = room[:-1, :-3]
    memories, offsets, arrays = {}, {}, {}
    for name, view, dtype in (("x", x, kind), ("weights", weights, weights_kind), ("y", y, kind)):
        memories[name] = view if view.base is None else view.base
        arrays[name], offsets[name] = hold(name, view, memories[name], dtype)
    scale = None
    if scales is not None:
        scale, offsets["scales"] = hold("scales", scales, scales, "f32")
        memories["scales"] = scales
    product = describe_product(arrays["x"], arrays["weights"], arrays["y"], scale, ready=True)
    plan = plan_ring(product, multiprocessors, form)
    left = run_plan(plan, memories, offsets)["y"].view(STORED[kind]).reshape(room.shape)
    assert np.all(left[-1] == 77)
    assert np.all(left[:, -3:] == 77)
    return plan.kernel, read(left[:-1, :-3], kind)
