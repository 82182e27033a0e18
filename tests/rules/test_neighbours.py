"""Sectors that DRAM brings beside those that are missed: wanted a little later, they are no waste and no repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.analyze import analyze

if TYPE_CHECKING:
    from pathlib import Path

PRODUCT = """
// sectorwise: launch product<<<(32, 32), (16, 16)>>>(f32[512*512], f32[512*512], f32[512*512], 512)
extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float rows[16][16], columns[16][16];
    int x = threadIdx.y, y = threadIdx.x;  // lanes along the columns
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int first = 0; first < n; first += 16) {
        rows[y][x] = a[row * n + first + x];
        columns[y][x] = b[(first + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += rows[y][k] * columns[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""


def test_neighbours_that_are_wanted_later_are_used_and_counted_once(tmp_path: Path) -> None:
    source = tmp_path / "product.cu"
    source.write_text(PRODUCT, encoding="utf-8")
    (kernel,) = analyze(source, follow_caches=True).kernels
    found = {finding.code: finding for finding in kernel.findings}
    assert "SW108" not in found
    evidence = found["SW104"].evidence
    assert evidence is not None
    # A sector is asked for by 32 blocks, and by four warps of each: two of its words at a time.
    assert (evidence.real, evidence.ideal) == (128 * 65_536, 65_536)
