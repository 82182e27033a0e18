// Launches of milliseconds and less whose time is looked at: rows, copies, records, transposes, sums at several sizes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__device__ float sum_warp(float v) { for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d); return v; }

extern "C" __global__ void rows_by_warp(const uint4* __restrict__ m, const uint4* __restrict__ x, float* __restrict__ y, int rows, int eights) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
#pragma unroll 4
  for (int j = lane; j < eights; j += 32) {
    uint4 a = m[(size_t)row * eights + j], b = x[j];
    const __nv_bfloat162 *p = reinterpret_cast<const __nv_bfloat162*>(&a), *q = reinterpret_cast<const __nv_bfloat162*>(&b);
    for (int k = 0; k < 4; ++k) { float2 u = __bfloat1622float2(p[k]), v = __bfloat1622float2(q[k]); sum += u.x * v.x + u.y * v.y; }
  }
  sum = sum_warp(sum);
  if (lane == 0) y[row] = sum;
}
// sectorwise: launch rows_by_warp<<<1280, 256>>>(u16[10240*5120]=noise, u16[5120]=noise, f32[10240], 10240, 640)
// sectorwise: launch rows_by_warp<<<2560, 64>>>(u16[5120*20480]=noise, u16[20480]=noise, f32[5120], 5120, 2560)
// sectorwise: launch rows_by_warp<<<125, 128>>>(u16[500*4096]=noise, u16[4096]=noise, f32[500], 500, 512)

extern "C" __global__ void rows_by_block(const float4* __restrict__ m, const float4* __restrict__ x, float* __restrict__ y, int quads) {
  __shared__ float part[8];
  float sum = 0;
  for (int j = threadIdx.x; j < quads; j += blockDim.x) { float4 a = m[(size_t)blockIdx.x * quads + j], b = x[j]; sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
  sum = sum_warp(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) { for (int k = 1; k < blockDim.x / 32; ++k) sum += part[k]; y[blockIdx.x] = sum; }
}
// sectorwise: launch rows_by_block<<<6000, 256>>>(f32[6000*6000]=noise, f32[6000]=noise, f32[6000], 1500)
// sectorwise: launch rows_by_block<<<1000, 128>>>(f32[1000*30000]=noise, f32[30000]=noise, f32[1000], 7500)

extern "C" __global__ void columns_by_thread(const __half* __restrict__ m, const float* __restrict__ x, float* y, int rows, int columns, int each) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int r = blockIdx.y * each; r < min(rows, (blockIdx.y + 1) * each); ++r) sum += __half2float(m[(size_t)r * columns + c]) * x[r];
  atomicAdd(&y[c], sum);
}
// sectorwise: launch columns_by_thread<<<(32, 32), 128>>>(f16[4096*4096]=noise, f32[4096]=noise, f32[4096], 4096, 4096, 128)

template <int N> __device__ void copy_body(const float4* __restrict__ in, float4* __restrict__ out, int n) {
  int at = blockIdx.x * blockDim.x * N + threadIdx.x;
  float4 v[N];
#pragma unroll
  for (int k = 0; k < N; ++k) if (at + k * blockDim.x < n) v[k] = in[at + k * blockDim.x];
#pragma unroll
  for (int k = 0; k < N; ++k) if (at + k * blockDim.x < n) out[at + k * blockDim.x] = v[k];
}
extern "C" __global__ void copy_one(const float4* in, float4* out, int n) { copy_body<1>(in, out, n); }
// sectorwise: launch copy_one<<<32768, 256>>>(f32[1<<25]=noise, f32[1<<25], 8388608)
extern "C" __global__ void copy_four(const float4* in, float4* out, int n) { copy_body<4>(in, out, n); }
// sectorwise: launch copy_four<<<8192, 256>>>(f32[1<<25]=noise, f32[1<<25], 8388608)
// sectorwise: launch copy_four<<<500, 256>>>(f32[2048000]=noise, f32[2048000], 512000)
extern "C" __global__ void copy_eight_words(const float* __restrict__ in, float* __restrict__ out, int n) {
  int at = blockIdx.x * blockDim.x * 8 + threadIdx.x;
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = in[at + k * blockDim.x];
#pragma unroll
  for (int k = 0; k < 8; ++k) out[at + k * blockDim.x] = v[k] * 2;
}
// sectorwise: launch copy_eight_words<<<16384, 128>>>(f32[1<<24]=noise, f32[1<<24], 16777216)

