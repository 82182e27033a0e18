from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise.machine.divisions import find_trusted_seeds
from sectorwise.machine.execution import Certainty
from sectorwise.machine.numpy_algebra import NumpyAlgebra
from tests.machine.launching import compile_kernels, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    Values = npt.NDArray[Any]

SOURCE = r"""
#define KERNEL(name, type, expression)                                                     \
  extern "C" __global__ void name(const type* in, const type* by, type* out, int* at) {    \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                         \
    type a = in[i], b = by[i];                                                             \
    type q = expression;                                                                   \
    out[i] = q;                                                                            \
    at[(int)(q > (type)0) & 31] = 1;                                                       \
  }
KERNEL(quotient, float, a / b)
KERNEL(reciprocal, float, 1.0f / b)
KERNEL(root, float, sqrtf(fabsf(b)))
KERNEL(quotient64, double, a / b)
KERNEL(reciprocal64, double, 1.0 / b)
KERNEL(root64, double, sqrt(fabs(b)))
KERNEL(truncated, float, __fdiv_rz(a, b))
KERNEL(truncated64, double, __ddiv_rz(a, b))
KERNEL(approximate, float, __fdividef(a, b))
KERNEL(reciprocal_root, float, rsqrtf(fabsf(b)))
KERNEL(reciprocal_root64, double, rsqrt(fabs(b)))
"""

_COUNT = 1 << 13
_ROUNDED = ("quotient", "reciprocal", "root", "quotient64", "reciprocal64", "root64", "truncated", "truncated64")
_SEEDS = [("sm_80", 1), ("sm_90", -1), ("sm_90", 0), ("sm_90", 1), ("sm_120", -1)]
_EXPECTED: dict[str, Callable[[Values, Values], Values]] = {
    "quotient": lambda a, b: a / b,
    "reciprocal": lambda _a, b: b.dtype.type(1) / b,
    "root": lambda _a, b: np.sqrt(np.abs(b)),
}


def _operands(dtype: type, seed: int) -> tuple[Values, Values]:
    """Any finite bits but NaN: denormals, zeros and infinities among them; half of the exponents are ordinary."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 1 << 64, (2, _COUNT), np.uint64)
    values = words.view(np.float64) if dtype is np.float64 else words.astype(np.uint32).view(np.float32)
    ordinary: Values = (random.standard_normal((2, _COUNT)) * 8).astype(dtype)
    chosen = np.where(random.random((2, _COUNT)) < 0.5, values, ordinary)
    chosen[:, :4] = np.array([[0, 1, np.inf, 3], [2, 0, 5, np.inf]], dtype)
    chosen[np.isnan(chosen)] = 1
    return chosen[0], chosen[1]


@pytest.mark.parametrize("name", ["quotient", "reciprocal", "root", "quotient64", "reciprocal64", "root64"])
@pytest.mark.parametrize(("target", "by_ulps"), _SEEDS)
def test_no_error_of_the_seed_is_left(
    target: str, name: str, by_ulps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approximate = NumpyAlgebra.approximate

    def err(self: NumpyAlgebra, function: str, a: Values) -> Values:
        """The function, wrong by a last place (of the upper word, for doubles)."""
        best = np.array(approximate(self, function, a))
        ordinary = np.isfinite(best) & (np.abs(best) > np.finfo(best.dtype).tiny)
        bits = best.view(np.int64 if best.dtype == np.float64 else np.int32)
        step = by_ulps << 32 if best.dtype == np.float64 else by_ulps
        bits[ordinary] += step
        return best

    dtype = np.float64 if name.endswith("64") else np.float32
    a, b = _operands(dtype, 7 + by_ulps)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    monkeypatch.setattr(NumpyAlgebra, "approximate", err)
    spec = "f64" if dtype is np.float64 else "f32"
    buffers = ", ".join(f"{spec}[{_COUNT}]=@{tmp_path}/{letter}.npy" for letter in "ab")
    done = run(SOURCE, f"{name}<<<32, 256>>>({buffers}, {spec}[{_COUNT}], i32[32])", target=target)
    with np.errstate(all="ignore"):
        expected = _EXPECTED[name.removesuffix("64")](a, b)
    np.testing.assert_array_equal(done.output(2, dtype), expected)
    assert {site.certainty for site in done.execution.sites} == {Certainty.EXACT}


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_seeds_are_trusted_only_where_they_are_refined(target: str) -> None:
    kernels = compile_kernels(SOURCE, target)
    for name, kernel in kernels.items():
        seeds = {instruction.index for instruction in kernel.instructions if instruction.opcode == "MUFU"}
        trusted = find_trusted_seeds(kernel)
        assert seeds, name
        if name in _ROUNDED:
            assert trusted == seeds, name
        else:
            assert not trusted, name


def test_approximate_quotient_is_inexact() -> None:
    done = run(SOURCE, "approximate<<<1, 32>>>(f32[32]=uniform(1), f32[32]=uniform(2), f32[32], i32[32])")
    assert Certainty.ASSUMED in {site.certainty for site in done.execution.sites}
