"""Two CuPy kernels: a running maximum of each row, and a map that CuPy makes the loop of."""

import cupy

# sectorwise: launch row_maxima[50, 64](f32[50*777]=uniform(1), f32[50*777], 777)
# sectorwise: launch clip_mix[40, 128](f32[5000], f32[5000], f32[5000])

row_maxima = cupy.RawKernel(
    r"""
extern "C" __global__ void row_maxima(const float *in, float *out, int n) {
    __shared__ float last[64];
    const float *row = in + blockIdx.x * n;
    float carry = -1e30f;
    for (int base = 0; base < n; base += 64) {
        float v = base + threadIdx.x < n ? row[base + threadIdx.x] : -1e30f;
        last[threadIdx.x] = v;
        for (int d = 1; d < 64; d *= 2) {
            __syncthreads();
            float other = threadIdx.x >= d ? last[threadIdx.x - d] : -1e30f;
            __syncthreads();
            last[threadIdx.x] = fmaxf(last[threadIdx.x], other);
        }
        __syncthreads();
        if (base + threadIdx.x < n) out[blockIdx.x * n + base + threadIdx.x] = fmaxf(carry, last[threadIdx.x]);
        carry = fmaxf(carry, last[63]);
        __syncthreads();
    }
}
""",
    "row_maxima",
)

clip_mix = cupy.ElementwiseKernel(
    "float32 x, float32 y", "float32 z", "float t = x < 0 ? 0 : x > 1 ? 1 : x; z = t * y + (1 - t) * x", "clip_mix"
)

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