struct Body { float x, y, z, vx, vy, vz, mass, charge, spin, age; };
extern "C" __global__ void push(Body* __restrict__ b, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { b[i].x += dt * b[i].vx; b[i].y += dt * b[i].vy; b[i].z += dt * b[i].vz; }
}
// sectorwise: launch push<<<8192, 256>>>(u8[40*2097152], 0.5, 2097152)
extern "C" __global__ void masses(const Body* __restrict__ b, float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = b[i].mass * b[i].charge;
}
// sectorwise: launch masses<<<8192, 256>>>(u8[40*2097152]=noise, f32[2097152], 2097152)

extern "C" __global__ void turn_plain(const float* __restrict__ in, float* __restrict__ out, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x, y0 = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) if (x < width && y0 + k < height) out[(size_t)x * height + y0 + k] = in[(size_t)(y0 + k) * width + x];
}
// sectorwise: launch turn_plain<<<(96, 150), (32, 8)>>>(f32[3072*4800]=noise, f32[3072*4800], 3072, 4800)
extern "C" __global__ void turn_tile(const __half* __restrict__ in, __half* __restrict__ out, int width, int height) {
  __shared__ __half tile[64][66];
  int x = blockIdx.x * 64 + 2 * threadIdx.x, y0 = blockIdx.y * 64 + threadIdx.y;
  for (int k = 0; k < 64; k += 8) *reinterpret_cast<__half2*>(&tile[threadIdx.y + k][2 * threadIdx.x]) = *reinterpret_cast<const __half2*>(&in[(size_t)(y0 + k) * width + x]);
  __syncthreads();
  x = blockIdx.y * 64 + 2 * threadIdx.x; y0 = blockIdx.x * 64 + threadIdx.y;
  for (int k = 0; k < 64; k += 8) *reinterpret_cast<__half2*>(&out[(size_t)(y0 + k) * height + x]) = __halves2half2(tile[2 * threadIdx.x][threadIdx.y + k], tile[2 * threadIdx.x + 1][threadIdx.y + k]);
}
// sectorwise: launch turn_tile<<<(64, 96), (32, 8)>>>(f16[4096*6144]=noise, f16[4096*6144], 4096, 6144)

extern "C" __global__ void sum_all(const float4* __restrict__ in, float* out, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { float4 v = in[i]; sum += v.x + v.y + v.z + v.w; }
  sum = sum_warp(sum);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
// sectorwise: launch sum_all<<<1056, 256>>>(f32[1<<26]=noise, f32[1], 16777216)
// sectorwise: launch sum_all<<<132, 512>>>(f32[1<<24]=noise, f32[1], 4194304)
// sectorwise: launch sum_all<<<65536, 256>>>(f32[1<<26]=noise, f32[1], 16777216)

extern "C" __global__ void reread(const float4* __restrict__ in, float* __restrict__ out, int n, int times) {
  float sum = 0;
  for (int t = 0; t < times; ++t)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { float4 v = __ldcg(&in[i]); sum += v.x * t + v.w; }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// sectorwise: launch reread<<<528, 512>>>(f32[5242880]=noise, f32[528*512], 1310720, 4)
// sectorwise: launch reread<<<528, 512>>>(f32[10485760]=noise, f32[528*512], 2621440, 4)
// sectorwise: launch reread<<<528, 512>>>(f32[15728640]=noise, f32[528*512], 3932160, 3)
