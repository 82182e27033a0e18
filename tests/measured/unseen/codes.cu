// Bytes, texts, ciphers, random numbers and trees.
extern "C" __global__ void base64(const unsigned char* __restrict__ in, unsigned char* __restrict__ out, const unsigned char* __restrict__ alphabet, int triples) {
  __shared__ unsigned char letters[64];
  if (threadIdx.x < 64) letters[threadIdx.x] = alphabet[threadIdx.x];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= triples) return;
  unsigned v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
  for (int k = 0; k < 4; ++k) out[4 * i + k] = letters[v >> (18 - 6 * k) & 63];
}
// sectorwise: launch base64<<<300, 256>>>(u8[3*76543]=uniform(1), u8[4*76543], u8[64]=arange, 76543)

extern "C" __global__ void checksum(const unsigned char* __restrict__ text, const unsigned* __restrict__ table, unsigned* __restrict__ out, int length, int records) {
  __shared__ unsigned steps[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) steps[k] = table[k];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= records) return;
  unsigned crc = ~0u;
  for (int k = 0; k < length; ++k) crc = crc >> 8 ^ steps[(crc ^ text[i * length + k]) & 255];
  out[i] = ~crc;
}
// sectorwise: launch checksum<<<40, 96>>>(u8[3800*53]=uniform(2), u32[256]=uniform(3), u32[3800], 53, 3800)

extern "C" __global__ void cipher(const uint4* __restrict__ in, uint4* __restrict__ out, const unsigned* __restrict__ tables, const uint4* __restrict__ key, int n) {
  __shared__ unsigned t0[256], t1[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) { t0[k] = tables[k]; t1[k] = tables[256 + k]; }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint4 s = in[i];
  for (int round = 0; round < 6; ++round) {
    uint4 k = key[round], r;
    r.x = t0[s.x & 255] ^ t1[s.y >> 8 & 255] ^ __byte_perm(t0[s.z >> 16 & 255], 0, 0x1032) ^ __byte_perm(t1[s.w >> 24], 0, 0x1032) ^ k.x;
    r.y = t0[s.y & 255] ^ t1[s.z >> 8 & 255] ^ __byte_perm(t0[s.w >> 16 & 255], 0, 0x1032) ^ __byte_perm(t1[s.x >> 24], 0, 0x1032) ^ k.y;
    r.z = t0[s.z & 255] ^ t1[s.w >> 8 & 255] ^ __byte_perm(t0[s.x >> 16 & 255], 0, 0x1032) ^ __byte_perm(t1[s.y >> 24], 0, 0x1032) ^ k.z;
    r.w = t0[s.w & 255] ^ t1[s.x >> 8 & 255] ^ __byte_perm(t0[s.y >> 16 & 255], 0, 0x1032) ^ __byte_perm(t1[s.z >> 24], 0, 0x1032) ^ k.w;
    s = r;
  }
  out[i] = s;
}
// sectorwise: launch cipher<<<64, 128>>>(u32[32768]=uniform(4), u32[32768], u32[512]=uniform(5), u32[24]=uniform(6), 8192)

extern "C" __global__ void find_pattern(const char* __restrict__ text, const char* __restrict__ pattern, int* __restrict__ found, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n - m) return;
  for (int k = 0; k < m; ++k) if (text[i + k] != pattern[k]) return;
  atomicAdd(found, 1);
}
// sectorwise: launch find_pattern<<<400, 250>>>(u8[100000]=uniform(7, 3), u8[4]=uniform(8, 3), i32[1], 100000, 4)

extern "C" __global__ void life_words(const unsigned long long* __restrict__ in, unsigned long long* __restrict__ out, int words, int rows) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= words || y >= rows) return;
  unsigned long long ones = 0, twos = 0, fours = 0, own = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    int r = (y + dy + rows) % rows;
    unsigned long long w = in[r * words + x], l = in[r * words + (x + words - 1) % words], g = in[r * words + (x + 1) % words];
    unsigned long long three[3] = {w << 1 | l >> 63, w >> 1 | g << 63, w};
    if (dy == 0) own = w;
    for (int k = 0; k < (dy ? 3 : 2); ++k) { unsigned long long c = ones & three[k]; ones ^= three[k]; fours |= twos & c; twos ^= c; }
  }
  out[y * words + x] = ~fours & twos & (ones | own);
}
// sectorwise: launch life_words<<<(2, 100), (10, 10)>>>(u64[17*999]=uniform(9), u64[17*999], 17, 999)

