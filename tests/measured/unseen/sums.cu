// Reductions and atomics: shuffles, shared trees, every type and operation, results used and not.
#include <cuda_fp16.h>

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void dot(const float* __restrict__ a, const float* __restrict__ b, float* out, int n) {
  __shared__ float part[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < (blockDim.x + 31) / 32 ? part[threadIdx.x] : 0;
    sum = warp_sum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}
// sectorwise: launch dot<<<528, 256>>>(f32[1<<22]=noise, f32[1<<22]=noise, f32[1], 4194304)
// sectorwise: launch dot<<<133, 96>>>(f32[100000]=noise, f32[100000]=noise, f32[1], 100000)

extern "C" __global__ void row_norms(const float* __restrict__ m, float* __restrict__ out, int columns) {
  extern __shared__ float tree[];
  float sum = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) { float v = m[(size_t)blockIdx.x * columns + j]; sum += v * v; }
  tree[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) tree[threadIdx.x] += tree[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(tree[0]);
}
// sectorwise: launch row_norms<<<2000, 256, 1024>>>(f32[2000*1003]=noise, f32[2000], 1003)

extern "C" __global__ void column_sums(const float* __restrict__ m, float* out, int rows, int columns) {
  __shared__ float part[8][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (x < columns) for (int y = blockIdx.y * 8 + threadIdx.y; y < rows; y += 8 * gridDim.y) sum += m[(size_t)y * columns + x];
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && x < columns) {
    for (int k = 1; k < 8; ++k) sum += part[k][threadIdx.x];
    atomicAdd(&out[x], sum);
  }
}
// sectorwise: launch column_sums<<<(32, 16), (32, 8)>>>(f32[2048*1000]=noise, f32[1000], 2048, 1000)

extern "C" __global__ void argmin_rows(const float* __restrict__ m, int* __restrict__ out, int columns) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  float best = 1e30f; int at = 0;
  for (int j = threadIdx.x; j < columns; j += 32) { float v = m[row * columns + j]; if (v < best) { best = v; at = j; } }
  for (int d = 16; d; d >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, best, d); int where = __shfl_xor_sync(0xffffffffu, at, d);
    if (other < best || (other == best && where < at)) { best = other; at = where; }
  }
  if (threadIdx.x == 0) out[row] = at;
}
// sectorwise: launch argmin_rows<<<250, (32, 4)>>>(f32[1000*500]=uniform(1), i32[1000], 500)

extern "C" __global__ void tally_all(const int* __restrict__ in, int* i, unsigned* u, unsigned long long* l, float* f, double* d, __half2* h, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int v = in[t], k = v & 15;
  atomicAdd(&i[k], v);
  atomicMin(&i[16 + k], v);
  atomicMax(&i[32 + k], v);
  atomicAnd(&i[48 + k], v);
  atomicOr(&i[64 + k], v);
  atomicXor(&i[80 + k], v);
  atomicInc(&u[k], 1000u);
  atomicDec(&u[16 + k], 1000u);
  atomicSub(&u[32 + k], (unsigned)v);
  atomicAdd(&l[k], (unsigned long long)v);
  atomicMax(&l[16 + k], (unsigned long long)v);
  atomicAdd(&f[k], (float)v);
  atomicAdd(&d[k], (double)v);
  atomicAdd(&h[k], __floats2half2_rn(1.0f, 2.0f));
}
// sectorwise: launch tally_all<<<64, 128>>>(i32[8192]=uniform(2, 5000), i32[96], u32[48], u64[32], f32[16], f64[16], f16[32], 8000)
// sectorwise: launch tally_all<<<3, 96>>>(i32[288]=arange, i32[96], u32[48], u64[32], f32[16], f64[16], f16[32], 288)

extern "C" __global__ void take_tickets(const int* __restrict__ in, int* i, unsigned* u, unsigned long long* l, float* f, int* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int k = in[t] & 63, got = 0;
  got += atomicAdd(&i[k], 1);
  got ^= atomicExch(&i[64 + k], t);
  got ^= atomicCAS(&i[128 + k], 0, t);
  got += atomicMax(&i[192 + k], t);
  got += atomicInc(&u[k], 77u);
  got ^= (int)atomicOr(&u[64 + k], 1u << (t & 31));
  got += (int)atomicAdd(&l[k], 3ull);
  got += (int)atomicExch(&l[64 + k], (unsigned long long)t);
  got += (int)atomicCAS(&l[128 + k], 0ull, (unsigned long long)t);
  got += (int)atomicAdd(&f[k], 1.5f);
  out[t] = got;
}
// sectorwise: launch take_tickets<<<64, 256>>>(i32[16384]=uniform(3), i32[256], u32[128], u64[192], f32[64], i32[16384], 16384)
// sectorwise: launch take_tickets<<<7, 33>>>(i32[231]=uniform(4), i32[256], u32[128], u64[192], f32[64], i32[231], 230)

