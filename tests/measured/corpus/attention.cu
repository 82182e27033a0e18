// Attention: scores, their softmax, and products with values, for heads of 64 or 128.
extern "C" __global__ void attention_naive(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out, int length) {
  extern __shared__ float score[];
  __shared__ float part[256];
  int t = threadIdx.x, row = blockIdx.x;
  const float* head_k = k + (size_t)blockIdx.y * length * 64;
  const float* head_v = v + (size_t)blockIdx.y * length * 64;
  const float* mine = q + ((size_t)blockIdx.y * length + row) * 64;
  float most = -1e30f;
  for (int j = t; j < length; j += 256) {
    float sum = 0;
    for (int d = 0; d < 64; ++d) sum += mine[d] * head_k[j * 64 + d];
    score[j] = sum * 0.125f;
    most = fmaxf(most, score[j]);
  }
  part[t] = most;
  __syncthreads();
  for (int s = 128; s; s >>= 1) { if (t < s) part[t] = fmaxf(part[t], part[t + s]); __syncthreads(); }
  most = part[0];
  __syncthreads();
  float total = 0;
  for (int j = t; j < length; j += 256) { score[j] = __expf(score[j] - most); total += score[j]; }
  part[t] = total;
  __syncthreads();
  for (int s = 128; s; s >>= 1) { if (t < s) part[t] += part[t + s]; __syncthreads(); }
  int d = t % 64, slice = t / 64;
  float sum = 0;
  for (int j = slice; j < length; j += 4) sum += score[j] * head_v[j * 64 + d];
  __syncthreads();
  float scale = 1 / part[0];
  __syncthreads();
  part[t] = sum;
  __syncthreads();
  if (t < 64) out[((size_t)blockIdx.y * length + row) * 64 + t] = (part[t] + part[t + 64] + part[t + 128] + part[t + 192]) * scale;
}
// sectorwise: launch attention_naive<<<(1024, 8), 256, 4096>>>(f32[8*1024*64]=noise, f32[8*1024*64]=noise, f32[8*1024*64]=noise, f32[8*1024*64], length=1024)

extern "C" __global__ void attention_tiled(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out, int length) {
  __shared__ float ks[32][65], vs[32][64];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = blockIdx.x * 4 + warp;
  size_t head = (size_t)blockIdx.y * length * 64;
  float query[64], sum0 = 0, sum1 = 0, most = -1e30f, total = 0;
#pragma unroll
  for (int d = 0; d < 64; ++d) query[d] = q[head + row * 64 + d];
  for (int j = 0; j < length; j += 32) {
    for (int i = threadIdx.x; i < 2048; i += 128) { ks[i / 64][i % 64] = k[head + j * 64 + i]; vs[i / 64][i % 64] = v[head + j * 64 + i]; }
    __syncthreads();
    float s = 0;
#pragma unroll
    for (int d = 0; d < 64; ++d) s += query[d] * ks[lane][d];
    s *= 0.125f;
    float highest = s;
    for (int o = 16; o; o >>= 1) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, o));
    highest = fmaxf(highest, most);
    float fade = __expf(most - highest), weight = __expf(s - highest);
    most = highest;
    total = total * fade + weight;
    sum0 *= fade;
    sum1 *= fade;
    for (int i = 0; i < 32; ++i) {
      float w = __shfl_sync(~0u, weight, i);
      sum0 += w * vs[i][lane];
      sum1 += w * vs[i][lane + 32];
    }
    __syncthreads();
  }
  for (int o = 16; o; o >>= 1) total += __shfl_xor_sync(~0u, total, o);
  out[head + row * 64 + lane] = sum0 / total;
  out[head + row * 64 + lane + 32] = sum1 / total;
}
// sectorwise: launch attention_tiled<<<(256, 16), 128>>>(f32[16*1024*64]=noise, f32[16*1024*64]=noise, f32[16*1024*64]=noise, f32[16*1024*64], length=1024)

extern "C" __global__ void attention_decode(const float4* __restrict__ q, const float4* __restrict__ cache_k, const float4* __restrict__ cache_v, float4* __restrict__ out, int length) {
  __shared__ float score[4096];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  size_t head = (size_t)blockIdx.x * length * 32;
  float4 mine = q[blockIdx.x * 32 + lane];
  for (int j = warp; j < length; j += 8) {
    float4 key = cache_k[head + (size_t)j * 32 + lane];
    float s = mine.x * key.x + mine.y * key.y + mine.z * key.z + mine.w * key.w;
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
    if (!lane) score[j] = __expf(s * 0.088f);
  }
  __syncthreads();
  float4 sum = make_float4(0, 0, 0, 0);
  for (int j = warp; j < length; j += 8) {
    float4 value = cache_v[head + (size_t)j * 32 + lane];
    float w = score[j];
    sum.x += w * value.x; sum.y += w * value.y; sum.z += w * value.z; sum.w += w * value.w;
  }
  __shared__ float4 part[8][32];
  part[warp][lane] = sum;
  __syncthreads();
  if (warp) return;
  for (int i = 1; i < 8; ++i) { sum.x += part[i][lane].x; sum.y += part[i][lane].y; sum.z += part[i][lane].z; sum.w += part[i][lane].w; }
  out[blockIdx.x * 32 + lane] = sum;
}
// sectorwise: launch attention_decode<<<256, 256>>>(f32[256*128]=noise, f32[256*2048*128]=noise, f32[256*2048*128]=noise, f32[256*128], length=2048)

extern "C" __global__ void rotary(float2* __restrict__ x, const float2* __restrict__ angle, int half_head) {
  int d = threadIdx.x, token = blockIdx.x, head = blockIdx.y;
  size_t i = ((size_t)token * gridDim.y + head) * half_head + d;
  float2 value = x[i], turn = angle[(size_t)token * half_head + d];
  x[i] = make_float2(value.x * turn.x - value.y * turn.y, value.x * turn.y + value.y * turn.x);
}
// sectorwise: launch rotary<<<(8192, 16), 64>>>(f32[8192*16*128]=noise, f32[8192*128]=noise, half_head=64)

extern "C" __global__ void split_heads(const float4* __restrict__ x, float4* __restrict__ y, int tokens) {
  int d = threadIdx.x, head = threadIdx.y + blockIdx.y * 8, token = blockIdx.x;
  y[((size_t)head * tokens + token) * 32 + d] = x[((size_t)token * gridDim.y * 8 + head) * 32 + d];
}
// sectorwise: launch split_heads<<<(8192, 2), (32, 8)>>>(f32[8192*16*128]=noise, f32[8192*16*128], tokens=8192)

extern "C" __global__ void append_cache(const float* __restrict__ fresh, float* __restrict__ cache, const int* __restrict__ place, int slots) {
  int d = threadIdx.x, head = blockIdx.y, token = blockIdx.x;
  int slot = place[token] % slots;
  cache[((size_t)head * slots + slot) * 128 + d] = fresh[((size_t)token * gridDim.y + head) * 128 + d];
}
// sectorwise: launch append_cache<<<(4096, 8), 128>>>(f32[4096*8*128]=noise, f32[8*16384*128], i32[4096]=perm(3), slots=16384)
