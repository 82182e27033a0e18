// Scans, stencils, sorts and transposes through shared memory.
extern "C" __global__ void scan_steps(const int* __restrict__ in, int* __restrict__ out) {
  __shared__ int two[2][512];
  int t = threadIdx.x, now = 0;
  two[0][t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    two[1 - now][t] = two[now][t] + (t >= d ? two[now][t - d] : 0);
    now = 1 - now;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + t] = two[now][t];
}
// sectorwise: launch scan_steps<<<300, 512>>>(i32[153600]=uniform(1, 10), i32[153600])
// sectorwise: launch scan_steps<<<5, 96>>>(i32[480]=uniform(1, 10), i32[480])

#define PAD(i) ((i) + ((i) >> 5))
extern "C" __global__ void scan_tree(const int2* __restrict__ in, int2* __restrict__ out, int* __restrict__ sums) {
  __shared__ int tree[1024 + 32];
  int t = threadIdx.x, n = 2 * blockDim.x, offset = 1;
  int2 v = in[blockIdx.x * blockDim.x + t];
  tree[PAD(2 * t)] = v.x; tree[PAD(2 * t + 1)] = v.y;
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) tree[PAD(offset * (2 * t + 2) - 1)] += tree[PAD(offset * (2 * t + 1) - 1)];
    offset *= 2;
  }
  if (t == 0) { sums[blockIdx.x] = tree[PAD(n - 1)]; tree[PAD(n - 1)] = 0; }
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int a = PAD(offset * (2 * t + 1) - 1), b = PAD(offset * (2 * t + 2) - 1), x = tree[a];
      tree[a] = tree[b]; tree[b] += x;
    }
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = make_int2(tree[PAD(2 * t)], tree[PAD(2 * t + 1)]);
}
// sectorwise: launch scan_tree<<<200, 512>>>(i32[204800]=uniform(2, 10), i32[204800], i32[200])

extern "C" __global__ void scan_warps(const int4* __restrict__ in, int4* __restrict__ out) {
  __shared__ int totals[32];
  int t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int4 v = in[t];
  v.y += v.x; v.z += v.y; v.w += v.z;
  int sum = v.w;
  for (int d = 1; d < 32; d *= 2) { int up = __shfl_up_sync(0xffffffffu, sum, d); if (lane >= d) sum += up; }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int each = totals[lane];
    for (int d = 1; d < 32; d *= 2) { int up = __shfl_up_sync(0xffffffffu, each, d); if (lane >= d) each += up; }
    totals[lane] = each;
  }
  __syncthreads();
  int before = sum - v.w + (warp ? totals[warp - 1] : 0);
  out[t] = make_int4(v.x + before, v.y + before, v.z + before, v.w + before);
}
// sectorwise: launch scan_warps<<<132, 1024>>>(i32[540672]=uniform(3, 10), i32[540672])

extern "C" __global__ void five_points(const float* __restrict__ in, float* __restrict__ out, int width, int height) {
  __shared__ float tile[18][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  int lx = threadIdx.x + 1, ly = threadIdx.y + 1;
  bool inside = x < width && y < height;
  if (inside) {
    tile[ly][lx] = in[y * width + x];
    if (threadIdx.x == 0) tile[ly][0] = x ? in[y * width + x - 1] : 0;
    if (threadIdx.x == 31 || x == width - 1) tile[ly][lx + 1] = x < width - 1 ? in[y * width + x + 1] : 0;
    if (threadIdx.y == 0) tile[0][lx] = y ? in[(y - 1) * width + x] : 0;
    if (threadIdx.y == 15 || y == height - 1) tile[ly + 1][lx] = y < height - 1 ? in[(y + 1) * width + x] : 0;
  }
  __syncthreads();
  if (inside) out[y * width + x] = 0.5f * tile[ly][lx] + 0.125f * (tile[ly - 1][lx] + tile[ly + 1][lx] + tile[ly][lx - 1] + tile[ly][lx + 1]);
}
// sectorwise: launch five_points<<<(32, 63), (32, 16)>>>(f32[1001*1001]=noise, f32[1001*1001], 1001, 1001)
// sectorwise: launch five_points<<<(128, 128), (32, 16)>>>(f32[4096*2048]=noise, f32[4096*2048], 4096, 2048)

extern "C" __global__ void seven_points(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
  size_t i = ((size_t)z * ny + y) * nx + x;
  out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny] - 6 * in[i];
}
// sectorwise: launch seven_points<<<(4, 32, 32), (32, 4, 4)>>>(f32[128*128*128]=noise, f32[128*128*128], 128, 128, 128)
// sectorwise: launch seven_points<<<(25, 25, 25), (8, 8, 8)>>>(f32[200*200*200]=noise, f32[200*200*200], 200, 200, 200)
// sectorwise: launch seven_points<<<(4, 50, 50), (64, 4, 4)>>>(f32[200*200*200]=noise, f32[200*200*200], 200, 200, 200)

