// Measures what the model of bytes in flight needs to know of a GPU, and prints one constant a line.
//
//   nvcc -arch=sm_90 -std=c++17 -o latency latency.cu && ./latency
//
// One warp chases pointers through 2 GiB in a random order, each step one request of 128, 256 or 512 neighbouring bytes,
// or several independent requests of which the slowest counts; all other SMs are idle, or stream reads at a rate that
// is set by their number of warps and pauses. So the latency of an idle memory, how it spreads, and how it grows with
// the load are seen directly, without any model of a kernel. Takes about two seconds.
#include <algorithm>
#include <cstdio>
#include <vector>

using Count = unsigned long long;

constexpr Count kStreamBytes = 4ull << 30;
constexpr unsigned kUnits = 1u << 22;  // of 512 bytes each: 2 GiB, far above any L2
constexpr int kSteps = 8000;
constexpr int kTimedSteps = 200000;

__device__ volatile int stop;
__device__ Count streamed_warps, stream_ns, chase_cycles, chase_ns;

__device__ unsigned first_word(unsigned v) { return v; }
__device__ unsigned first_word(uint2 v) { return v.x; }
__device__ unsigned first_word(uint4 v) { return v.x; }

__device__ Count read_ns() {
  Count now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Every word of a unit holds the number of the next unit: a permutation of one cycle.
__global__ void fill(unsigned* words) {
  for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i < kUnits * 128ull; i += (Count)gridDim.x * blockDim.x)
    words[i] = ((unsigned)(i / 128) * 1664525u + 12345u) & (kUnits - 1);
}

template <class Word, int Requests>
__device__ void chase(const char* units, unsigned seed, unsigned zero, float* out) {
  unsigned unit[Requests];
#pragma unroll
  for (int k = 0; k < Requests; ++k) unit[k] = (777 + k * 333331 + seed) & (kUnits - 1);
  for (long start = clock64(); clock64() - start < 200000;) {
  }
  Count begin_ns = read_ns();
  long begin = clock64();
  for (int step = 0; step < kSteps; ++step) {
    Word loaded[Requests];
#pragma unroll
    for (int k = 0; k < Requests; ++k)
      loaded[k] = *(const Word*)(units + (Count)unit[k] * 512 + threadIdx.x * sizeof(Word));
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < Requests; ++k) sum += first_word(loaded[k]);
#pragma unroll
    for (int k = 0; k < Requests; ++k) unit[k] = first_word(loaded[k]) + (sum & zero);  // wait for all of them
  }
  if (threadIdx.x == 0) {
    chase_cycles = clock64() - begin;
    chase_ns = read_ns() - begin_ns;
    stop = 1;
  }
  if (unit[0] == ~0u) out[1] = 1;
}

template <class Word, int Requests>
__global__ void load_memory(const char* units, const float4* __restrict__ stream, unsigned seed, unsigned zero,
                            int pause_cycles, float* out) {
  extern __shared__ int only_block_of_the_sm[];
  if (blockIdx.x == 0) {
    if (threadIdx.x < 32) chase<Word, Requests>(units, seed, zero, out);
    return;
  }
  Count words = kStreamBytes / sizeof(float4), step = (Count)gridDim.x * blockDim.x, loads = 0;
  Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x;
  float sum = 0;
  Count begin_ns = read_ns();
  while (!(loads % 16 == 0 && stop)) {
    float4 v = stream[i];
    sum += v.x + v.y + v.z + v.w;
    ++loads;
    i += step;
    if (i >= words) i -= words;
    if (pause_cycles)
      for (long start = clock64(); clock64() - start < pause_cycles;) {
      }
  }
  if (sum == 1) out[0] = sum;
  if (threadIdx.x % 32 == 0) atomicAdd(&streamed_warps, loads);
  if (threadIdx.x == 0 && blockIdx.x == 1) stream_ns = read_ns() - begin_ns;
}

__global__ void time_steps(const unsigned* words, unsigned* cycles, float* out) {
  unsigned unit = 4242;
  for (int step = 0; step < kTimedSteps; ++step) {
    unsigned begin = clock();
    unit = words[unit * 128ull + threadIdx.x];
    if (unit == ~0u) break;
    if (threadIdx.x == 0) cycles[step] = clock() - begin;
  }
  if (unit == ~0u) out[1] = 1;
}

// The same loop with `Adds` dependent additions: what a taken branch costs beyond the stalls that the code states.
template <int Adds>
__global__ void time_loop(int rounds, float* out) {
  float sum = threadIdx.x;
  long begin = clock64();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int k = 0; k < Adds; ++k) sum += 1.5f;
  }
  long end = clock64();
  if (threadIdx.x == 0) chase_cycles = end - begin;
  out[threadIdx.x] = sum;
}

