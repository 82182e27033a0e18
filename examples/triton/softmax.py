"""Softmax of rows, each held in registers whole, so that it is read once."""

import triton
import triton.language as tl

# sectorwise: launch softmax_kernel[(64,)](f32[64*1024], f32[64*1024], 1024, 1024, 64, 1024, BLOCK=1024)
# sectorwise: launch softmax_kernel[(32,)](f32[128*781], f32[128*781], 781, 781, 128, 781, BLOCK=1024)
# sectorwise: launch softmax_kernel[(48,)](f16[48*4096], f16[48*4096], 4096, 4096, 48, 4096, BLOCK=4096, num_warps=8)


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    """Every program takes each `num_programs`th row."""
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        offsets = tl.arange(0, BLOCK)
        inside = offsets < columns
        x = tl.load(in_ptr + row * in_stride + offsets, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        y = e / tl.sum(e, axis=0)
        tl.store(out_ptr + row * out_stride + offsets, y, mask=inside)
