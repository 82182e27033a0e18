"""Where the parts of a stage lie that the blocks of a cluster fetch for each other, executed, against NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.analyze import analyze
from sectorwise.kernels.plan import SOURCES

if TYPE_CHECKING:
    from pathlib import Path

MATRICES, LINES, ALONG = 2, 200, 96
SOURCE = """#include "matmul_tma.cu"
template <int EXTENT, int CLUSTER, bool DEPTH_IN_LINES>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128)
fill(const __grid_constant__ TensorMap map, unsigned int* to, int at, int depth, int matrix) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ unsigned long long barrier;
  unsigned int base = (address_of(memory) + 1023) & ~1023u, full = address_of(&barrier);
  if (threadIdx.x == 0) {
    make_barrier(full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  join_cluster<CLUSTER>();
  if (threadIdx.x == 0) {
    expect_bytes(full, EXTENT * LINE);
    fetch<EXTENT, CLUSTER, DEPTH_IN_LINES>(base, map, at, depth, matrix, CLUSTER > 1 ? rank_in_cluster() : ALONE, full);
  }
  __syncthreads();
  wait_for(full, 0);
  const unsigned int* words = reinterpret_cast<const unsigned int*>(memory + (base - address_of(memory)));
  for (int i = threadIdx.x; i < EXTENT * LINE / 4; i += 128) to[blockIdx.x * (EXTENT * LINE / 4) + i] = words[i];
  join_cluster<CLUSTER>();
}
"""
WHOLE = np.arange(MATRICES * LINES * ALONG, dtype=np.uint16).reshape(MATRICES, LINES, ALONG)


def swizzle(lines: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """Lines of 64 elements, each piece of eight at a place that is exclusive-ored with its line."""
    pieces = lines.reshape(-1, 8, 8)
    numbers = np.arange(pieces.shape[0])[:, None]
    turned: npt.NDArray[np.uint16] = pieces[numbers, np.arange(8)[None, :] ^ numbers % 8]
    return turned.reshape(-1, 64)


def take(matrix: int, line: int, lines: int, along: int) -> npt.NDArray[np.uint16]:
    """Lines of 64 elements of a matrix, zeros outside of it."""
    wide = np.zeros((LINES + 256, ALONG + 256), np.uint16)
    wide[:LINES, :ALONG] = WHOLE[matrix]
    return wide[line : line + lines, along : along + 64]


@pytest.mark.parametrize(
    ("extent", "cluster", "along", "lines"),
    [
        (112, 2, "depth", 56),
        (128, 1, "depth", 128),
        (128, 2, "other", 64),
        (192, 2, "other", 32),
        (64, 2, "other", 32),
        (128, 1, "other", 64),
    ],
)
def test_each_block_has_all_of_a_stage(tmp_path: Path, extent: int, cluster: int, along: str, lines: int) -> None:
    source, along_depth = tmp_path / "fill.cu", along == "depth"
    # Without a cluster it says nothing which block of it this is.
    source.write_text(SOURCE.replace("ALONE", "7"), encoding="utf-8")
    tensor = f"tensor_map(u16[{MATRICES}, {LINES}, {ALONG}]=arange, box=(64, {lines}, 1), swizzle=128)"
    at, depth = (72, 64) if along_depth else (0, 136)
    launch = (
        f"fill<{extent}, {cluster}, {str(along_depth).lower()}><<<{cluster}, 128, {extent * 128 + 1024}>>>"
        f"({tensor}, u32[{cluster * extent * 32}], {at}, {depth}, 1)"
    )
    (kernel,) = analyze(source, [launch], include_folders=(SOURCES,), keep_outputs=True).kernels
    assert kernel.faults == ()
    assert kernel.outputs is not None
    found = kernel.outputs[1].values.view(np.uint16).reshape(cluster, extent, 64)
    if along_depth:
        wanted = swizzle(take(1, at, extent, depth))
    else:
        wanted = np.concatenate([swizzle(take(1, depth, 64, at + box)) for box in range(0, extent, 64)])
    for block in range(cluster):
        np.testing.assert_array_equal(found[block], wanted)
