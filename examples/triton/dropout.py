"""Drops elements at random; the mask is made from a seed, and never stored."""

import triton
import triton.language as tl

# sectorwise: launch dropout_kernel[(64,)](f32[65536], f32[65536], 65536, 0.5, 123, BLOCK=1024)
# sectorwise: launch dropout_kernel[(10,)](f32[10000], f32[10000], 10000, 0.1, 7, BLOCK=1024)
# sectorwise: launch dropout_kernel[(13,)](f16[6150], f16[6150], 6150, 0.9, 512, BLOCK=512, num_warps=2)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """One block of `BLOCK` elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    kept = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(kept, x / (1 - p), 0.0), mask=inside)
