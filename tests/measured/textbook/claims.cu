// Kernels that stand for statements of docs/textbook.md: each family does the same work in several ways.

__device__ __forceinline__ float low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

extern "C" __global__ void c_copy_f32(const float* __restrict__ in, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

extern "C" __global__ void c_copy_f32_four(const float* __restrict__ in, float* __restrict__ out) {
  int i = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int part = 0; part < 4; ++part) out[i + 256 * part] = in[i + 256 * part];
}

extern "C" __global__ void c_aos48_one(const float* __restrict__ records, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = records[12 * i];
}

extern "C" __global__ void c_soa_one(const float* __restrict__ field, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = field[i];
}

extern "C" __global__ void c_aos48_random(const float4* __restrict__ records, const int* __restrict__ which, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4* record = records + 3 * which[i];
  float4 a = record[0], b = record[1], c = record[2];
  out[i] = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x + c.y + c.z + c.w;
}

extern "C" __global__ void c_soa_random(const float* __restrict__ fields, const int* __restrict__ which, float* __restrict__ out, int records) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, record = which[i];
  float sum = 0;
#pragma unroll
  for (int field = 0; field < 12; ++field) sum += fields[field * records + record];
  out[i] = sum;
}

extern "C" __global__ void c_gemv_warp_a_row(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int k) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  float sum = 0;
  for (int at = lane * 8; at < k; at += 256) {
    uint4 w = weight[((size_t)row * k + at) / 8];
    const float4* part = (const float4*)(x + at);
    float4 a = part[0], b = part[1];
    sum += low(w.x) * a.x + high(w.x) * a.y + low(w.y) * a.z + high(w.y) * a.w;
    sum += low(w.z) * b.x + high(w.z) * b.y + low(w.w) * b.z + high(w.w) * b.w;
  }
  for (int distance = 16; distance; distance >>= 1) sum += __shfl_down_sync(~0u, sum, distance);
  if (!lane) y[row] = sum;
}

extern "C" __global__ void c_gemv_thread_a_column(const unsigned short* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y, int k, int rows) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; ++at) sum += low(weight[(size_t)at * rows + column]) * x[at];
  y[column] = sum;
}

extern "C" __global__ void c_gemv_four_rows_a_warp(const uint4* __restrict__ weight, const float* __restrict__ x, float* __restrict__ y) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread >> 3, lane = thread & 7;
  uint4 w = weight[(size_t)row * 8 + lane];
  const float4* part = (const float4*)(x + lane * 8);
  float4 a = part[0], b = part[1];
  float sum = low(w.x) * a.x + high(w.x) * a.y + low(w.y) * a.z + high(w.y) * a.w;
  sum += low(w.z) * b.x + high(w.z) * b.y + low(w.w) * b.z + high(w.w) * b.w;
  for (int distance = 4; distance; distance >>= 1) sum += __shfl_down_sync(~0u, sum, distance);
  if (!lane) y[row] = sum;
}

template <int GROUP> __device__ __forceinline__ void place(int id, int tiles, int& row, int& column) {
  int span = GROUP * tiles, first = id / span * GROUP, inside = id % span;
  row = first + inside % GROUP;
  column = inside / GROUP;
}

extern "C" __global__ void c_mm64_groups_of_8(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) {
  __shared__ float a[16][64], b[16][64];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, tiles = n / 64, row, column;
  place<8>(blockIdx.x, tiles, row, column);
  const float* left = A + (size_t)row * 64 * n;
  const float* right = B + column * 64;
  float sums[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    { int r = t / 4, c = (t % 4) * 4; float4 v = *(const float4*)(left + (size_t)r * n + k + c); a[c][r] = v.x; a[c + 1][r] = v.y; a[c + 2][r] = v.z; a[c + 3][r] = v.w; }
    { int r = t / 16, c = (t % 16) * 4; *(float4*)&b[r][c] = *(const float4*)(right + (size_t)(k + r) * n + c); }
    __syncthreads();
    for (int j = 0; j < 16; ++j) {
      float4 x = *(float4*)&a[j][ty * 4], y = *(float4*)&b[j][tx * 4];
      float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q) sums[p][q] += xs[p] * ys[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p) *(float4*)(C + (size_t)(row * 64 + ty * 4 + p) * n + column * 64 + tx * 4) = make_float4(sums[p][0], sums[p][1], sums[p][2], sums[p][3]);
}

extern "C" __global__ void c_mm128(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) {
  __shared__ float a[8][128], b[8][128];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, tiles = n / 128, row = blockIdx.x / tiles, column = blockIdx.x % tiles;
  const float* left = A + (size_t)row * 128 * n;
  const float* right = B + column * 128;
  float sums[8][8] = {};
  for (int k = 0; k < n; k += 8) {
    { int r = t / 2, c = (t % 2) * 4; float4 v = *(const float4*)(left + (size_t)r * n + k + c); a[c][r] = v.x; a[c + 1][r] = v.y; a[c + 2][r] = v.z; a[c + 3][r] = v.w; }
    { int r = t / 32, c = (t % 32) * 4; *(float4*)&b[r][c] = *(const float4*)(right + (size_t)(k + r) * n + c); }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float xs[8], ys[8];
      *(float4*)xs = *(float4*)&a[j][ty * 4]; *(float4*)(xs + 4) = *(float4*)&a[j][64 + ty * 4];
      *(float4*)ys = *(float4*)&b[j][tx * 4]; *(float4*)(ys + 4) = *(float4*)&b[j][64 + tx * 4];
#pragma unroll
      for (int p = 0; p < 8; ++p)
#pragma unroll
        for (int q = 0; q < 8; ++q) sums[p][q] += xs[p] * ys[q];
    }
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < 8; ++p) {
    size_t at = (size_t)(row * 128 + (p / 4) * 64 + ty * 4 + p % 4) * n + column * 128 + tx * 4;
    *(float4*)(C + at) = make_float4(sums[p][0], sums[p][1], sums[p][2], sums[p][3]);
    *(float4*)(C + at + 64) = make_float4(sums[p][4], sums[p][5], sums[p][6], sums[p][7]);
  }
}
