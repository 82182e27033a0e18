// Launches kernels of many block sizes, registers and shared sizes, so that a profiler can say which configuration of
// shared memory the driver picked for each. The rows are in carveout_sweep.csv. To repeat:
//
//   nvcc -arch=sm_90 -std=c++17 -o carveout_sweep carveout_sweep.cu
//   ncu --clock-control none --cache-control none --csv --page raw --print-units base --metrics launch__block_size,\
//   launch__registers_per_thread,launch__shared_mem_per_block_static,launch__shared_mem_per_block_dynamic,\
//   launch__shared_mem_config_size,launch__occupancy_limit_warps,launch__occupancy_limit_registers,\
//   launch__occupancy_limit_shared_mem,launch__occupancy_limit_blocks,sm__maximum_warps_per_active_cycle_pct,\
//   launch__grid_size ./carveout_sweep
//
// The order of launches does not matter: two shuffled runs gave the same configuration wherever they overlapped.
#include <cstdio>
#include <vector>

// Keeps Live values in registers: about Live + 12 registers a thread, 16 at the least.
template <int Live>
__global__ void keep_registers(float* data, int rounds) {
  extern __shared__ float tile[];
  float values[Live];
#pragma unroll
  for (int i = 0; i < Live; ++i) values[i] = data[i * rounds];
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < Live; ++i) values[i] = values[i] * values[(i + 1) % Live] + 1;
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Live; ++i) sum += values[i];
  if (rounds > 0) tile[threadIdx.x] = sum;
  data[threadIdx.x] = sum;
}

template <int Bytes>
__global__ void keep_static(float* data, int n) {
  __shared__ char tile[Bytes];
  tile[threadIdx.x * n % Bytes] = n;
  __syncthreads();
  data[threadIdx.x] = tile[n % Bytes];
}

float* data;

template <int Live>
void launch(int threads, int dynamic_bytes, int grid) {
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, keep_registers<Live>);
  if (attributes.numRegs * threads > 65536 || attributes.maxThreadsPerBlock < threads) return;
  cudaFuncSetAttribute(keep_registers<Live>, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448);
  keep_registers<Live><<<grid, threads, dynamic_bytes>>>(data, 0);
}

template <int Bytes>
void launch_static(int threads, int dynamic_bytes) {
  keep_static<Bytes><<<64, threads, dynamic_bytes>>>(data, 1);
}

int main() {
  cudaMalloc(&data, 1 << 20);
  cudaMemset(data, 0, 1 << 20);
  for (int threads : {32, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024})
    for (int bytes : {0, 128, 256, 512, 1000, 1024, 1536, 2048, 3072, 4096, 5120, 6000, 8192, 10240, 12288, 15000, 16384,
                      20000, 24576, 32768, 40000, 49152, 65536, 81920, 100000, 131072, 163000, 200000, 232448}) {
      launch<4>(threads, bytes, 64);
      if (bytes % 2048 && bytes != 256 && bytes != 1024) continue;
      launch<22>(threads, bytes, 64);
      launch<40>(threads, bytes, 64);
      launch<60>(threads, bytes, 64);
      launch<90>(threads, bytes, 64);
      launch<150>(threads, bytes, 64);
    }
  for (int grid : {1, 132, 1000})
    for (int threads : {128, 512})
      for (int bytes : {0, 1024, 12288}) launch<4>(threads, bytes, grid);
  for (int threads = 32; threads <= 1024; threads += 32) {
    for (int bytes : {0, 1, 64, 128, 256, 384, 512, 640, 768, 896, 1152, 1280, 1408, 1664, 1920, 2304, 2560, 2816, 3328,
                      3584, 3840, 4608, 5632, 6656, 7168, 9216, 11264, 13312, 14336, 18432})
      launch<4>(threads, bytes, 64);
    for (int bytes : {0, 128, 512, 1280, 3584, 7168}) {
      launch<22>(threads, bytes, 64);
      launch<60>(threads, bytes, 64);
    }
  }
  for (int threads : {1, 31, 33, 100, 257, 500, 511, 513, 700, 767, 769, 1000, 1023})
    for (int bytes : {0, 1024, 3584}) launch<4>(threads, bytes, 64);
  for (int threads : {32, 128, 256, 512, 768, 1024})
    for (int bytes : {0, 512, 1024, 4096}) {
      launch_static<16>(threads, bytes);
      launch_static<1024>(threads, bytes);
      launch_static<8192>(threads, bytes);
    }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
