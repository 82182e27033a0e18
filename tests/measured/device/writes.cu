// How much longer reads take beside writes, what of stores stays in the L2, and which lines L1 keeps: writes.json has the
// output. Every kernel runs by itself, with one block on each SM where others are its background. Compile with
// `nvcc -arch=sm_90 -cubin`; of write_slow Nsight Compute 2025.3 counted, caches flushed before.
typedef unsigned long long Count;
struct Result { Count cycles, ns, loads, stream_ns; };
__device__ inline Count read_ns() { Count now; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); return now; }
extern "C" __global__ void fill_chain(unsigned* words, unsigned units, unsigned unit_words) {
  for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i < (Count)units * unit_words; i += (Count)gridDim.x * blockDim.x)
    words[i] = ((unsigned)(i / unit_words) * 1664525u + 12345u) & (units - 1);
}
// Block 0 chases; the others read (mode 0), copy (1), write (2), or copy by words of 4 bytes (3), read two and write one (4).
extern "C" __global__ void loaded(const char* units, unsigned mask, int steps, float4* from, float4* to, unsigned words, int mode, int pause, Result* result, int* stop) {
  extern __shared__ int only_block[];
  if (blockIdx.x == 0) {
    if (threadIdx.x >= 32) return;
    unsigned unit = 77;
    for (long begin = clock64(); clock64() - begin < 200000;) {}
    Count begin_ns = read_ns(); long begin = clock64();
    for (int s = 0; s < steps; ++s) unit = *(const volatile unsigned*)(units + (Count)unit * 512 + threadIdx.x * 4);
    long end = clock64();
    if (threadIdx.x == 0) { result->cycles = end - begin; result->ns = read_ns() - begin_ns; *(volatile int*)stop = 1; }
    if (unit == ~0u) result->stream_ns = 1;
    return;
  }
  unsigned step = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x; Count n = 0; float sum = 0;
  Count begin_ns = read_ns();
  while (!(n % 16 == 0 && *(volatile int*)stop)) {
    if (mode == 0) { float4 v = __ldcg(from + i); sum += v.x + v.y; }
    else if (mode == 1) to[i] = __ldcg(from + i);
    else if (mode == 2) to[i] = make_float4(1, 2, 3, 4);
    else if (mode == 3) ((float*)to)[i] = __ldcg((float*)from + i);
    else { float4 v = __ldcg(from + i); if (n & 1) to[i] = v; else sum += v.x; }
    ++n; i += step; if (i >= words) i -= words;
    if (pause) for (long start = clock64(); clock64() - start < pause;) {}
  }
  if (sum == 1) result->stream_ns = 1;
  if (threadIdx.x % 32 == 0) atomicAdd(&result->loads, n);
  if (threadIdx.x == 0 && blockIdx.x == 1) result->stream_ns = read_ns() - begin_ns;
}
// Lines at a stride, round and round: how many of them L1 keeps. Every word is 0.
extern "C" __global__ void ring_strided(const unsigned* words, unsigned stride_words, int count, Result* result) {
  unsigned zero = 0; long begin = 0;
  for (int round = 0; round < 4; ++round) {
    if (round == 2) begin = clock64();
    Count at = 0;
    for (int k = 0; k < count; ++k) { unsigned v; asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(words + at + zero)); zero = v; at += stride_words; }
  }
  long end = clock64();
  if (threadIdx.x == 0) result->cycles = end - begin;
  if (zero) result->ns = 1;
}
// Stores, slowly, so that the L2 has time to write them to DRAM.
extern "C" __global__ void write_slow(float4* __restrict__ y, int words, int pause) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < words; i += gridDim.x * 256) {
    y[i] = make_float4(i, 1, 2, 3);
    for (long start = clock64(); clock64() - start < pause;) {}
  }
}
