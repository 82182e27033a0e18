// Dense linear algebra: products, factors and updates of matrices, row-major, single and half precision.
#include <cuda_fp16.h>

extern "C" __global__ void sgemm_tile64(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  __shared__ float as[8][64 + 4], bs[8][64];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, row = blockIdx.y * 64, col = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = t; i < 512; i += 256) as[i % 8][i / 8] = a[(row + i / 8) * n + k + i % 8];
    for (int i = t; i < 512; i += 256) bs[i / 64][i % 64] = b[(k + i / 64) * n + col + i % 64];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q) sum[p][q] += as[j][ty * 4 + p] * bs[j][tx * 4 + q];
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + ty * 4 + p) * n + col + tx * 4 + q] = sum[p][q];
}
// sectorwise: launch sgemm_tile64<<<(24, 24), 256>>>(f32[1536*1536]=noise, f32[1536*1536]=noise, f32[1536*1536], n=1536)

extern "C" __global__ void sgemm_tile128(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ c, int n) {
  __shared__ float as[8][128], bs[8][128];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, row = blockIdx.y * 128, col = blockIdx.x * 128, pitch = n / 4;
  float sum[8][8] = {};
  for (int k = 0; k < n; k += 8) {
    float4 va = a[(row + t / 2) * pitch + k / 4 + t % 2];
    int r = t / 2, s = t % 2 * 4;
    as[s][r] = va.x; as[s + 1][r] = va.y; as[s + 2][r] = va.z; as[s + 3][r] = va.w;
    *(float4*)&bs[t / 32][t % 32 * 4] = b[(k + t / 32) * pitch + col / 4 + t % 32];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float x[8], y[8];
#pragma unroll
      for (int p = 0; p < 8; p += 4) {
        *(float4*)&x[p] = *(float4*)&as[j][ty * 8 + p];
        *(float4*)&y[p] = *(float4*)&bs[j][tx * 4 + p * 16];
      }
#pragma unroll
      for (int p = 0; p < 8; ++p)
#pragma unroll
        for (int q = 0; q < 8; ++q) sum[p][q] += x[p] * y[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 8; ++p)
    for (int q = 0; q < 8; q += 4)
      c[(row + ty * 8 + p) * pitch + (col + tx * 4 + q * 16) / 4] = make_float4(sum[p][q], sum[p][q + 1], sum[p][q + 2], sum[p][q + 3]);
}
// sectorwise: launch sgemm_tile128<<<(16, 16), 256>>>(f32[2048*2048]=noise, f32[2048*2048]=noise, f32[2048*2048], n=2048)

extern "C" __global__ void hgemm_mma(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int n) {
  __shared__ half as[64][32 + 8], bs[64][32 + 8];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, row = blockIdx.y * 64, col = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 32) {
    for (int i = t; i < 64 * 4; i += 128) {
      *(uint4*)&as[i / 4][i % 4 * 8] = *(const uint4*)&a[(size_t)(row + i / 4) * n + k + i % 4 * 8];
      *(uint4*)&bs[i / 4][i % 4 * 8] = *(const uint4*)&b[(size_t)(col + i / 4) * n + k + i % 4 * 8];
    }
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned x[4];
      unsigned from = (unsigned)__cvta_generic_to_shared(&as[warp * 16 + lane % 16][kk + lane / 16 * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        unsigned y[2];
        unsigned place = (unsigned)__cvta_generic_to_shared(&bs[q * 16 + lane % 8][kk + lane / 8 % 2 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(place));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sum[q][0]), "+f"(sum[q][1]), "+f"(sum[q][2]), "+f"(sum[q][3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
      }
    }
    __syncthreads();
  }
  for (int q = 0; q < 4; ++q)
    for (int e = 0; e < 4; ++e) c[(size_t)(row + warp * 16 + lane / 4 + e / 2 * 8) * n + col + q * 16 + lane % 4 * 2 + e % 2] = sum[q][e];
}
// sectorwise: launch hgemm_mma<<<(32, 32), 128>>>(f16[2048*2048]=noise, f16[2048*2048]=noise, f32[2048*2048], n=2048)

extern "C" __global__ void gemv_transposed(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * rows;
  float sum = 0;
  for (int r = first; r < first + rows; ++r) sum += a[(size_t)r * n + c] * x[r];
  atomicAdd(&y[c], sum);
}
// sectorwise: launch gemv_transposed<<<(32, 16), 256>>>(f32[8192*8192]=noise, f32[8192]=noise, f32[8192], rows=512, n=8192)

extern "C" __global__ void rank_one(float* __restrict__ a, const float* __restrict__ x, const float* __restrict__ y, int n) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  a[(size_t)r * n + c] += x[r] * y[c];
}
// sectorwise: launch rank_one<<<(32, 8192), 256>>>(f32[8192*8192]=noise, f32[8192]=noise, f32[8192]=noise, n=8192)

extern "C" __global__ void batched_gemm16(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float as[16][17], bs[16][17];
  int t = threadIdx.x, r = t / 16, q = t % 16;
  size_t base = (size_t)blockIdx.x * 256;
  as[r][q] = a[base + t];
  bs[r][q] = b[base + t];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) sum += as[r][k] * bs[k][q];
  c[base + t] = sum;
}
// sectorwise: launch batched_gemm16<<<65536, 256>>>(f32[1<<24]=noise, f32[1<<24]=noise, f32[1<<24])

extern "C" __global__ void syrk_lower(const float* __restrict__ a, float* __restrict__ c, int n, int depth) {
  if (blockIdx.x > blockIdx.y) return;
  __shared__ float rows[32][33], columns[32][33];
  int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * 32, q = blockIdx.x * 32;
  float sum[4] = {};
  for (int k = 0; k < depth; k += 32) {
    for (int j = ty; j < 32; j += 8) {
      rows[j][tx] = a[(r + j) * depth + k + tx];
      columns[j][tx] = a[(q + j) * depth + k + tx];
    }
    __syncthreads();
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 32; ++i) sum[j] += rows[ty + 8 * j][i] * columns[tx][i];
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) c[(r + ty + 8 * j) * n + q + tx] = sum[j];
}
// sectorwise: launch syrk_lower<<<(48, 48), (32, 8)>>>(f32[1536*1024]=noise, f32[1536*1536], n=1536, depth=1024)
