// Histograms and other counts: in global memory, in shared memory, in registers.
extern "C" __global__ void histogram_global(const int* __restrict__ x, int* __restrict__ bin, int bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bin[x[i] % bins], 1);
}
// sectorwise: launch histogram_global<<<16384, 256>>>(i32[1<<22]=uniform(1), i32[4096], bins=4096)

extern "C" __global__ void histogram_shared(const unsigned char* __restrict__ x, int* __restrict__ out, int n) {
  __shared__ int bin[256];
  bin[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&bin[x[i]], 1);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bin[threadIdx.x]);
}
// sectorwise: launch histogram_shared<<<1056, 256>>>(u8[1<<25]=uniform(2), i32[256], n=33554432)

extern "C" __global__ void histogram_copies(const unsigned char* __restrict__ x, int* __restrict__ out, int n) {
  __shared__ int bin[8][257];
  int t = threadIdx.x, warp = t / 32;
  for (int i = t; i < 8 * 257; i += 256) bin[i / 257][i % 257] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) atomicAdd(&bin[warp][x[i]], 1);
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += bin[i][t];
  atomicAdd(&out[t], sum);
}
// sectorwise: launch histogram_copies<<<1056, 256>>>(u8[1<<25]=uniform(3), i32[256], n=33554432)

extern "C" __global__ void histogram_words(const uint4* __restrict__ x, int* __restrict__ out, int n) {
  __shared__ int bin[64];
  if (threadIdx.x < 64) bin[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
    uint4 v = x[i];
    atomicAdd(&bin[v.x & 63], 1); atomicAdd(&bin[v.y & 63], 1); atomicAdd(&bin[v.z & 63], 1); atomicAdd(&bin[v.w & 63], 1);
  }
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bin[threadIdx.x]);
}
// sectorwise: launch histogram_words<<<528, 256>>>(u32[1<<24]=uniform(4), i32[64], n=4194304)

extern "C" __global__ void joint_histogram(const int* __restrict__ x, const int* __restrict__ y, int* __restrict__ bin) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bin[(x[i] & 1023) * 1024 + (y[i] & 1023)], 1);
}
// sectorwise: launch joint_histogram<<<16384, 256>>>(i32[1<<22]=uniform(5), i32[1<<22]=uniform(6), i32[1<<20])

extern "C" __global__ void count_above(const float* __restrict__ x, int* __restrict__ out, float bound, int n) {
  int sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i] > bound;
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
// sectorwise: launch count_above<<<2112, 256>>>(f32[1<<25]=noise, i32[1], bound=0.5, n=33554432)

extern "C" __global__ void minimum_each_row(const float* __restrict__ x, float* __restrict__ least, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float low = 1e30f;
  for (int i = 0; i < n; ++i) low = fminf(low, x[(size_t)row * n + i]);
  least[row] = low;
}
// sectorwise: launch minimum_each_row<<<128, 256>>>(f32[32768*512]=noise, f32[32768], n=512)
