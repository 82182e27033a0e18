"""Two kernels for CuPy: one that is written whole, one of which CuPy makes the loop."""

import cupy

# sectorwise: launch gather[32, 128](f32[8192], i32[4096]=perm(7), f32[4096], 4096)
# sectorwise: launch gather[4, 256](f32[1000], i32[1000]=arange, f32[1000], 1000)
# sectorwise: launch gather[2, 64](f32[4096], i32[100]=uniform(3, 4096), f32[100], 100)
# sectorwise: launch squared_distance[32, 128](f32[4096], f32[4096], f32[4096])
# sectorwise: launch squared_distance[4, 128](f32[1000], f32[1000], f32[1000])
# sectorwise: launch squared_distance[2, 128](f32[200], f32[200], f32[200])

gather = cupy.RawKernel(
    r"""
extern "C" __global__ void gather(const float *values, const int *places, float *out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) out[i] = values[places[i]];
}
""",
    "gather",
)

squared_distance = cupy.ElementwiseKernel(
    "float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_distance"
)
