"""Multiplies matrices of halves; programs are ordered in groups of rows, so that neighbours share tiles in the L2."""

import triton
import triton.language as tl

# sectorwise: launch matmul_kernel[(16,)](f16[256*128], f16[128*256], f16[256*256], 256, 256, 128,
#   128, 1, 256, 1, 256, 1, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP=4)
# sectorwise: launch matmul_kernel[(8,)](f16[256*64], f16[64*256], f16[256*256], 256, 256, 64,
#   64, 1, 256, 1, 256, 1, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, GROUP=8, num_warps=8)
# sectorwise: launch matmul_kernel[(6,)](f16[100*96], f16[96*90], f16[100*90], 100, 90, 96,
#   96, 1, 90, 1, 90, 1, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32, GROUP=2, num_warps=2)


@triton.jit
def place(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """The row and the column of this program's tile, going down `GROUP` rows before the next column."""
    columns = tl.cdiv(n, BLOCK_N)
    group = tl.program_id(0) // (GROUP * columns)
    first = group * GROUP
    height = min(tl.cdiv(m, BLOCK_M) - first, GROUP)
    within = tl.program_id(0) % (GROUP * columns)
    return first + within % height, within // height


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, a_column, b_row, b_column, c_row, c_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One tile of `c`."""
    row, column = place(m, n, BLOCK_M, BLOCK_N, GROUP)
    rows = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    columns = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * a_row + inner[None, :] * a_column
    b = b_ptr + inner[:, None] * b_row + columns[None, :] * b_column
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(k, BLOCK_K)):
        left = tl.load(a, mask=inner[None, :] < k - step * BLOCK_K, other=0.0)
        right = tl.load(b, mask=inner[:, None] < k - step * BLOCK_K, other=0.0)
        total = tl.dot(left, right, total)
        a += BLOCK_K * a_column
        b += BLOCK_K * b_row
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * c_row + columns[None, :] * c_column, total.to(tl.float16), mask=inside)
