"""Three Numba kernels: rows and columns of a matrix, a histogram, a product through shared memory."""

import numba
from numba import cuda

# sectorwise: launch column_means[8, 96](f32[200, 700], f32[700])
# sectorwise: launch histogram[33, 100](u8[100000]=uniform(1), i32[256])
# sectorwise: launch product[(7, 5), (16, 16)](f32[77, 90], f32[90, 101], f32[77, 101])


@cuda.jit
def column_means(values, out):
    """A thread a column."""
    x = cuda.grid(1)
    if x < values.shape[1]:
        total = numba.float32(0)
        for y in range(values.shape[0]):
            total += values[y, x]
        out[x] = total / values.shape[0]


@cuda.jit
def histogram(values, bins):
    """Bins of the block, then of all."""
    own = cuda.shared.array(256, numba.int32)
    for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        own[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        cuda.atomic.add(own, values[i], 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        cuda.atomic.add(bins, k, own[k])


@cuda.jit
def product(a, b, c):
    """Tiles of 16 by 16, with their borders."""
    left = cuda.shared.array((16, 16), numba.float32)
    right = cuda.shared.array((16, 16), numba.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = numba.float32(0)
    for k in range(0, a.shape[1], 16):
        left[ty, tx] = a[y, k + tx] if y < a.shape[0] and k + tx < a.shape[1] else numba.float32(0)
        right[ty, tx] = b[k + ty, x] if k + ty < b.shape[0] and x < b.shape[1] else numba.float32(0)
        cuda.syncthreads()
        for j in range(16):
            total += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


# mypy: disable-error-code="no-untyped-def,untyped-decorator"
