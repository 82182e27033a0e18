"""Rows of matrices must begin at multiples of 16 bytes: else the GPU faults, and so do we."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.analyze import analyze

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """
extern "C" __global__ void rows(unsigned* out) {
    __shared__ __align__(128) unsigned short tile[32][PITCH];
    for (int i = threadIdx.x; i < 32 * 64; i += 32) tile[i / 64][i % 64] = i;
    __syncwarp();
    unsigned from = __cvta_generic_to_shared(&tile[threadIdx.x][0]);
    unsigned a, b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(from));
    out[threadIdx.x] = a ^ b;
}
"""


@pytest.mark.parametrize(("pitch", "lanes"), [(64, 0), (72, 0), (68, 8), (65, 14)])
def test_a_row_that_is_not_aligned_is_a_fault(tmp_path: Path, pitch: int, lanes: int) -> None:
    path = tmp_path / "rows.cu"
    path.write_text(KERNEL, encoding="utf-8")
    (kernel,) = analyze(path, "rows<<<1, 32>>>(u32[32])", macros=[f"PITCH={pitch}"]).kernels
    wide = [fault for fault in kernel.faults if fault.width_bytes == 16]
    assert sum(fault.occurrences for fault in wide) == lanes  # of the 16 that give an address
    assert {fault.code for fault in wide} == ({"SW902"} if lanes else set())
