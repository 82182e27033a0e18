// Cooperative groups, barriers and pipelines of the C++ library, 128-bit and narrow atomics, prefetches.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tile_sums(const int* __restrict__ in, int* __restrict__ out, int n) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = cg::reduce(tile, i < n ? in[i] : 0, cg::plus<int>());
  if (tile.thread_rank() == 0) out[i / 8] = sum;
}
// sectorwise: launch tile_sums<<<100, 200>>>(i32[20000]=uniform(1, 100), i32[2500], 19990)

extern "C" __global__ void labelled(const int* __restrict__ key, int* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  auto active = cg::coalesced_threads();
  auto mine = cg::labeled_partition(active, key[i] & 7);
  int many = mine.size(), rank = mine.thread_rank();
  if (rank == 0) atomicAdd(&out[key[i] & 7], many);
}
// sectorwise: launch labelled<<<30, 96>>>(i32[2870]=uniform(2, 50), i32[8], 2870)

extern "C" __global__ void staged_copy(const float* __restrict__ in, float* __restrict__ out, int tiles) {
  __shared__ float tile[2][512];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile[0], in + (size_t)blockIdx.x * tiles * 512, sizeof(float) * 512);
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      cg::memcpy_async(block, tile[(t + 1) & 1], in + ((size_t)blockIdx.x * tiles + t + 1) * 512, sizeof(float) * 512);
      cg::wait_prior<1>(block);
    } else cg::wait(block);
    sum += tile[t & 1][threadIdx.x] + tile[t & 1][511 - threadIdx.x];
    block.sync();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// sectorwise: launch staged_copy<<<66, 256>>>(f32[66*5*512]=noise, f32[66*256], 5)

extern "C" __global__ void piped(const float4* __restrict__ in, float4* __restrict__ out, int steps) {
  __shared__ float4 ring[3][128];
  auto pipe = cuda::make_pipeline();
  int t = threadIdx.x;
  const float4* mine = in + (size_t)blockIdx.x * steps * 128;
  for (int s = 0; s < 2; ++s) {
    pipe.producer_acquire();
    cuda::memcpy_async(&ring[s][t], &mine[s * 128 + t], cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
  }
  float4 sum = make_float4(0, 0, 0, 0);
  for (int s = 0; s < steps; ++s) {
    pipe.producer_acquire();
    if (s + 2 < steps) cuda::memcpy_async(&ring[(s + 2) % 3][t], &mine[(s + 2) * 128 + t], cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<2>(pipe);
    __syncthreads();
    float4 v = ring[s % 3][t ^ 1];
    sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    __syncthreads();
    pipe.consumer_release();
  }
  out[blockIdx.x * 128 + t] = sum;
}
// sectorwise: launch piped<<<80, 128>>>(f32[80*9*512]=noise, f32[80*512], 9)

extern "C" __global__ void producer_consumer(const float* __restrict__ in, float* __restrict__ out, int rounds) {
  __shared__ float buffer[2][128];
  __shared__ cuda::barrier<cuda::thread_scope_block> full[2], empty[2];
  if (threadIdx.x < 2) { init(&full[threadIdx.x], blockDim.x); init(&empty[threadIdx.x], blockDim.x); }
  __syncthreads();
  if (threadIdx.x < 128) {
    for (int r = 0; r < rounds; ++r) {
      if (r >= 2) empty[r & 1].arrive_and_wait();
      buffer[r & 1][threadIdx.x] = 2 * in[(blockIdx.x * rounds + r) * 128 + threadIdx.x];
      (void)full[r & 1].arrive();
    }
  } else {
    int t = threadIdx.x - 128;
    float sum = 0;
    for (int r = 0; r < rounds; ++r) {
      full[r & 1].arrive_and_wait();
      sum += buffer[r & 1][127 - t];
      if (r + 2 < rounds) (void)empty[r & 1].arrive();
    }
    out[blockIdx.x * 128 + t] = sum;
  }
}
// sectorwise: launch producer_consumer<<<20, 256>>>(f32[20*6*128]=noise, f32[20*128], 6)

extern "C" __global__ void narrow_sums(const int* __restrict__ key, __half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2, double* d, float2* f2, float4* f4, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = key[i] & 31;
  atomicAdd(&h2[k], __floats2half2_rn(1.0f, 0.5f));
  atomicAdd(&b2[k], __floats2bfloat162_rn(1.0f, 0.5f));
  atomicAdd(&d[k], 0.25);
  atomicAdd(&f2[k], make_float2(1.0f, 2.0f));
  atomicAdd(&f4[k], make_float4(1.0f, 2.0f, 3.0f, 4.0f));
  atomicAdd(&h[k], __float2half(1.0f));
  atomicAdd(&b[k], __float2bfloat16(1.0f));
}
// sectorwise: launch narrow_sums<<<10, 64>>>(i32[640]=uniform(3), f16[64], f16[64], u16[64], u16[64], f64[32], f32[64], f32[128], 630)

extern "C" __global__ void wide_exchange(const ulonglong2* __restrict__ in, ulonglong2* place, ulonglong2* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  ulonglong2 v = in[i], old;
  asm volatile("{ .reg .b128 a, b;\n mov.b128 a, {%3, %4};\n atom.global.exch.b128 b, [%2], a;\n mov.b128 {%0, %1}, b; }" : "=l"(old.x), "=l"(old.y) : "l"(&place[(i * 7) & 255]), "l"(v.x), "l"(v.y) : "memory");
  out[i] = old;
}
// sectorwise: launch wide_exchange<<<8, 64>>>(u64[1024]=noise, u64[512], u64[1024])

extern "C" __global__ void halves_in_shared(const int* __restrict__ key, __half2* __restrict__ out) {
  __shared__ __half2 sums[32];
  __shared__ unsigned short small[64];
  if (threadIdx.x < 32) sums[threadIdx.x] = __floats2half2_rn(0, 0);
  if (threadIdx.x < 64) small[threadIdx.x] = 0;
  __syncthreads();
  int k = key[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&sums[threadIdx.x & 31], __floats2half2_rn(1, k & 3));
  atomicCAS(&small[threadIdx.x & 63], (unsigned short)0, (unsigned short)(k | 1));
  __syncthreads();
  if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = __hadd2(sums[threadIdx.x], __floats2half2_rn(small[threadIdx.x] & 1, 0));
}
// sectorwise: launch halves_in_shared<<<4, 32>>>(i32[128]=uniform(4, 9), f16[256])

extern "C" __global__ void prefetching(const float* __restrict__ in, float* __restrict__ out, int ahead, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (i + ahead < n) asm volatile("prefetch.global.L2 [%0];" :: "l"(in + i + ahead));
    out[i] = in[i] * 3;
  }
}
// sectorwise: launch prefetching<<<132, 256>>>(f32[1<<20]=noise, f32[1<<20], 33792, 1048576)

extern "C" __global__ void grid_barrier(const float* __restrict__ in, float* a, float* b, unsigned* arrived, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = in[i];
  for (int s = 0; s < steps; ++s) {
    __syncthreads();
    if (threadIdx.x == 0) {
      cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(*arrived);
      count.fetch_add(1, cuda::memory_order_release);
      while (count.load(cuda::memory_order_acquire) < (s + 1) * gridDim.x) {}
    }
    __syncthreads();
    b[i] = 0.5f * (a[(i + n - 1) % n] + a[(i + 1) % n]);
    float* c = a; a = b; b = c;
  }
}
// sectorwise: launch grid_barrier<<<64, 256>>>(f32[16384]=noise, f32[16384], f32[16384], u32[1], 16384, 4)