extern "C" __global__ void march_z(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz) {
  __shared__ float plane[10][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, lx = threadIdx.x + 1, ly = threadIdx.y + 1;
  int area = nx * ny, i = y * nx + x;
  float below = 0, here = in[i], above = in[i + area];
  for (int z = 1; z < nz - 1; ++z) {
    i += area;
    below = here; here = above; above = in[i + area];
    __syncthreads();
    plane[ly][lx] = here;
    if (threadIdx.x == 0 && x > 0) plane[ly][0] = in[i - 1];
    if (threadIdx.x == 31 && x < nx - 1) plane[ly][33] = in[i + 1];
    if (threadIdx.y == 0 && y > 0) plane[0][lx] = in[i - nx];
    if (threadIdx.y == 7 && y < ny - 1) plane[9][lx] = in[i + nx];
    __syncthreads();
    if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1)
      out[i] = plane[ly][lx - 1] + plane[ly][lx + 1] + plane[ly - 1][lx] + plane[ly + 1][lx] + below + above - 6 * here;
  }
}
// sectorwise: launch march_z<<<(8, 32), (32, 8)>>>(f32[256*256*40]=noise, f32[256*256*40], 256, 256, 40)

__constant__ float taps[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};
extern "C" __global__ void filter_rows(const float* __restrict__ in, float* __restrict__ out, int n) {
  extern __shared__ float line[];
  int base = blockIdx.x * blockDim.x, t = threadIdx.x;
  for (int k = t; k < blockDim.x + 16; k += blockDim.x) { int at = base + k - 8; line[k] = at >= 0 && at < n ? in[at] : 0; }
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 17; ++k) sum += taps[k] * line[t + k];
  if (base + t < n) out[base + t] = sum;
}
// sectorwise: launch filter_rows<<<4000, 250, 1064>>>(f32[999999]=noise, f32[999999], 999999)

extern "C" __global__ void bitonic_block(int* data) {
  __shared__ int s[1024];
  int* mine = data + blockIdx.x * 1024;
  int t = threadIdx.x;
  s[t] = mine[t]; s[t + 512] = mine[t + 512];
  for (int k = 2; k <= 1024; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      int a = 2 * j * (t / j) + t % j, b = a + j;
      bool up = (a & k) == 0;
      int x = s[a], y = s[b];
      if ((x > y) == up) { s[a] = y; s[b] = x; }
    }
  __syncthreads();
  mine[t] = s[t]; mine[t + 512] = s[t + 512];
}
// sectorwise: launch bitonic_block<<<40, 512>>>(i32[40960]=uniform(4))

extern "C" __global__ void bitonic_step(unsigned* data, int k, int j) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
  if (other <= i) return;
  unsigned a = data[i], b = data[other];
  if (((i & k) == 0) == (a > b)) { data[i] = b; data[other] = a; }
}
// sectorwise: launch bitonic_step<<<2048, 512>>>(u32[1<<20]=uniform(5), 65536, 4096)
// sectorwise: launch bitonic_step<<<2048, 512>>>(u32[1<<20]=uniform(5), 65536, 4)

