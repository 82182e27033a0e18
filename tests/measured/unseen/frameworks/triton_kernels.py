"""Four Triton kernels: rows normalised, a gather of rows, a histogram by atomics, a product of half floats."""

import triton
import triton.language as tl

# sectorwise: launch rms_norm[(257,)](f32[257*1000], f32[1000], f32[257*1000], 1000, 0.00001, BLOCK=1024)
# sectorwise: launch rms_norm[(64,)](f16[64*2560], f16[2560], f16[64*2560], 2560, 0.00001, BLOCK=4096, num_warps=8)
# sectorwise: launch take_rows[(300,)](i32[300]=uniform(1, 5000), f32[5000*96], f32[300*96], 96, BLOCK=128)
# sectorwise: launch count_keys[(50,)](i32[50000]=uniform(2, 512), i32[512], 50000, BLOCK=1024)
# sectorwise: launch product[(4, 6)](f16[256*200], f16[200*384], f32[256*384], 256, 384, 200, M=64, N=64, K=32)


@triton.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, columns, epsilon, BLOCK: tl.constexpr):
    """A row for each program."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + at, mask=inside).to(tl.float32)
    tl.store(out_ptr + row + at, x * scale * weight, mask=inside)


@triton.jit
def take_rows(index_ptr, table_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """A row of a table by its index."""
    at = tl.arange(0, BLOCK)
    row = tl.load(index_ptr + tl.program_id(0))
    values = tl.load(table_ptr + row * columns + at, mask=at < columns)
    tl.store(out_ptr + tl.program_id(0) * columns + at, values, mask=at < columns)


@triton.jit
def count_keys(key_ptr, count_ptr, n, BLOCK: tl.constexpr):
    """How often each key occurs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    key = tl.load(key_ptr + at, mask=inside, other=0)
    tl.atomic_add(count_ptr + key, 1, mask=inside)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # noqa: ARG001 - as it was measured
    """Rows of `a` times columns of `b`, both row major, `k` no multiple of the tile's."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, k, K):
        inner = first + tl.arange(0, K)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=inner[None, :] < k, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=inner[:, None] < k, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total)


# mypy: disable-error-code="no-untyped-def,untyped-decorator"
