// The rate of the tensor cores, for the ridge of statement T2: four warps multiply halves from shared memory.

#define FOUR(at) "+f"(sums[at]), "+f"(sums[at + 1]), "+f"(sums[at + 2]), "+f"(sums[at + 3])
#define SIXTEEN(at) FOUR(at), FOUR(at + 4), FOUR(at + 8), FOUR(at + 12)

__device__ __forceinline__ void multiply(float (&sums)[64], unsigned long long a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,"
      "%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,"
      "%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
      : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128) s_tensor(float* __restrict__ out, int steps) {
  __shared__ alignas(1024) unsigned short halves[16384];
  for (int at = threadIdx.x; at < 16384; at += 128) halves[at] = 0x3000 + at * 40503 % 1021 + (at * 31 % 2 << 15);
  asm volatile("fence.proxy.async;");
  __syncthreads();
  unsigned long long start = (unsigned)__cvta_generic_to_shared(halves) >> 4;
  unsigned long long shape = (unsigned long long)(2048 >> 4) << 16 | (unsigned long long)(128 >> 4) << 32;
  unsigned long long a = start | shape, b = (start + (8192 >> 4)) | shape;
  float sums[64] = {};
  for (int step = 0; step < steps; ++step) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int part = 0; part < 4; ++part) multiply(sums, a + part * 16, b + part * 16);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float all = 0;
#pragma unroll
  for (int at = 0; at < 64; ++at) all += sums[at];
  out[blockIdx.x * 128 + threadIdx.x] = all;
}
