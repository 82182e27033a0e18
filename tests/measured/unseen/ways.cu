// Lanes that part: early exits, loops that end at different times, switches, recursion, calls by pointer.
extern "C" __global__ void leave_early(const int* __restrict__ key, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = key[i], v = 0;
  for (int j = 0; j < n; ++j) {
    if (k == j) { out[i] = v; return; }
    v += key[(i + j) & 31];
  }
  out[i] = -1;
}
// sectorwise: launch leave_early<<<1, 32>>>(i32[32]=arange, i32[32], 8)
// sectorwise: launch leave_early<<<1, 32>>>(i32[32]=uniform(1, 6), i32[32], 8)
// sectorwise: launch leave_early<<<1, 32>>>(i32[32]=uniform(1, 6), i32[32], 4)
// sectorwise: launch leave_early<<<1, 32>>>(i32[32]=uniform(2, 12), i32[32], 8)

extern "C" __global__ void unrolled_exits(const int* __restrict__ key, int* out) {
  int i = threadIdx.x, k = key[i], v = k;
#pragma unroll
  for (int j = 0; j < 6; ++j) {
    if (v == key[32 + j]) { out[i] = j; return; }
    v = key[(v + j) & 31];
  }
  out[i] = -1;
}
// sectorwise: launch unrolled_exits<<<1, 32>>>(i32[64]=uniform(3, 8), i32[32])
// sectorwise: launch unrolled_exits<<<1, 32>>>(i32[64]=uniform(4, 16), i32[32])
// sectorwise: launch unrolled_exits<<<1, 32>>>(i32[64]=arange, i32[32])

extern "C" __global__ void five_ways(const int* __restrict__ key, int* out, int n) {
  int i = threadIdx.x, k = key[i], v = k;
  switch (k % 5) {
    case 0: v = key[(i + 1) % n]; break;
    case 1: v = key[(i * 7) % n] * 3; break;
    case 2: if (k & 8) v += key[n - 1 - i]; else return; break;
    case 3: for (int j = 0; j < k % 7; ++j) v += key[(i + 3 * j) % n]; break;
    default: out[i] = 0; return;
  }
  out[i] = v;
}
// sectorwise: launch five_ways<<<1, 32>>>(i32[32]=arange, i32[32], 32)
// sectorwise: launch five_ways<<<1, 32>>>(i32[32]=uniform(5, 100), i32[32], 32)
// sectorwise: launch five_ways<<<1, 32>>>(i32[32]=uniform(6, 5), i32[32], 32)

__device__ __noinline__ int down(const int* left, int node, int depth) {
  if (depth == 0) return left[node];
  int next = left[node] & 31;
  return 1 + down(left, next, depth - 1);
}
extern "C" __global__ void recurse_evenly(const int* __restrict__ left, int* out, int depth) { out[threadIdx.x] = down(left, threadIdx.x & 31, depth); }
// sectorwise: launch recurse_evenly<<<1, 32>>>(i32[32]=arange, i32[32], 3)
extern "C" __global__ void recurse_unevenly(const int* __restrict__ left, int* out, int depth) { out[threadIdx.x] = down(left, threadIdx.x & 31, left[threadIdx.x] % depth); }
// sectorwise: launch recurse_unevenly<<<1, 32>>>(i32[32]=arange, i32[32], 2)
// sectorwise: launch recurse_unevenly<<<1, 32>>>(i32[32]=arange, i32[32], 4)

__device__ __noinline__ int both(const int* left, int node, int depth) {
  if (depth <= 0) return 1;
  int next = left[node];
  int v = both(left, next & 31, depth - 1);
  if (next & 1) v += both(left, (next + 7) & 31, depth - 2);
  return v;
}
extern "C" __global__ void recurse_twice(const int* __restrict__ left, int* out, int depth) { out[threadIdx.x] = both(left, threadIdx.x & 31, depth); }
// sectorwise: launch recurse_twice<<<1, 32>>>(i32[32]=zeros, i32[32], 3)
// sectorwise: launch recurse_twice<<<1, 32>>>(i32[32]=arange, i32[32], 2)
// sectorwise: launch recurse_twice<<<1, 32>>>(i32[32]=arange, i32[32], 4)

typedef int (*Step)(int);
__device__ __noinline__ int one(int a) { return a * 3 + 1; }
__device__ __noinline__ int two(int a) { return a ^ 5; }
__device__ __noinline__ int three(int a) { return a - 9; }
extern "C" __global__ void steps_by_pointer(const int* __restrict__ key, int* out) {
  Step steps[3] = {one, two, three};
  int k = key[threadIdx.x];
  out[threadIdx.x] = steps[k % 3](k);
}
// sectorwise: launch steps_by_pointer<<<1, 32>>>(i32[32]=zeros, i32[32])
// sectorwise: launch steps_by_pointer<<<1, 32>>>(i32[32]=arange, i32[32])
// sectorwise: launch steps_by_pointer<<<1, 32>>>(i32[32]=uniform(7, 2), i32[32])

extern "C" __global__ void sort_few(const int* __restrict__ in, int* out) {
  int v[6];
  for (int i = 0; i < 6; ++i) {
    int x = in[(threadIdx.x * 5 + i * 7) & 31], j = i;
    while (j > 0 && v[j - 1] > x) { v[j] = v[j - 1]; --j; }
    v[j] = x;
  }
  for (int i = 0; i < 6; ++i) out[threadIdx.x * 6 + i] = v[i];
}
// sectorwise: launch sort_few<<<1, 32>>>(i32[32]=uniform(8, 100), i32[192])
// sectorwise: launch sort_few<<<1, 32>>>(i32[32]=arange, i32[192])
