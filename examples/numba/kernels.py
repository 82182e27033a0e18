"""Four kernels for Numba: a map, a transpose through shared memory, a sum of blocks, a stencil on a matrix."""

import numba
from numba import cuda

# sectorwise: launch saxpy[16, 256](2.0, f32[4096], f32[4096])
# sectorwise: launch saxpy[3, 128](0.5, f32[300], f32[300])
# sectorwise: launch saxpy[8, 64](2.0, f64[500], f64[500])
# sectorwise: launch transpose[(2, 2), (32, 8)](f32[64, 64], f32[64, 64])
# sectorwise: launch transpose[(4, 3), (32, 8)](f32[96, 128], f32[128, 96])
# sectorwise: launch transpose[(2, 2), (32, 8)](f64[50, 40], f64[40, 50])
# sectorwise: launch block_sum[8, 128](i32[1024]=arange, i32[8])
# sectorwise: launch block_sum[4, 128](i32[500]=arange, i32[4])
# sectorwise: launch block_sum[2, 128](i32[256]=uniform(3, 100), i32[2])
# sectorwise: launch stencil[(4, 4), (16, 16)](f32[64, 64], f32[64, 64])
# sectorwise: launch stencil[(2, 4), (32, 8)](f32[30, 60], f32[30, 60])
# sectorwise: launch stencil[(3, 3), (16, 16)](f64[48, 48], f64[48, 48])

TILE = 32
PADDED = TILE + 1
THREADS = 128


@cuda.jit
def saxpy(a, x, y):
    """`y` plus `a` times `x`."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]


@cuda.jit
def transpose(source, out):
    """Tiles of 32 by 32, padded by a column."""
    tile = cuda.shared.array((TILE, PADDED), numba.float32)
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    for j in range(cuda.threadIdx.y, TILE, 8):
        y = cuda.blockIdx.y * TILE + j
        if y < source.shape[0] and x < source.shape[1]:
            tile[j, cuda.threadIdx.x] = source[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    for j in range(cuda.threadIdx.y, TILE, 8):
        y = cuda.blockIdx.x * TILE + j
        if y < out.shape[0] and x < out.shape[1]:
            out[y, x] = tile[cuda.threadIdx.x, j]


@cuda.jit
def block_sum(values, sums):
    """One sum a block, by halves in shared memory."""
    partial = cuda.shared.array(THREADS, numba.int32)
    i = cuda.grid(1)
    lane = cuda.threadIdx.x
    partial[lane] = values[i] if i < values.size else 0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if lane < step:
            partial[lane] += partial[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        sums[cuda.blockIdx.x] = partial[0]


@cuda.jit
def stencil(source, out):
    """The mean of the four neighbours, inside the edge."""
    column, row = cuda.grid(2)
    if 0 < row < source.shape[0] - 1 and 0 < column < source.shape[1] - 1:
        around = source[row - 1, column] + source[row + 1, column]
        out[row, column] = (around + source[row, column - 1] + source[row, column + 1]) / 4
