from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.analyze import analyze

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
#include <cuda_fp16.h>
extern "C" __global__ void axpy(const float* x, float* y, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
}
extern "C" __global__ void halves(const __half2* x, __half2* y, __half2 a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __hfma2(a, x[i], y[i]);
}
extern "C" __global__ void tensor(const unsigned* a, const unsigned* b, float* c) {
    int i = threadIdx.x;
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[i]), "r"(a[i + 32]), "r"(a[i + 64]), "r"(a[i + 96]), "r"(b[i]), "r"(b[i + 32]));
    c[i] = c0 + c1 + c2 + c3;
}
"""


@pytest.mark.parametrize(
    ("launch", "data_type", "operations"),
    [
        ("axpy<<<4, 256>>>(f32[1024], f32[1024], a=2.0)", "fp32", 2 * 1024),
        ("halves<<<4, 256>>>(u32[1024], u32[1024], bytes(00400040))", "fp16", 4 * 1024),
        ("tensor<<<1, 32>>>(u32[128], u32[64], f32[32])", "fp16", 2 * 16 * 8 * 16),
    ],
)
def test_operations_are_those_of_the_algorithm(tmp_path: Path, launch: str, data_type: str, operations: int) -> None:
    (tmp_path / "kernel.cu").write_text(SOURCE)
    (kernel,) = analyze(tmp_path / "kernel.cu", launch, device="h200").kernels
    assert (kernel.roofline.data_type, kernel.roofline.operations) == (data_type, operations)
    assert kernel.roofline.compute_ns == pytest.approx(operations / kernel.roofline.peak_gflops)
