"""Normalises rows, and gives the gradients: of the input row by row, of weight and bias as partial sums."""

import triton
import triton.language as tl

# sectorwise: launch forward_kernel[(64,)](f16[64*1024], f16[64*1024], f16[1024], f16[1024], f32[64], f32[64],
#   1024, 1024, 1e-5, BLOCK=1024)
# sectorwise: launch forward_kernel[(40,)](f32[40*1000], f32[40*1000], f32[1000], f32[1000], f32[40], f32[40],
#   1000, 1000, 1e-5, BLOCK=512)
# sectorwise: launch forward_kernel[(7,)](f16[7*777], f16[7*777], f16[777], f16[777], f32[7], f32[7],
#   777, 777, 1e-5, BLOCK=256, num_warps=2)
# sectorwise: launch backward_kernel[(16,)](f16[64*1024], f16[64*1024], f16[64*1024], f16[1024], f32[64], f32[64],
#   f32[16*1024], f32[16*1024], 1024, 64, 1024, BLOCK=1024, num_warps=8)
# sectorwise: launch backward_kernel[(8,)](f32[40*1000], f32[40*1000], f32[40*1000], f32[1000], f32[40], f32[40],
#   f32[8*1000], f32[8*1000], 1000, 40, 1000, BLOCK=1024)
# sectorwise: launch backward_kernel[(7,)](f16[7*777], f16[7*777], f16[7*777], f16[777], f32[7], f32[7],
#   f32[7*777], f32[7*777], 777, 7, 777, BLOCK=1024)
# sectorwise: launch sum_kernel[(8,)](f32[16*1024], f32[1024], 16, 1024, ROWS=16, COLUMNS=128)
# sectorwise: launch sum_kernel[(32,)](f32[8*1000], f32[1000], 8, 1000, ROWS=32, COLUMNS=32)
# sectorwise: launch sum_kernel[(7,)](f32[7*777], f32[777], 7, 777, ROWS=32, COLUMNS=128)


@triton.jit
def forward_kernel(x_ptr, y_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    """One row, in steps of `BLOCK`: the mean, the variance, the result."""
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
        away = tl.where(offsets < columns, x - mean, 0.0)
        squares += away * away
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        inside = offsets < columns
        weight = tl.load(weight_ptr + offsets, mask=inside)
        bias = tl.load(bias_ptr + offsets, mask=inside)
        x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + offsets, (x - mean) * rstd * weight + bias, mask=inside)


@triton.jit
def backward_kernel(
    dx_ptr, dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dweight_ptr, dbias_ptr, stride, rows, columns,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Every program takes each `num_programs`th row, and leaves its sums for weight and bias in a row of its own."""
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    weight = tl.load(weight_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], dtype=tl.float32)
    dbias = tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride + offsets, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride + offsets, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(inside, (x - mean) * rstd, 0.0)
        weighted = weight * dy
        along = tl.sum(normal * weighted, axis=0) / columns
        average = tl.sum(weighted, axis=0) / columns
        tl.store(dx_ptr + row * stride + offsets, (weighted - normal * along - average) * rstd, mask=inside)
        dweight += dy * normal
        dbias += dy
    partial = tl.program_id(0) * columns + offsets
    tl.store(dweight_ptr + partial, dweight, mask=inside)
    tl.store(dbias_ptr + partial, dbias, mask=inside)


@triton.jit
def sum_kernel(partial_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Adds the rows of partial sums."""
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (offsets[None, :] < columns)
        total += tl.load(partial_ptr + row[:, None] * columns + offsets[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + offsets, tl.sum(total, axis=0), mask=offsets < columns)
