// Streaming reads: a warp asks for `Loads` words of 4, 8 or 16 bytes a lane, then adds them up, and so on.
//
// The kernels behind ../h200/curves.json, written again from its rows: 7 of the 8 recorded register counts are equal (two 4-byte
// loads: 16 here, 18 recorded), and so are, within 3 %, the bandwidths up to 3.8 TB/s when these run on the same GPU.
// Compiled by NVRTC 13.0 with -arch=sm_90. Grid: blocks an SM x SMs; the buffer is a multiple of a grid's step.

__device__ __forceinline__ float add_up(float v) { return v; }
__device__ __forceinline__ float add_up(float2 v) { return v.x + v.y; }
__device__ __forceinline__ float add_up(float4 v) { return v.x + v.y + v.z + v.w; }

template <typename Word, int Loads>
__device__ __forceinline__ void read(const Word* __restrict__ in, float* __restrict__ out, size_t words) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  size_t step = (size_t)gridDim.x * blockDim.x;
  float sum = 0;
#pragma unroll 1
  for (; i < words; i += Loads * step) {
    Word loaded[Loads];
#pragma unroll
    for (int k = 0; k < Loads; ++k) loaded[k] = in[i + k * step];
#pragma unroll
    for (int k = 0; k < Loads; ++k) sum += add_up(loaded[k]);
  }
  if (sum == 123.456f) out[0] = sum;
}

#define READ(name, Word, Loads)                                                                            \
  extern "C" __global__ void name(const Word* __restrict__ in, float* __restrict__ out, size_t words) {    \
    read<Word, Loads>(in, out, words);                                                                     \
  }

READ(read_4_1, float, 1)
READ(read_4_2, float, 2)
READ(read_4_4, float, 4)
READ(read_4_8, float, 8)
READ(read_8_1, float2, 1)
READ(read_8_2, float2, 2)
READ(read_8_4, float2, 4)
READ(read_8_8, float2, 8)
READ(read_16_1, float4, 1)
READ(read_16_2, float4, 2)
READ(read_16_4, float4, 4)
READ(read_16_8, float4, 8)
