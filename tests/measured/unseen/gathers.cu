// Loads and stores by index: embeddings, hash tables, searches, scattered rows.
extern "C" __global__ void embed(const int* __restrict__ token, const float4* __restrict__ table, float4* __restrict__ out, int quads) {
  int row = blockIdx.x;
  const float4* from = table + (size_t)token[row] * quads;
  for (int j = threadIdx.x; j < quads; j += blockDim.x) out[(size_t)row * quads + j] = from[j];
}
// sectorwise: launch embed<<<4096, 128>>>(i32[4096]=uniform(1, 32000), f32[32000*768]=noise, f32[4096*768], 192)
// sectorwise: launch embed<<<131, 96>>>(i32[131]=uniform(2, 1000), f32[1000*100]=noise, f32[131*100], 25)

extern "C" __global__ void embed_bag(const int* __restrict__ token, const float* __restrict__ table, float* __restrict__ out, int bag, int width) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  for (int x = threadIdx.x; x < width; x += blockDim.x) {
    float sum = 0;
    for (int k = 0; k < bag; ++k) sum += table[(size_t)token[row * bag + k] * width + x];
    out[row * width + x] = sum / bag;
  }
}
// sectorwise: launch embed_bag<<<512, (32, 8)>>>(i32[4096*20]=uniform(3, 100000), f32[100000*50]=noise, f32[4096*50], 20, 50)
// sectorwise: launch embed_bag<<<512, (16, 8)>>>(i32[4096*7]=uniform(4, 2000), f32[2000*64]=noise, f32[4096*64], 7, 64)

extern "C" __global__ void permute_rows(const int* __restrict__ order, const short* __restrict__ in, short* __restrict__ out, int width, int rows) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (warp >= rows) return;
  for (int j = lane; j < width; j += 32) out[order[warp] * width + j] = in[warp * width + j];
}
// sectorwise: launch permute_rows<<<2000, 128>>>(i32[7999]=perm(5), i16[7999*75]=noise, i16[7999*75], 75, 7999)

extern "C" __global__ void hash_probe(const unsigned* __restrict__ key, const uint2* __restrict__ slot, unsigned* __restrict__ out, unsigned mask, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned k = key[i], h = k * 2654435761u;
  for (int probes = 0; probes < 8; ++probes) {
    uint2 s = slot[(h + probes * probes) & mask];
    if (s.x == k || (s.x & 3) == 0) { out[i] = s.y; return; }
  }
  out[i] = 0xffffffffu;
}
// sectorwise: launch hash_probe<<<1954, 256>>>(u32[500000]=uniform(6), u32[2<<20]=uniform(7), u32[500000], 1048575, 500000)
// sectorwise: launch hash_probe<<<100, 33>>>(u32[3300]=uniform(8), u32[2<<12]=uniform(9), u32[3300], 4095, 3300)

extern "C" __global__ void lower_bound(const int* __restrict__ sorted, const int* __restrict__ query, int* __restrict__ out, int n, int queries) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= queries) return;
  int wanted = query[i], low = 0, high = n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (sorted[middle] < wanted) low = middle + 1; else high = middle;
  }
  out[i] = low;
}
// sectorwise: launch lower_bound<<<1024, 256>>>(i32[1<<20]=arange, i32[1<<18]=uniform(10, 1048576), i32[1<<18], 1048576, 262144)
// sectorwise: launch lower_bound<<<40, 96>>>(i32[1000]=arange, i32[3800]=uniform(11, 1200), i32[3800], 1000, 3800)

extern "C" __global__ void scatter_max(const int* __restrict__ where, const int* __restrict__ value, int* best, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicMax(&best[where[i]], value[i]);
}
// sectorwise: launch scatter_max<<<264, 256>>>(i32[1<<20]=uniform(12, 65536), i32[1<<20]=uniform(13), i32[65536], 1048576)

extern "C" __global__ void gather_fields(const int* __restrict__ index, const float* __restrict__ soa, float4* __restrict__ out, int stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int j = index[i];
  out[i] = make_float4(soa[j], soa[j + stride], soa[j + 2 * stride], soa[j + 3 * stride]);
}
// sectorwise: launch gather_fields<<<1024, 256>>>(i32[1<<18]=perm(14), f32[1<<20]=noise, f32[1<<20], 262144, 262144)

extern "C" __global__ void bilinear(const float* __restrict__ image, const float2* __restrict__ at, float* __restrict__ out, int width, int height, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 p = at[i];
  float fx = p.x * (width - 1), fy = p.y * (height - 1);
  int x = min((int)fx, width - 2), y = min((int)fy, height - 2);
  float u = fx - x, v = fy - y;
  const float* q = image + y * width + x;
  out[i] = (1 - v) * ((1 - u) * q[0] + u * q[1]) + v * ((1 - u) * q[width] + u * q[width + 1]);
}
// sectorwise: launch bilinear<<<2048, 128>>>(f32[1024*768]=noise, f32[1<<19]=uniform(15), f32[1<<18], 1024, 768, 262144)

extern "C" __global__ void compact(const int* __restrict__ in, int* __restrict__ out, int* count, int limit, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  bool keep = i < n && in[i] < limit;
  unsigned ballot = __ballot_sync(0xffffffffu, keep);
  if (ballot == 0) return;
  int base = 0, leader = __ffs(ballot) - 1;
  if (lane == leader) base = atomicAdd(count, __popc(ballot));
  base = __shfl_sync(0xffffffffu, base, leader);
  if (keep) out[base + __popc(ballot & ((1u << lane) - 1))] = in[i];
}
// sectorwise: launch compact<<<1, 1024>>>(i32[1024]=uniform(16, 1000), i32[1024], i32[1], 300, 1000)
