// Sparse matrices with rows of unequal length, and loops whose lanes leave at different times.
__device__ int row_begin(const int* base, int row) { return base[row] * 8 + (int)(((unsigned)row * 2654435761u) >> 29); }

extern "C" __global__ void csr_thread(const int* __restrict__ base, const int* __restrict__ column, const float* __restrict__ value, const float* __restrict__ x, float* __restrict__ y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = row_begin(base, row); k < row_begin(base, row + 1); ++k) sum += value[k] * x[column[k]];
  y[row] = sum;
}
// sectorwise: launch csr_thread<<<512, 128>>>(i32[65537]=arange, i32[524304]=uniform(1, 65536), f32[524304]=noise, f32[65536]=noise, f32[65536], 65536)
// sectorwise: launch csr_thread<<<31, 33>>>(i32[1001]=arange, i32[8016]=uniform(2, 1000), f32[8016]=noise, f32[1000]=noise, f32[1000], 1000)

extern "C" __global__ void csr_warp(const int* __restrict__ base, const int* __restrict__ column, const double* __restrict__ value, const double* __restrict__ x, double* __restrict__ y, int rows, int factor) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  double sum = 0;
  for (int k = factor * row_begin(base, row) + lane; k < factor * row_begin(base, row + 1); k += 32) sum += value[k] * x[column[k]];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (lane == 0) y[row] = sum;
}
// sectorwise: launch csr_warp<<<2048, 256>>>(i32[16385]=arange, i32[524512]=uniform(3, 16384), f64[524512]=noise, f64[16384]=noise, f64[16384], 16384, 4)

extern "C" __global__ void ell(const int* __restrict__ column, const float* __restrict__ value, const float* __restrict__ x, float* __restrict__ y, int width, int rows, int pitch) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    int c = column[k * pitch + row];
    if (c >= 0) sum += value[k * pitch + row] * x[c];
  }
  y[row] = sum;
}
// sectorwise: launch ell<<<391, 256>>>(i32[100096*9]=uniform(4, 100000), f32[100096*9]=noise, f32[100000]=noise, f32[100000], 9, 100000, 100096)

extern "C" __global__ void coo_add(const int* __restrict__ row, const int* __restrict__ column, const float* __restrict__ value, const float* __restrict__ x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&y[row[i]], value[i] * x[column[i]]);
}
// sectorwise: launch coo_add<<<1024, 256>>>(i32[1<<18]=uniform(5, 30000), i32[1<<18]=uniform(6, 30000), f32[1<<18]=noise, f32[30000]=noise, f32[30000], 262144)

extern "C" __global__ void bsr4(const int* __restrict__ column, const float4* __restrict__ blocks, const float4* __restrict__ x, float* __restrict__ y, int per_row) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 4, part = threadIdx.x % 4;
  float sum = 0;
  for (int k = 0; k < per_row; ++k) {
    float4 a = blocks[(row * per_row + k) * 4 + part], v = x[column[row * per_row + k]];
    sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
  }
  y[row * 4 + part] = sum;
}
// sectorwise: launch bsr4<<<512, 128>>>(i32[16384*6]=uniform(7, 16384), f32[16384*6*16]=noise, f32[65536]=noise, f32[65536], 6)

extern "C" __global__ void collatz(const unsigned* __restrict__ start, int* __restrict__ steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = start[i] + 1; int s = 0;
  while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; ++s; }
  steps[i] = s;
}
// sectorwise: launch collatz<<<250, 96>>>(u32[24000]=perm(8), i32[24000], 24000)

extern "C" __global__ void mandelbrot(unsigned char* __restrict__ out, int width, int height, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float cr = -2.0f + 3.0f * x / width, ci = -1.0f + 2.0f * y / height, r = 0, i = 0;
  int k = 0;
  for (; k < most && r * r + i * i < 4; ++k) { float t = r * r - i * i + cr; i = 2 * r * i + ci; r = t; }
  out[y * width + x] = k;
}
// sectorwise: launch mandelbrot<<<(20, 30), (16, 8)>>>(u8[320*240], 320, 240, 100)

extern "C" __global__ void by_case(const int* __restrict__ kind, const float* __restrict__ in, float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = in[i];
  switch (kind[i] % 5) {
    case 0: v = v * 2 + in[(i + 1) % n]; break;
    case 1: v -= in[(i * 7) % n]; break;
    case 2: if (v > 0.5f) v = in[n - 1 - i]; else return; break;
    case 3: for (int k = 0; k < kind[i] % 7; ++k) v += in[(i + 32 * k) % n]; break;
    default: out[i] = 0; return;
  }
  out[i] = v;
}
// sectorwise: launch by_case<<<128, 256>>>(i32[32768]=uniform(9), f32[32768]=uniform(10), f32[32768], 32768)

extern "C" __global__ void walk_tree(const int2* __restrict__ child, const float* __restrict__ split, const float* __restrict__ value, int* __restrict__ leaf, int nodes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int node = 0, depth = 0;
  while (2 * node + 2 < nodes && depth < 24) { node = value[i * 4 + depth % 4] < split[node] ? 2 * node + 1 : 2 * node + 2; ++depth; }
  leaf[i] = node + child[node].x;
}
// sectorwise: launch walk_tree<<<256, 128>>>(i32[2*4095]=zeros, f32[4095]=uniform(11), f32[4*32768]=uniform(12), i32[32768], 4095, 32768)

extern "C" __global__ void breadth_first(const int* __restrict__ base, const int* __restrict__ edge, const int* __restrict__ frontier, int* seen, int* next, int* next_count, int count, int nodes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int node = frontier[i];
  for (int k = row_begin(base, node); k < row_begin(base, node + 1); ++k) {
    int to = edge[k] % nodes;
    if (seen[to] == 0 && atomicExch(&seen[to], 1) == 0) next[atomicAdd(next_count, 1)] = to;
  }
}
// sectorwise: launch breadth_first<<<1, 32>>>(i32[4097]=arange, i32[32784]=uniform(13), i32[64]=perm(14), i32[4096], i32[4096], i32[1], 30, 4096)
