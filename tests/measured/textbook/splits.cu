// Mappings of y = W x for few rows, 8 x 131,072 weights in bf16: K split over the warps of a block, and over blocks.

__device__ __forceinline__ float low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ float multiply(uint4 w, const float* x) {
  const float4* part = (const float4*)x;
  float4 a = part[0], b = part[1];
  float sum = low(w.x) * a.x + high(w.x) * a.y + low(w.y) * a.z + high(w.y) * a.w;
  return sum + low(w.z) * b.x + high(w.z) * b.y + low(w.w) * b.z + high(w.w) * b.w;
}

__device__ __forceinline__ float reduce(float sum) {
  for (int distance = 16; distance; distance >>= 1) sum += __shfl_down_sync(~0u, sum, distance);
  return sum;
}

// The sum of a block's part of a row, in its first thread.
__device__ __forceinline__ float add_part(const uint4* __restrict__ weight, const float* __restrict__ x, int k) {
  __shared__ float partial[8];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, share = k / (8 * gridDim.x);
  int first = (blockIdx.x * 8 + warp) * share;
  float sum = 0;
  for (int at = first + lane * 8; at < first + share; at += 256)
    sum += multiply(weight[((size_t)blockIdx.y * k + at) / 8], x + at);
  sum = reduce(sum);
  if (!lane) partial[warp] = sum;
  __syncthreads();
  if (warp) return 0;
  return reduce(lane < 8 ? partial[lane] : 0);
}

// A block a row.
extern "C" __global__ void m_few_warps(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int k) {
  float sum = add_part(weight, x, k);
  if (!threadIdx.x) y[blockIdx.y] = sum;
}

// gridDim.x blocks a row, of which the last one adds what all have left.
extern "C" __global__ void m_few_last(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, float* sums, unsigned* counts, int k) {
  __shared__ bool last;
  float sum = add_part(weight, x, k);
  if (!threadIdx.x) {
    sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(counts + blockIdx.y, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x >= 32) return;
  float whole = 0;
  for (int part = threadIdx.x; part < gridDim.x; part += 32) whole += ((volatile float*)sums)[blockIdx.y * gridDim.x + part];
  whole = reduce(whole);
  if (!threadIdx.x) y[blockIdx.y] = whole;
}

// gridDim.x blocks a row, all of which add to a y that is zero.
extern "C" __global__ void m_few_atomics(const uint4* __restrict__ weight, const float* __restrict__ x, float* y, int k) {
  float sum = add_part(weight, x, k);
  if (!threadIdx.x) atomicAdd(y + blockIdx.y, sum);
}

extern "C" __global__ void m_clear(float* y) { y[threadIdx.x] = 0; }