extern "C" __global__ void monte_carlo(unsigned long long* inside, int tries) {
  unsigned long long s = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9E3779B97F4A7C15ull;
  int hits = 0;
  for (int k = 0; k < tries; ++k) {
    s ^= s << 13; s ^= s >> 7; s ^= s << 17;
    float x = (unsigned)s * 2.3283064e-10f, y = (unsigned)(s >> 32) * 2.3283064e-10f;
    if (x * x + y * y < 1) ++hits;
  }
  for (int d = 16; d; d /= 2) hits += __shfl_down_sync(0xffffffffu, hits, d);
  if (threadIdx.x % 32 == 0) atomicAdd(inside, (unsigned long long)hits);
}
// sectorwise: launch monte_carlo<<<131, 192>>>(u64[1], 50)

extern "C" __global__ void unite(const int* __restrict__ from, const int* __restrict__ to, int* parent, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int a = from[i], b = to[i];
  while (true) {
    while (parent[a] != a) a = parent[a];
    while (parent[b] != b) b = parent[b];
    if (a == b) return;
    if (a < b) { int t = a; a = b; b = t; }
    if (atomicCAS(&parent[a], a, b) == a) return;
  }
}
// sectorwise: launch unite<<<1, 32>>>(i32[32]=uniform(10, 64), i32[32]=uniform(11, 64), i32[64]=arange, 20)

extern "C" __global__ void jump(int* parent, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) parent[i] = parent[parent[i]];
}
// sectorwise: launch jump<<<391, 256>>>(i32[100000]=perm(12), 100000)

struct Box { float3 low; int left; float3 high; int right; };
extern "C" __global__ void traverse(const Box* __restrict__ boxes, const float3* __restrict__ points, int* __restrict__ count, int inner, int n) {
  int stack[24], top = 0, hits = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float3 p = points[i];
  stack[top++] = 0;
  while (top) {
    int node = stack[--top];
    if (node >= inner) { ++hits; continue; }
    Box b = boxes[node];
    float near = fabsf(p.x - b.low.x) + fabsf(p.y - b.low.y), far = fabsf(p.y - b.high.y) + fabsf(p.z - b.high.z);
    if (near < 0.6f) stack[top++] = 2 * node + 1;
    if (far < 0.6f) stack[top++] = 2 * node + 2;
  }
  count[i] = hits;
}
// sectorwise: launch traverse<<<63, 128>>>(f32[8*1023]=uniform(13), f32[3*8000]=uniform(14), i32[8000], 1023, 8000)

extern "C" __global__ void run_lengths(const int* __restrict__ in, int* __restrict__ length, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || (i && in[i] == in[i - 1])) return;
  int end = i + 1;
  while (end < n && in[end] == in[i]) ++end;
  length[i] = end - i;
}
// sectorwise: launch run_lengths<<<100, 320>>>(i32[31999]=uniform(15, 2), i32[31999], 31999)

extern "C" __global__ void rotate_words(const unsigned short* __restrict__ in, unsigned short* __restrict__ out, int width, int height) {
  int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x < width && y < height) out[x * height + height - 1 - y] = in[y * width + x];
}
// sectorwise: launch rotate_words<<<(32, 63), (32, 16)>>>(u16[1000*1003]=noise, u16[1000*1003], 1000, 1003)

extern "C" __global__ void edit_distance(const unsigned char* __restrict__ a, const unsigned char* __restrict__ b, int* __restrict__ out, int m) {
  extern __shared__ int line[];
  int t = threadIdx.x, n = blockDim.x, *before = line, *last = line + n + 1, *now = line + 2 * (n + 1);
  const unsigned char* mine = a + blockIdx.x * n;
  for (int d = 0; d < n + m - 1; ++d) {
    int j = d - t;
    if (j >= 0 && j < m) {
      int diagonal = t == 0 ? j : j == 0 ? t : before[t - 1], up = t == 0 ? j + 1 : last[t - 1], left = j == 0 ? t + 1 : last[t];
      now[t] = min(min(up, left) + 1, diagonal + (mine[t] != b[j]));
    }
    __syncthreads();
    int* free = before; before = last; last = now; now = free;
  }
  if (t == n - 1) out[blockIdx.x] = last[t];
}
// sectorwise: launch edit_distance<<<50, 64, 780>>>(u8[3200]=uniform(16, 4), u8[80]=uniform(17, 4), i32[50], 80)
