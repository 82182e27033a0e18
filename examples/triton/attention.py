"""Attention, forward: keys and values go by in blocks, the softmax is kept up to date on the way."""

import triton
import triton.language as tl

# sectorwise: launch attention_kernel[(4, 2)](f16[2*256*64], f16[2*256*64], f16[2*256*64], f16[2*256*64],
#   256, 0.125, HEAD=64, BLOCK_M=64, BLOCK_N=64, CAUSAL=true)
# sectorwise: launch attention_kernel[(2, 3)](f16[3*128*32], f16[3*128*32], f16[3*128*32], f16[3*128*32],
#   128, 0.17, HEAD=32, BLOCK_M=64, BLOCK_N=32, CAUSAL=false)
# sectorwise: launch attention_kernel[(4, 1)](f16[200*64], f16[200*64], f16[200*64], f16[200*64],
#   200, 0.125, HEAD=64, BLOCK_M=64, BLOCK_N=32, CAUSAL=true, num_warps=8)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """`BLOCK_M` queries of one head."""
    head = tl.program_id(1) * length * HEAD
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, HEAD)
    q = tl.load(q_ptr + head + rows[:, None] * HEAD + depth[None, :], mask=rows[:, None] < length, other=0.0)
    largest = tl.full([BLOCK_M], -1e30, dtype=tl.float32)
    weight = tl.zeros([BLOCK_M], dtype=tl.float32)
    total = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BLOCK_M, length) if CAUSAL else length
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + columns[None, :] * HEAD + depth[:, None], mask=columns[None, :] < length, other=0.0)
        score = tl.dot(q, k) * (scale * 1.44269504)
        seen = columns[None, :] < length
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        score = tl.where(seen, score, -1e30)
        new = tl.maximum(largest, tl.max(score, 1))
        p = tl.exp2(score - new[:, None])
        shrink = tl.exp2(largest - new)
        weight = weight * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + head + columns[:, None] * HEAD + depth[None, :], mask=columns[:, None] < length, other=0.0)
        total = tl.dot(p.to(tl.float16), v, total * shrink[:, None])
        largest = new
    out = total / weight[:, None]
    where = out_ptr + head + rows[:, None] * HEAD + depth[None, :]
    tl.store(where, out.to(tl.float16), mask=rows[:, None] < length)
