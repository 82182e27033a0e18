// Arrays of a thread in local memory, spills, tables in constant banks, calls, clusters, spinning blocks.
extern "C" __global__ void local_histogram(const unsigned char* __restrict__ in, unsigned* __restrict__ out, int per) {
  unsigned char bin[64];
  for (int k = 0; k < 64; ++k) bin[k] = 0;
  int t = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  for (int k = 0; k < per; ++k) ++bin[in[k * all + t] & 63];
  unsigned mix = 0;
  for (int k = 0; k < 64; ++k) mix = mix * 31 + bin[k];
  out[t] = mix;
}
// sectorwise: launch local_histogram<<<64, 128>>>(u8[8192*20]=uniform(1), u32[8192], 20)

extern "C" __global__ void insertion_sort(const float* __restrict__ in, float* __restrict__ out, int n) {
  float v[24];
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  for (int i = 0; i < 24; ++i) {
    float x = in[i * n + t];
    int j = i;
    while (j > 0 && v[j - 1] > x) { v[j] = v[j - 1]; --j; }
    v[j] = x;
  }
  for (int i = 0; i < 24; ++i) out[t * 24 + i] = v[i];
}
// sectorwise: launch insertion_sort<<<20, 96>>>(f32[24*1900]=uniform(2), f32[24*1900], 1900)

extern "C" __global__ void top_four(const float4* __restrict__ in, float4* __restrict__ out, const int* __restrict__ pick, int n) {
  float4 keep[8];
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < 8; ++i) keep[i] = in[i * n + t];
  float4 sum = make_float4(0, 0, 0, 0);
  for (int i = 0; i < 4; ++i) { float4 v = keep[pick[4 * t + i] & 7]; sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w; }
  out[t] = sum;
}
// sectorwise: launch top_four<<<64, 64>>>(f32[8*4*4096]=noise, f32[4*4096], i32[4*4096]=uniform(3), 4096)

extern "C" __global__ void __launch_bounds__(1024, 2) many_live(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float v[48];
#pragma unroll
  for (int k = 0; k < 48; ++k) v[k] = in[k * n + t];
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 3; ++r)
#pragma unroll
    for (int k = 0; k < 48; ++k) v[k] = v[k] * v[(k + 7) % 48] + v[(k + 19) % 48];
#pragma unroll
  for (int k = 0; k < 48; ++k) out[k * n + t] = v[k];
}
// sectorwise: launch many_live<<<33, 1024>>>(f32[48*33792]=noise, f32[48*33792], 33792)

__device__ __noinline__ int depth_first(const int* left, int node, int depth) {
  if (depth == 0 || node < 0) return 1;
  int next = left[node];
  return 1 + depth_first(left, next % 512, depth - 1) + ((next & 1) ? depth_first(left, (next + 7) % 512, depth - 2 > 0 ? depth - 2 : 0) : 0);
}
extern "C" __global__ void recurse(const int* __restrict__ left, int* __restrict__ out, int depth) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = depth_first(left, t % 512, depth);
}
// sectorwise: launch recurse<<<4, 64>>>(i32[512]=uniform(4, 100000), i32[256], 6)

__constant__ int table[256] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};
__device__ float weights[64] = {1, 2, 3, 4, 5, 6, 7, 8};
extern "C" __global__ void look_up(const unsigned char* __restrict__ in, int* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[in[i]] + table[threadIdx.x / 32] + (int)weights[in[i] & 63];
}
// sectorwise: launch look_up<<<200, 256>>>(u8[51000]=uniform(5), i32[51000], 51000)

extern "C" __global__ void polynomial(const float* __restrict__ in, float* __restrict__ out, int terms) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i], y = 0;
  for (int k = 0; k < terms; ++k) y = y * x + table[(k + i / 64) & 255];
  out[i] = y;
}
// sectorwise: launch polynomial<<<100, 256>>>(f32[25600]=noise, f32[25600], 12)

