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


def widen_range(x: Array) -> Array:
    """Numbers of bfloat16 whose exponents are anything from 2^-37 to 2^32: no power of two makes all of them f16."""
    exponents = np.random.default_rng(5).integers(90, 160, x.shape).astype(np.uint16)
    return (x & np.uint16(0x807F)) | exponents << np.uint16(7)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("weights_kind", ["i8", "e4m3"])
@pytest.mark.parametrize(
    ("batch", "rows", "depth", "form", "multiprocessors"),
    [
        (1, 83, 1040, RingForm(8, 1, 1, 2), 2),
        (11, 83, 1040, RingForm(4, 2, 2, 2), 4),
        (3, 5, 2064, RingForm(16, 1, 1, 2), 132),
        (12, 21, 1056, RingForm(4, 2, 4, 2), 8),
    ],
)
def test_weights_of_eight_bits(
    kind: str, weights_kind: str, batch: int, rows: int, depth: int, form: RingForm, multiprocessors: int
) -> None:
    x = surround(draw((batch, depth), kind, 1), kind, 8, 16)
    weights, scales = surround(draw((rows, depth), weights_kind, 2), weights_kind, 16, 32), draw((rows,), "f32", 3)
    _, result = multiply_in_form(x, weights, (kind, weights_kind), scales, form, multiprocessors)
    compare(result, read(x, kind), read(weights, weights_kind) * scales[:, None].astype(np.float64), kind)


@pytest.mark.parametrize("weights_kind", ["i8", "e4m3"])
def test_inputs_of_any_range(weights_kind: str) -> None:
    x, weights = draw((4, 1024), "bf16", 1), draw((20, 1024), weights_kind, 2)
    x[1] = widen_range(x[1])
    x[2, ::3] = 0
    x[3] = 0
    # What is largest meets nothing: the sums are those of the others, which are 2^100 times smaller.
    large, nothing = np.zeros((1, 1), np.uint16) + 0x7100, draw((1, 1), weights_kind, 1) * 0
    x[0, 7:8], weights[:, 7:8] = large, nothing
    _, result = multiply_in_form(x, weights, ("bf16", weights_kind), None, RingForm(8, 1, 1, 2), 2)
    compare(result, read(x, "bf16"), read(weights, weights_kind), "bf16")


def test_what_is_no_number_stays_in_its_row() -> None:
    x, weights = draw((2, 1024), "bf16", 1), draw((20, 1024), "e4m3", 2)
    weights[3, 1000] = NAN["e4m3"]
    expected = read(weights, "e4m3")
    expected[3] = 0
    _, result = multiply_in_form(x, weights, ("bf16", "e4m3"), None, RingForm(8, 1, 1, 2), 2)
    assert np.all(np.isnan(result[:, 3]))
    result[:, 3] = 0
    compare(result, read(x, "bf16"), expected, "bf16")
