// Sorting, scans and compaction.
extern "C" __global__ void scan_block(const int* __restrict__ in, int* __restrict__ out, int* __restrict__ sums) {
  __shared__ int warp_sum[32];
  int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 1024 + t, v = in[i];
  for (int o = 1; o < 32; o <<= 1) { int u = __shfl_up_sync(~0u, v, o); if (lane >= o) v += u; }
  if (lane == 31) warp_sum[t / 32] = v;
  __syncthreads();
  if (t < 32) {
    int s = warp_sum[t];
    for (int o = 1; o < 32; o <<= 1) { int u = __shfl_up_sync(~0u, s, o); if (lane >= o) s += u; }
    warp_sum[t] = s;
  }
  __syncthreads();
  if (t >= 32) v += warp_sum[t / 32 - 1];
  out[i] = v;
  if (t == 1023) sums[blockIdx.x] = v;
}
// sectorwise: launch scan_block<<<16384, 1024>>>(i32[1<<24]=noise, i32[1<<24], i32[16384])

extern "C" __global__ void scan_shared(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float s[2][512];
  int t = threadIdx.x, i = blockIdx.x * 512 + t, from = 0;
  s[0][t] = in[i];
  for (int o = 1; o < 512; o <<= 1) {
    __syncthreads();
    s[1 - from][t] = s[from][t] + (t >= o ? s[from][t - o] : 0);
    from = 1 - from;
  }
  out[i] = s[from][t];
}
// sectorwise: launch scan_shared<<<32768, 512>>>(f32[1<<24]=noise, f32[1<<24])

extern "C" __global__ void bitonic_step(int* __restrict__ key, int distance, int size) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, i = t / distance * 2 * distance + t % distance;
  int a = key[i], b = key[i + distance];
  if ((a > b) == ((i & size) == 0)) { key[i] = b; key[i + distance] = a; }
}
// sectorwise: launch bitonic_step<<<32768, 256>>>(i32[1<<24]=uniform(1), distance=4096, size=1048576)

extern "C" __global__ void bitonic_shared(int* __restrict__ key) {
  __shared__ int s[1024];
  int t = threadIdx.x, base = blockIdx.x * 1024;
  s[t] = key[base + t];
  s[t + 512] = key[base + t + 512];
  for (int size = 2; size <= 1024; size <<= 1)
    for (int d = size / 2; d; d >>= 1) {
      __syncthreads();
      int i = t / d * 2 * d + t % d, a = s[i], b = s[i + d];
      if ((a > b) == ((i & size) == 0)) { s[i] = b; s[i + d] = a; }
    }
  __syncthreads();
  key[base + t] = s[t];
  key[base + t + 512] = s[t + 512];
}
// sectorwise: launch bitonic_shared<<<4096, 512>>>(i32[1<<22]=uniform(2))

extern "C" __global__ void radix_histogram(const unsigned* __restrict__ key, int* __restrict__ count, int shift) {
  __shared__ int bin[256];
  int t = threadIdx.x;
  bin[t] = 0;
  __syncthreads();
  for (int i = 0; i < 16; ++i) atomicAdd(&bin[key[(blockIdx.x * 16 + i) * 256 + t] >> shift & 255], 1);
  __syncthreads();
  count[t * gridDim.x + blockIdx.x] = bin[t];
}
// sectorwise: launch radix_histogram<<<4096, 256>>>(u32[1<<24]=uniform(3), i32[256*4096], shift=8)

extern "C" __global__ void radix_scatter(const unsigned* __restrict__ key, const int* __restrict__ place, unsigned* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[place[i]] = key[i];
}
// sectorwise: launch radix_scatter<<<16384, 256>>>(u32[1<<22]=noise, i32[1<<22]=perm(4), u32[1<<22])

extern "C" __global__ void compact(const int* __restrict__ in, int* __restrict__ out, int* __restrict__ count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, v = in[i];
  unsigned kept = __ballot_sync(~0u, v % 3 == 0);
  int base = 0;
  if (!lane) base = atomicAdd(count, __popc(kept));
  base = __shfl_sync(~0u, base, 0);
  if (kept >> lane & 1) out[base + __popc(kept & ((1u << lane) - 1))] = v;
}
// sectorwise: launch compact<<<8192, 256>>>(i32[1<<21]=uniform(5), i32[1<<21], i32[1])

extern "C" __global__ void merge_paths(const int* __restrict__ a, const int* __restrict__ b, int* __restrict__ out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, diagonal = t * 8;
  int low = max(0, diagonal - n), high = min(diagonal, n);
  while (low < high) {
    int middle = (low + high) / 2;
    if (a[middle] <= b[diagonal - 1 - middle]) low = middle + 1; else high = middle;
  }
  int i = low, j = diagonal - low;
  for (int k = 0; k < 8; ++k) out[diagonal + k] = j >= n || (i < n && a[i] <= b[j]) ? a[i++] : b[j++];
}
// sectorwise: launch merge_paths<<<2048, 256>>>(i32[1<<21]=arange, i32[1<<21]=arange, i32[1<<22], n=2097152)