typedef float (*Operation)(float, float);
__device__ __noinline__ float plus(float a, float b) { return a + b; }
__device__ __noinline__ float times(float a, float b) { return a * b; }
__device__ __noinline__ float largest(float a, float b) { return fmaxf(a, b); }
extern "C" __global__ void by_pointer(const int* __restrict__ which, const float* __restrict__ a, float* __restrict__ b, int n) {
  Operation operations[3] = {plus, times, largest};
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = operations[which[i / 8] % 3](a[i], b[i]);
}
// sectorwise: launch by_pointer<<<40, 100>>>(i32[500]=uniform(6), f32[4000]=noise, f32[4000], 4000)

__device__ unsigned map_shared(unsigned address, unsigned rank) {
  unsigned mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}
__device__ void cluster_wait() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
__device__ unsigned cluster_rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }

extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
  part[threadIdx.x] = sum;
  cluster_wait();
  if (cluster_rank() == 0) {
    unsigned mine = (unsigned)__cvta_generic_to_shared(&part[threadIdx.x]);
    for (unsigned r = 1; r < 4; ++r) { float v; asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(map_shared(mine, r))); sum += v; }
    out[blockIdx.x / 4 * 256 + threadIdx.x] = sum;
  }
  cluster_wait();
}
// sectorwise: launch cluster_sum<<<132, 256>>>(f32[1<<20]=noise, f32[33*256], 1048576)

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const int* __restrict__ in, int* __restrict__ out, int n) {
  __shared__ int bin[128];
  if (threadIdx.x < 128) bin[threadIdx.x] = 0;
  cluster_wait();
  unsigned base = (unsigned)__cvta_generic_to_shared(&bin[0]);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int v = in[i] & 255;
    asm volatile("red.shared::cluster.add.u32 [%0], 1;" :: "r"(map_shared(base + 4 * (v % 128), v / 128)) : "memory");
  }
  cluster_wait();
  if (threadIdx.x < 128) atomicAdd(&out[128 * cluster_rank() + threadIdx.x], bin[threadIdx.x]);
}
// sectorwise: launch cluster_histogram<<<64, 256>>>(i32[65536]=uniform(7), i32[256], 65536)

extern "C" __global__ void __cluster_dims__(8, 1, 1) cluster_halo(const float4* __restrict__ in, float4* __restrict__ out) {
  __shared__ float4 line[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  line[threadIdx.x] = in[i];
  cluster_wait();
  float4 v = line[threadIdx.x], u;
  unsigned rank = cluster_rank(), right = threadIdx.x == 127 ? (rank + 1) % 8 : rank;
  unsigned at = map_shared((unsigned)__cvta_generic_to_shared(&line[(threadIdx.x + 1) % 128]), right);
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(u.x), "=f"(u.y), "=f"(u.z), "=f"(u.w) : "r"(at));
  v.x += u.x; v.y += u.y; v.z += u.z; v.w += u.w;
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" :: "r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
  cluster_wait();
  out[i] = line[threadIdx.x];
}
// sectorwise: launch cluster_halo<<<128, 128>>>(f32[4*16384]=noise, f32[4*16384])

extern "C" __global__ void pass_on(const int* __restrict__ in, int* __restrict__ out, volatile int* ready, int rounds) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, v = in[t];
  for (int r = 1; r <= rounds; ++r) {
    v += in[(t + 97 * r) % (gridDim.x * blockDim.x)];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd((int*)ready, 1);
      while (*ready < r * gridDim.x) {}
      __threadfence();
    }
    __syncthreads();
  }
  out[t] = v;
}
// sectorwise: launch pass_on<<<16, 128>>>(i32[2048]=uniform(8), i32[2048], i32[1], 3)

extern "C" __global__ void big_shared(const float4* __restrict__ in, float4* __restrict__ out, int quads) {
  extern __shared__ float4 room[];
  for (int i = threadIdx.x; i < quads; i += blockDim.x) room[i] = in[(size_t)blockIdx.x * quads + i];
  __syncthreads();
  for (int i = threadIdx.x; i < quads; i += blockDim.x) out[(size_t)blockIdx.x * quads + i] = room[quads - 1 - i];
}
// sectorwise: launch big_shared<<<264, 512, 229376>>>(f32[4*14336*264]=noise, f32[4*14336*264], 14336)
// sectorwise: launch big_shared<<<131, 1000, 65536>>>(f32[4*4096*131]=noise, f32[4*4096*131], 4096)