extern "C" __global__ void bins_shared(const int* __restrict__ in, int* __restrict__ out, int n) {
  __shared__ int low[32], high[32], bits[32], uses[32], last[32];
  __shared__ unsigned turn[32];
  __shared__ unsigned long long wide[32];
  if (threadIdx.x < 32) {
    low[threadIdx.x] = 1 << 30; high[threadIdx.x] = 0; bits[threadIdx.x] = 0; uses[threadIdx.x] = 0;
    last[threadIdx.x] = 0; turn[threadIdx.x] = 0; wide[threadIdx.x] = 0;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int v = in[i], k = (v >> 3) & 31;
    atomicMin(&low[k], v);
    atomicMax(&high[k], v);
    atomicOr(&bits[k], v);
    atomicAdd(&uses[k], 1);
    atomicExch(&last[k], v);
    atomicInc(&turn[k], 12u);
    atomicAdd(&wide[k], (unsigned long long)v);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    int k = threadIdx.x;
    out[blockIdx.x * 32 + k] = low[k] + high[k] + bits[k] + uses[k] + last[k] + (int)turn[k] + (int)wide[k];
  }
}
// sectorwise: launch bins_shared<<<66, 128>>>(i32[65536]=uniform(5, 100000), i32[66*32], 65536)

extern "C" __global__ void last_block_sum(const float* __restrict__ in, float* part, unsigned* done, float* out, int n) {
  __shared__ float sums[8];
  __shared__ bool last;
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int k = 0; k < 8; ++k) all += sums[k];
    part[blockIdx.x] = all;
    __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    v = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) v += *(volatile float*)&part[i];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) { float all = 0; for (int k = 0; k < 8; ++k) all += sums[k]; *out = all; }
  }
}
// sectorwise: launch last_block_sum<<<264, 256>>>(f32[1<<20]=noise, f32[264], u32[1], f32[1], 1048576)

extern "C" __global__ void match_histogram(const int* __restrict__ key, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int k = i < n ? key[i] & 255 : 255;
  unsigned peers = __match_any_sync(0xffffffffu, k);
  if ((threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&bins[k], __popc(peers));
}
// sectorwise: launch match_histogram<<<512, 128>>>(i32[65536]=uniform(6, 40), i32[256], 65536)

extern "C" __global__ void spread_counters(const unsigned char* __restrict__ text, unsigned* __restrict__ out, int n) {
  __shared__ unsigned own[4][257];
  for (int i = threadIdx.x; i < 4 * 257; i += blockDim.x) (&own[0][0])[i] = 0;
  __syncthreads();
  unsigned* mine = own[threadIdx.x & 3];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
    uchar4 c = reinterpret_cast<const uchar4*>(text)[i];
    atomicAdd(&mine[c.x], 1); atomicAdd(&mine[c.y], 1); atomicAdd(&mine[c.z], 1); atomicAdd(&mine[c.w], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&out[b], own[0][b] + own[1][b] + own[2][b] + own[3][b]);
}
// sectorwise: launch spread_counters<<<132, 512>>>(u8[1<<21]=uniform(7), u32[256], 2097152)
// sectorwise: launch spread_counters<<<20, 100>>>(u8[40000]=uniform(8, 26), u32[256], 40000)

extern "C" __global__ void shared_float_sums(const float* __restrict__ in, const int* __restrict__ key, float* __restrict__ out, int n) {
  __shared__ float acc[64];
  __shared__ double wide[16];
  if (threadIdx.x < 64) acc[threadIdx.x] = 0;
  if (threadIdx.x < 16) wide[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int k = key[i] & 63;
    atomicAdd(&acc[k], in[i]);
    if (k < 16) atomicAdd(&wide[threadIdx.x & 15], 1.0);
  }
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], acc[threadIdx.x] + (float)wide[threadIdx.x & 15]);
}
// sectorwise: launch shared_float_sums<<<16, 64>>>(f32[1024]=uniform(9), i32[1024]=perm(10), f32[64], 1024)
