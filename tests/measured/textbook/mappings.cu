// Mappings of y = W x for 4,096 x 4,096 weights in bf16: lanes along K, K split over warps, columns; one vector and several.

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

// [N, K]: a warp a row, 16 bytes a lane; BATCH vectors.
template <int BATCH>
__device__ __forceinline__ void row_vector(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  float sums[BATCH] = {};
  for (int at = lane * 8; at < k; at += 256) {
    uint4 w = weight[((size_t)row * k + at) / 8];
#pragma unroll
    for (int b = 0; b < BATCH; ++b) sums[b] += multiply(w, x + b * k + at);
  }
#pragma unroll
  for (int b = 0; b < BATCH; ++b) {
    float sum = reduce(sums[b]);
    if (!lane) y[b * n + row] = sum;
  }
}

// [N, K]: a warp a row, 2 bytes a lane.
template <int BATCH>
__device__ __forceinline__ void row_scalar(const unsigned short* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  float sums[BATCH] = {};
  for (int at = lane; at < k; at += 32) {
    float w = low(weight[(size_t)row * k + at]);
#pragma unroll
    for (int b = 0; b < BATCH; ++b) sums[b] += w * x[b * k + at];
  }
#pragma unroll
  for (int b = 0; b < BATCH; ++b) {
    float sum = reduce(sums[b]);
    if (!lane) y[b * n + row] = sum;
  }
}

// [N, K]: PARTS warps a row, whose sums meet in shared memory.
template <int PARTS>
__device__ __forceinline__ void row_split(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int k) {
  __shared__ float partial[8];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, row = blockIdx.x * (8 / PARTS) + warp / PARTS, part = warp % PARTS;
  float sum = 0;
  for (int at = part * (k / PARTS) + lane * 8; at < (part + 1) * (k / PARTS); at += 256) sum += multiply(weight[((size_t)row * k + at) / 8], x + at);
  sum = reduce(sum);
  if (!lane) partial[warp] = sum;
  __syncthreads();
  if (lane < PARTS && part == 0) {
    sum = partial[warp + lane];
    for (int distance = PARTS / 2; distance; distance >>= 1) sum += __shfl_down_sync((1u << PARTS) - 1, sum, distance);
    if (!lane) y[row] = sum;
  }
}

// [K, N]: a thread a column; or eight columns of 16 bytes, K split over PARTS warps of the block.
extern "C" __global__ void m_column(const unsigned short* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; ++at) sum += low(weight[(size_t)at * n + column]) * x[at];
  y[column] = sum;
}

template <int PARTS>
__device__ __forceinline__ void columns(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) {
  __shared__ float partial[PARTS][256];
  int lane = threadIdx.x & 31, part = threadIdx.x >> 5, group = blockIdx.x * 32 + lane;
  float sums[8] = {};
  for (int at = part * (k / PARTS); at < (part + 1) * (k / PARTS); ++at) {
    uint4 w = weight[((size_t)at * n) / 8 + group];
    float by = x[at];
    sums[0] += low(w.x) * by; sums[1] += high(w.x) * by; sums[2] += low(w.y) * by; sums[3] += high(w.y) * by;
    sums[4] += low(w.z) * by; sums[5] += high(w.z) * by; sums[6] += low(w.w) * by; sums[7] += high(w.w) * by;
  }
  if (PARTS == 1) {
#pragma unroll
    for (int c = 0; c < 8; ++c) y[group * 8 + c] = sums[c];
    return;
  }
#pragma unroll
  for (int c = 0; c < 8; ++c) partial[part][c * 32 + lane] = sums[c];
  __syncthreads();
  for (int at = threadIdx.x; at < 256; at += PARTS * 32) {
    float sum = 0;
    for (int p = 0; p < PARTS; ++p) sum += partial[p][at];
    y[blockIdx.x * 256 + at % 32 * 8 + at / 32] = sum;
  }
}

#define ROWS(batch) \
  extern "C" __global__ void m_row_vector_##batch(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) { row_vector<batch>(weight, x, y, n, k); } \
  extern "C" __global__ void m_row_scalar_##batch(const unsigned short* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) { row_scalar<batch>(weight, x, y, n, k); }
ROWS(1)
ROWS(2)
ROWS(4)
ROWS(8)
#define SPLIT(parts) \
  extern "C" __global__ void m_row_split_##parts(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int k) { row_split<parts>(weight, x, y, k); }
SPLIT(2)
SPLIT(4)
#define COLUMNS(parts) \
  extern "C" __global__ void m_columns_##parts(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int n, int k) { columns<parts>(weight, x, y, n, k); }
COLUMNS(1)
COLUMNS(8)
COLUMNS(32)
