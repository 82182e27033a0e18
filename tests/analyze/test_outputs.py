"""What the executed kernels leave in their buffers is what NumPy computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sectorwise.analyze import analyze

SOURCE = Path(__file__).parent / "kernels" / "outputs.cu"


def execute(launch: str) -> list[npt.NDArray[Any]]:
    """The buffers of a launch after it, in the order of its arguments."""
    (kernel,) = analyze(SOURCE, launch, keep_outputs=True).kernels
    assert kernel.faults == ()
    assert kernel.outputs is not None
    return [output.values for output in kernel.outputs if output.argument.startswith("argument")]


def test_transpose_of_a_ragged_matrix() -> None:
    matrix, turned = execute(
        "transpose<<<(3, 4), (32, 8)>>>(f32[70*100]=uniform(1), f32[100*70], rows=100, columns=70)"
    )
    np.testing.assert_array_equal(turned.reshape(70, 100), matrix.reshape(100, 70).T)
    assert len(np.unique(matrix)) > 6900


def test_gemv() -> None:
    matrix, vector, out = execute(
        "gemv<<<8, (32, 4)>>>(f32[32*512]=uniform(1), f32[512]=uniform(2), f32[32], quads=128)"
    )
    expected = matrix.reshape(32, 512).astype(np.float64) @ vector.astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=2e-6)


def test_tiled_gemm() -> None:
    a, b, c = execute("gemm<<<(4, 4), (16, 16)>>>(f32[64*64]=uniform(1), f32[64*64]=uniform(2), f32[64*64], n=64)")
    expected = a.reshape(64, 64).astype(np.float64) @ b.reshape(64, 64).astype(np.float64)
    np.testing.assert_allclose(c.reshape(64, 64), expected, rtol=2e-6)


def test_reduction_of_whole_numbers_is_exact() -> None:
    values, total = execute("reduce<<<5, 256>>>(i32[10000]=uniform(3), i64[1], n=10000)")
    assert total[0] == values.astype(np.int64).sum()
    assert total[0] > 1 << 40


def test_histogram() -> None:
    values, bins = execute("histogram<<<3, 256>>>(u8[5000]=uniform(4), u32[256], n=5000)")
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=256))


def test_gather() -> None:
    values, index, out = execute("gather<<<4, 256>>>(f64[1000]=uniform(5), i32[1000]=perm(7), f64[1000], n=1000)")
    np.testing.assert_array_equal(out, values[index])
    assert sorted(index) == list(range(1000))
