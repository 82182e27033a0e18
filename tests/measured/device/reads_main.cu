// Times the kernels of reads.cu, best of four, and prints the rows of reads.csv. To repeat:
//
//   nvcc -arch=sm_90 -std=c++17 -o reads reads_main.cu && ./reads > reads.csv
//
// Shared memory that no kernel uses keeps the blocks of an SM at the number that a row says.
#include <algorithm>
#include <cstdio>

#include "reads.cu"

template <class Word>
using Kernel = void (*)(const Word*, float*, size_t);

void* buffer;
float* out;
int sms;

template <class Word>
void time_reads(Kernel<Word> kernel, int loads, size_t buffer_bytes) {
  struct Shape { int threads, blocks_per_sm; };
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, kernel);
  for (Shape s : {Shape{128, 1}, {256, 1}, {512, 1}, {256, 4}, {256, 6}, {512, 4}, {1024, 2}}) {
    int shared_bytes = (233472 / s.blocks_per_sm - 1024) / 1024 * 1024;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    size_t step = (size_t)sms * s.blocks_per_sm * s.threads * loads;
    size_t words = buffer_bytes / sizeof(Word) / step * step;
    float best = 1e9f;
    for (int run = 0; run < 4; ++run) {
      float ms;
      cudaEventRecord(begin);
      kernel<<<sms * s.blocks_per_sm, s.threads, shared_bytes>>>((const Word*)buffer, out, words);
      cudaEventRecord(end);
      cudaEventSynchronize(end);
      cudaEventElapsedTime(&ms, begin, end);
      best = std::min(best, ms);
    }
    std::printf("%d,%d,%d,%d,%d,%d,%.1f\n", (int)sizeof(Word), loads, s.threads, s.blocks_per_sm, attributes.numRegs,
                (int)(buffer_bytes >> 20), words * sizeof(Word) / best / 1e6);
  }
}

int main() {
  size_t largest = (size_t)4 << 30;
  cudaMalloc(&buffer, largest);
  cudaMemset(buffer, 0, largest);
  cudaMalloc(&out, 4096);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  std::printf("width_bytes,loads,threads,blocks_per_sm,registers,buffer_mib,gbs\n");
  for (size_t bytes : {(size_t)1 << 30, largest}) {
    time_reads<float>(read_4_1, 1, bytes);
    time_reads<float>(read_4_2, 2, bytes);
    time_reads<float>(read_4_4, 4, bytes);
    time_reads<float>(read_4_8, 8, bytes);
    time_reads<float2>(read_8_1, 1, bytes);
    time_reads<float2>(read_8_2, 2, bytes);
    time_reads<float2>(read_8_4, 4, bytes);
    time_reads<float2>(read_8_8, 8, bytes);
    time_reads<float4>(read_16_1, 1, bytes);
    time_reads<float4>(read_16_2, 2, bytes);
    time_reads<float4>(read_16_4, 4, bytes);
    time_reads<float4>(read_16_8, 8, bytes);
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
}
