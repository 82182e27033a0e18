// Shared memory of other blocks of the cluster, by some lanes or all, and generic atomics on shared and global memory.
__device__ unsigned map_shared(unsigned address, unsigned rank) {
  unsigned mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}
__device__ void meet() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
__device__ unsigned own_rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }

extern "C" __global__ void __cluster_dims__(2, 1, 1) remote_words(int* out, unsigned mask, int step, int skew) {
  __shared__ __align__(16) int room[2048];
  for (int k = threadIdx.x; k < 2048; k += blockDim.x) room[k] = k;
  meet();
  unsigned lane = threadIdx.x % 32, to = own_rank() ^ (mask >> lane & 1), base = (unsigned)__cvta_generic_to_shared(room);
  unsigned at4 = map_shared(base + 4 * ((threadIdx.x * step + skew) % 2048), to);
  unsigned at16 = map_shared(base + 16 * ((threadIdx.x * step + skew) % 512), to);
  int v, a, b, c, d;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at4) : "memory");
  asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at16) : "memory");
  asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(at4), "r"(v) : "memory");
  asm volatile("st.shared::cluster.v2.u32 [%0], {%1,%2};" :: "r"(at16), "r"(a), "r"(b) : "memory");
  meet();
  unsigned old;
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], 3;" : "=r"(old) : "r"(at4) : "memory");
  asm volatile("red.shared::cluster.max.u32 [%0], %1;" :: "r"(at4), "r"(threadIdx.x) : "memory");
  meet();
  out[blockIdx.x * blockDim.x + threadIdx.x] = v + a + b + c + d + old;
}
// sectorwise: launch remote_words<<<2, 32>>>(i32[64], u32(0), 1, 0)
// sectorwise: launch remote_words<<<2, 32>>>(i32[64], u32(4294967295), 1, 0)
// sectorwise: launch remote_words<<<2, 32>>>(i32[64], u32(65535), 1, 0)
// sectorwise: launch remote_words<<<2, 32>>>(i32[64], u32(1431655765), 1, 0)
// sectorwise: launch remote_words<<<2, 32>>>(i32[64], u32(4294967295), 8, 3)
// sectorwise: launch remote_words<<<4, 64>>>(i32[256], u32(252645135), 3, 5)
// sectorwise: launch remote_words<<<2, 32>>>(i32[64], u32(1), 32, 0)

extern "C" __global__ void generic_updates(const int* __restrict__ key, int* far, unsigned long long* far8, int* out, unsigned mask) {
  __shared__ int near[256];
  __shared__ unsigned long long near8[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) { near[k] = k; near8[k] = k; }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = key[i] & 255;
  bool inside = mask >> (threadIdx.x % 32) & 1;
  int* p = inside ? near + k : far + k;
  unsigned long long* q = inside ? near8 + k : far8 + k;
  int got = atomicAdd(p, 2);
  atomicMax(p, i);
  got += atomicExch(p, i);
  got += atomicCAS(p, i, 7);
  got += (int)atomicAdd(q, 5ull);
  got += (int)atomicMax(q, 9ull);
  got += (int)atomicExch(q, 3ull);
  got += (int)atomicCAS(q, 3ull, 4ull);
  atomicAdd((float*)p, 1.0f);
  out[i] = got;
}
// sectorwise: launch generic_updates<<<1, 32>>>(i32[32]=arange, i32[256], u64[256], i32[32], u32(0))
// sectorwise: launch generic_updates<<<1, 32>>>(i32[32]=arange, i32[256], u64[256], i32[32], u32(4294967295))
// sectorwise: launch generic_updates<<<1, 32>>>(i32[32]=arange, i32[256], u64[256], i32[32], u32(255))
// sectorwise: launch generic_updates<<<1, 32>>>(i32[32]=uniform(1, 64), i32[256], u64[256], i32[32], u32(4294967295))
// sectorwise: launch generic_updates<<<1, 32>>>(i32[32]=uniform(1, 64), i32[256], u64[256], i32[32], u32(3855))
// sectorwise: launch generic_updates<<<2, 64>>>(i32[128]=uniform(2, 16), i32[256], u64[256], i32[128], u32(1431655765))
// sectorwise: launch generic_updates<<<1, 32>>>(i32[32]=zeros, i32[256], u64[256], i32[32], u32(4294901760))

extern "C" __global__ void generic_half_sums(const int* __restrict__ key, unsigned* far, unsigned* out, unsigned mask) {
  __shared__ unsigned near[64];
  for (int k = threadIdx.x; k < 64; k += blockDim.x) near[k] = 0;
  __syncthreads();
  int k = key[threadIdx.x] & 63;
  unsigned* p = (mask >> (threadIdx.x % 32) & 1) ? near + k : far + k;
  unsigned old;
  asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(0x3c003c00) : "memory");
  out[threadIdx.x] = old;
}
// sectorwise: launch generic_half_sums<<<1, 32>>>(i32[32]=arange, u32[64], u32[32], u32(0))
// sectorwise: launch generic_half_sums<<<1, 32>>>(i32[32]=arange, u32[64], u32[32], u32(4294967295))
// sectorwise: launch generic_half_sums<<<1, 32>>>(i32[32]=uniform(3, 40), u32[64], u32[32], u32(61680))