extern "C" __global__ void radix_count(const unsigned* __restrict__ key, unsigned* __restrict__ counts, int shift, int n) {
  __shared__ unsigned bin[16];
  if (threadIdx.x < 16) bin[threadIdx.x] = 0;
  __syncthreads();
  int base = blockIdx.x * 2048;
  for (int k = threadIdx.x; k < 2048 && base + k < n; k += blockDim.x) atomicAdd(&bin[(key[base + k] >> shift) & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = bin[threadIdx.x];
}
// sectorwise: launch radix_count<<<489, 256>>>(u32[1000000]=uniform(6), u32[16*489], 8, 1000000)

extern "C" __global__ void radix_split(const unsigned* __restrict__ in, unsigned* __restrict__ out, int bit) {
  __shared__ unsigned keys[256];
  __shared__ int ones[8];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  keys[t] = in[blockIdx.x * 256 + t];
  for (int b = bit; b < bit + 4; ++b) {
    __syncthreads();
    unsigned k = keys[t];
    bool one = (k >> b) & 1;
    unsigned ballot = __ballot_sync(0xffffffffu, one);
    if (lane == 0) ones[warp] = __popc(ballot);
    __syncthreads();
    int before = 0, total = 0;
    for (int w = 0; w < 8; ++w) { if (w < warp) before += ones[w]; total += ones[w]; }
    before += __popc(ballot & ((1u << lane) - 1));
    keys[one ? 256 - total + before : t - before] = k;
  }
  __syncthreads();
  out[blockIdx.x * 256 + t] = keys[t];
}
// sectorwise: launch radix_split<<<500, 256>>>(u32[128000]=uniform(7), u32[128000], 4)

extern "C" __global__ void rank_sort(const float* __restrict__ in, float* __restrict__ out, int n) {
  extern __shared__ float chunk[];
  int i = blockIdx.x * blockDim.x + threadIdx.x, rank = 0;
  float mine = i < n ? in[i] : 0;
  for (int base = 0; base < n; base += blockDim.x) {
    __syncthreads();
    if (base + threadIdx.x < n) chunk[threadIdx.x] = in[base + threadIdx.x];
    __syncthreads();
    int many = min((int)blockDim.x, n - base);
    for (int k = 0; k < many; ++k) rank += chunk[k] < mine || (chunk[k] == mine && base + k < i);
  }
  if (i < n) out[rank] = mine;
}
// sectorwise: launch rank_sort<<<24, 128, 512>>>(f32[3000]=uniform(8), f32[3000], 3000)

extern "C" __global__ void transpose_quads(const float4* __restrict__ in, float4* __restrict__ out, int quads, int rows4) {
  __shared__ float tile[32][33];
  int lane = threadIdx.x, y = threadIdx.y;
  float4 v = in[(size_t)(blockIdx.y * 32 + y) * quads + blockIdx.x * 8 + lane];
  tile[y][4 * lane] = v.x; tile[y][4 * lane + 1] = v.y; tile[y][4 * lane + 2] = v.z; tile[y][4 * lane + 3] = v.w;
  __syncthreads();
  v = make_float4(tile[4 * lane][y], tile[4 * lane + 1][y], tile[4 * lane + 2][y], tile[4 * lane + 3][y]);
  out[(size_t)(blockIdx.x * 32 + y) * rows4 + blockIdx.y * 8 + lane] = v;
}
// sectorwise: launch transpose_quads<<<(32, 64), (8, 32)>>>(f32[2048*1024]=noise, f32[2048*1024], 256, 512)

extern "C" __global__ void transpose_xor(const unsigned short* __restrict__ in, unsigned short* __restrict__ out, int width, int height) {
  __shared__ unsigned short tile[64 * 64];
  int x0 = blockIdx.x * 64, y0 = blockIdx.y * 64;
  for (int k = threadIdx.x; k < 64 * 32; k += blockDim.x) {
    int y = k / 32, x = 2 * (k % 32);
    if (y0 + y < height && x0 + x < width) {
      unsigned pair = *reinterpret_cast<const unsigned*>(&in[(size_t)(y0 + y) * width + x0 + x]);
      *reinterpret_cast<unsigned*>(&tile[64 * y + (x ^ (2 * (y / 2 % 32)))]) = pair;
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 64 * 32; k += blockDim.x) {
    int x = k / 32, y = 2 * (k % 32);
    if (y0 + y < height && x0 + x < width) {
      unsigned low = tile[64 * y + (x ^ (2 * (y / 2 % 32)))], high = tile[64 * (y + 1) + (x ^ (2 * ((y + 1) / 2 % 32)))];
      *reinterpret_cast<unsigned*>(&out[(size_t)(x0 + x) * height + y0 + y]) = low | high << 16;
    }
  }
}
// sectorwise: launch transpose_xor<<<(16, 16), 256>>>(u16[1000*1000]=noise, u16[1000*1000], 1000, 1000)

extern "C" __global__ void batched_transpose(const double* __restrict__ in, double* __restrict__ out, int width, int height) {
  __shared__ double tile[16][17];
  size_t batch = (size_t)blockIdx.z * width * height;
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[batch + y * width + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
  if (x < height && y < width) out[batch + y * height + x] = tile[threadIdx.x][threadIdx.y];
}
// sectorwise: launch batched_transpose<<<(4, 7, 30), (16, 16)>>>(f64[30*50*100]=noise, f64[30*50*100], 50, 100)

extern "C" __global__ void shared_reverse_bytes(const unsigned char* __restrict__ in, unsigned char* __restrict__ out) {
  __shared__ unsigned char line[1000];
  int at = blockIdx.x * 1000 + threadIdx.x;
  line[threadIdx.x] = in[at];
  __syncthreads();
  out[at] = line[999 - threadIdx.x];
}
// sectorwise: launch shared_reverse_bytes<<<133, 1000>>>(u8[133000]=noise, u8[133000])

extern "C" __global__ void nbody(const float4* __restrict__ body, float3* __restrict__ force, int n) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float4 me = body[i];
  float fx = 0, fy = 0, fz = 0;
  for (int base = 0; base < n; base += 256) {
    tile[threadIdx.x] = body[base + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 256; ++k) {
      float4 o = tile[k];
      float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z, r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), s = o.w * r * r * r;
      fx += s * dx; fy += s * dy; fz += s * dz;
    }
    __syncthreads();
  }
  force[i] = make_float3(fx, fy, fz);
}
// sectorwise: launch nbody<<<64, 256>>>(f32[4*16384]=noise, f32[3*16384], 16384)