// All SMs read the same few megabytes over and over, past L1.
__global__ void read_l2(const float4* __restrict__ in, Count words, int rounds, float* out) {
  Count step = (Count)gridDim.x * blockDim.x;
  float sum = 0;
  for (int round = 0; round < rounds; ++round)
    for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i + 3 * step < words; i += 4 * step) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float4 v = __ldcg(in + i + k * step);
        sum += v.x + v.y + v.z + v.w;
      }
    }
  if (sum == 1) out[0] = sum;
}

char* stream;
char* units;
float* out;

template <class T>
T read_symbol(const T& symbol) {
  T value;
  cudaMemcpyFromSymbol(&value, symbol, sizeof value);
  return value;
}

template <class Word, int Requests>
void measure_latency() {
  struct Background { int threads, pause_cycles; };
  for (Background b : {Background{0, 0}, {256, 3000}, {256, 1000}, {512, 1000}, {512, 300}, {1024, 1000}, {768, 300},
                       {512, 0}, {1024, 300}, {768, 0}, {896, 0}, {1024, 0}}) {
    int go = 0, sms;
    Count none = 0;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaMemcpyToSymbol(stop, &go, sizeof go);
    cudaMemcpyToSymbol(streamed_warps, &none, sizeof none);
    cudaFuncSetAttribute(load_memory<Word, Requests>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000);
    load_memory<Word, Requests><<<b.threads ? sms : 1, std::max(b.threads, 32), 200000>>>(
        units, (const float4*)stream, b.threads * 7 + b.pause_cycles, 0, b.pause_cycles, out);
    cudaDeviceSynchronize();
    double bandwidth = b.threads ? read_symbol(streamed_warps) * 512. / read_symbol(stream_ns) : 0;
    std::printf("latency request_bytes %d requests %d background_gbs %.0f cycles %.1f ns %.1f\n",
                (int)sizeof(Word) * 32, Requests, bandwidth, read_symbol(chase_cycles) / (double)kSteps,
                read_symbol(chase_ns) / (double)kSteps);
  }
}

template <int Adds>
void measure_loop() {
  for (int pass = 0; pass < 2; ++pass) time_loop<Adds><<<1, 32>>>(10000, out);
  cudaDeviceSynchronize();
  std::printf("loop adds %d cycles %.2f\n", Adds, read_symbol(chase_cycles) / 10000.);
}

void measure_l2() {
  int sms;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  int blocks = 2 * sms, step_bytes = blocks * 1024 * 4 * (int)sizeof(float4), rounds = 100;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int steps = 1; steps <= 3; ++steps) {
    Count words = (Count)steps * step_bytes / sizeof(float4);
    float best = 1e9f;
    for (int run = 0; run < 4; ++run) {
      float ms;
      cudaEventRecord(begin);
      read_l2<<<blocks, 1024>>>((const float4*)stream, words, rounds, out);
      cudaEventRecord(end);
      cudaEventSynchronize(end);
      cudaEventElapsedTime(&ms, begin, end);
      best = std::min(best, ms);
    }
    std::printf("l2_read mib %.1f gbs %.0f\n", steps * step_bytes / 1048576., (double)steps * step_bytes * rounds / best / 1e6);
  }
}

int main() {
  cudaMalloc(&stream, kStreamBytes);
  cudaMemset(stream, 0, kStreamBytes);
  cudaMalloc(&units, kUnits * 512ull);
  cudaMalloc(&out, 1 << 16);
  fill<<<4096, 256>>>((unsigned*)units);

  unsigned* device_cycles;
  cudaMalloc(&device_cycles, kTimedSteps * sizeof(unsigned));
  time_steps<<<1, 32>>>((const unsigned*)units, device_cycles, out);
  std::vector<unsigned> cycles(kTimedSteps);
  cudaMemcpy(cycles.data(), device_cycles, cycles.size() * sizeof(unsigned), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (unsigned c : cycles) sum += c;
  std::printf("timed_step mean %.1f\n", sum / cycles.size());
  std::sort(cycles.begin(), cycles.end());
  for (double quantile : {0., .001, .01, .02, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .55, .6, .65, .7, .75, .8, .85, .9,
                          .925, .95, .97, .98, .99, .995, .998, .999, .9995, 1.})
    std::printf("timed_step quantile %.4f cycles %u\n", quantile, cycles[(size_t)(quantile * (cycles.size() - 1))]);

  measure_latency<unsigned, 1>();
  measure_latency<uint2, 1>();
  measure_latency<uint4, 1>();
  measure_latency<unsigned, 2>();
  measure_latency<unsigned, 4>();
  measure_latency<unsigned, 8>();
  measure_latency<uint4, 4>();
  measure_loop<1>();
  measure_loop<4>();
  measure_loop<16>();
  measure_l2();
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
