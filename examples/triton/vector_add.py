"""Adds two vectors, one block of elements a program."""

import triton
import triton.language as tl

# sectorwise: launch add_kernel[(96,)](f32[98304], f32[98304], f32[98304], 98304, BLOCK=1024)
# sectorwise: launch add_kernel[(97,)](f32[98432], f32[98432], f32[98432], 98432, BLOCK=1024)
# sectorwise: launch add_kernel[(25,)](f16[3077], f16[3077], f16[3077], 3077, BLOCK=128)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block of `BLOCK` elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)
