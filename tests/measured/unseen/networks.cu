// Steps of neural networks: attention over pages, normalisation backwards, rotations, convolutions, pooling, quantised rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__device__ float sum_warp(float v) { for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d); return v; }

extern "C" __global__ void decode_attention(const __half* __restrict__ q, const __half* __restrict__ cache, const int* __restrict__ pages, float* __restrict__ out, int length, int per_sequence) {
  __shared__ float query[128], scores[1024], part[8];
  int sequence = blockIdx.x, head = blockIdx.y, heads = gridDim.y, t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t < 128) query[t] = __half2float(q[(sequence * heads + head) * 128 + t]);
  __syncthreads();
  for (int i = warp; i < length; i += 8) {
    const __half2* key = reinterpret_cast<const __half2*>(cache + ((size_t)(pages[sequence * per_sequence + i / 16] * 16 + i % 16) * heads + head) * 128);
    float2 a = __half22float2(key[lane]), b = __half22float2(key[32 + lane]);
    float dot = sum_warp(a.x * query[2 * lane] + a.y * query[2 * lane + 1] + b.x * query[64 + 2 * lane] + b.y * query[65 + 2 * lane]);
    if (lane == 0) scores[i] = dot * 0.088f;
  }
  __syncthreads();
  float total = 0;
  for (int i = t; i < length; i += 256) { float e = exp2f(scores[i]); scores[i] = e; total += e; }
  total = sum_warp(total);
  if (lane == 0) part[warp] = total;
  __syncthreads();
  if (t < 128) {
    total = 0;
    for (int w = 0; w < 8; ++w) total += part[w];
    float acc = 0;
    for (int i = 0; i < length; ++i) acc += scores[i] * __half2float(cache[((size_t)(pages[sequence * per_sequence + i / 16] * 16 + i % 16) * heads + head) * 128 + t]);
    out[(sequence * heads + head) * 128 + t] = acc * __frcp_rn(total);
  }
}
// sectorwise: launch decode_attention<<<(16, 8), 256>>>(f16[16*8*128]=noise, f16[800*16*8*128]=noise, i32[16*50]=perm(1), f32[16*8*128], 777, 50)

extern "C" __global__ void rotate_pairs(__nv_bfloat162* __restrict__ x, const float2* __restrict__ turn, int heads) {
  int token = blockIdx.x;
  for (int k = threadIdx.x; k < heads * 64; k += blockDim.x) {
    int i = k % 64;
    float2 v = __bfloat1622float2(x[(size_t)token * heads * 64 + k]), r = turn[token * 64 + i];
    x[(size_t)token * heads * 64 + k] = __floats2bfloat162_rn(v.x * r.x - v.y * r.y, v.x * r.y + v.y * r.x);
  }
}
// sectorwise: launch rotate_pairs<<<2048, 192>>>(u16[2048*12*128]=noise, f32[2048*128]=noise, 12)

extern "C" __global__ void norm_backward(const float* __restrict__ grad, const float* __restrict__ x, const float* __restrict__ weight, const float2* __restrict__ moments, float* __restrict__ dx, float* dweight, int columns) {
  __shared__ float sums[2][32];
  int row = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float2 m = moments[row];
  float a = 0, b = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    float g = grad[(size_t)row * columns + j] * weight[j], n = (x[(size_t)row * columns + j] - m.x) * m.y;
    a += g; b += g * n;
    atomicAdd(&dweight[j], grad[(size_t)row * columns + j] * n);
  }
  a = sum_warp(a); b = sum_warp(b);
  if (lane == 0) { sums[0][warp] = a; sums[1][warp] = b; }
  __syncthreads();
  a = b = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) { a += sums[0][w]; b += sums[1][w]; }
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    float g = grad[(size_t)row * columns + j] * weight[j], n = (x[(size_t)row * columns + j] - m.x) * m.y;
    dx[(size_t)row * columns + j] = m.y * (g - (a + n * b) * (1.0f / 768));
  }
}
// sectorwise: launch norm_backward<<<512, 256>>>(f32[512*768]=noise, f32[512*768]=noise, f32[768]=noise, f32[1024]=noise, f32[512*768], f32[768], 768)

extern "C" __global__ void convolve(const float* __restrict__ in, const float* __restrict__ filter, float* __restrict__ out, int channels, int height, int width) {
  __shared__ float patch[18][20];
  int oc = blockIdx.z, x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, t = threadIdx.y * 16 + threadIdx.x;
  float acc = 0;
  for (int c = 0; c < channels; ++c) {
    __syncthreads();
    for (int i = t; i < 18 * 18; i += 256) {
      int py = blockIdx.y * 16 + i / 18 - 1, px = blockIdx.x * 16 + i % 18 - 1;
      patch[i / 18][i % 18] = py >= 0 && px >= 0 && py < height && px < width ? in[(c * height + py) * width + px] : 0;
    }
    __syncthreads();
    for (int fy = 0; fy < 3; ++fy) for (int fx = 0; fx < 3; ++fx) acc += patch[threadIdx.y + fy][threadIdx.x + fx] * filter[((oc * channels + c) * 3 + fy) * 3 + fx];
  }
  if (x < width && y < height) out[(oc * height + y) * width + x] = acc;
}
// sectorwise: launch convolve<<<(4, 4, 24), (16, 16)>>>(f32[16*56*56]=noise, f32[24*16*9]=noise, f32[24*56*56], 16, 56, 56)

extern "C" __global__ void depthwise(const float4* __restrict__ in, const float4* __restrict__ filter, float4* __restrict__ out, int size, int quads, int stride) {
  int q = threadIdx.x, x = blockIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, wide = size / stride;
  if (y >= wide) return;
  float4 acc = make_float4(0, 0, 0, 0);
  for (int fy = 0; fy < 3; ++fy) for (int fx = 0; fx < 3; ++fx) {
    int iy = y * stride + fy - 1, ix = x * stride + fx - 1;
    if (iy < 0 || ix < 0 || iy >= size || ix >= size) continue;
    float4 v = in[(iy * size + ix) * quads + q], f = filter[(fy * 3 + fx) * quads + q];
    acc.x += v.x * f.x; acc.y += v.y * f.y; acc.z += v.z * f.z; acc.w += v.w * f.w;
  }
  out[(y * wide + x) * quads + q] = acc;
}
// sectorwise: launch depthwise<<<(112, 14), (24, 8)>>>(f32[112*112*96]=noise, f32[9*96]=noise, f32[112*112*96], 112, 24, 1)
// sectorwise: launch depthwise<<<(56, 14), (24, 4)>>>(f32[112*112*96]=noise, f32[9*96]=noise, f32[56*56*96], 112, 24, 2)

extern "C" __global__ void max_pool(const float* __restrict__ in, float* __restrict__ out, int* __restrict__ where, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, c = blockIdx.z;
  if (x >= width / 2) return;
  const float* p = in + ((size_t)c * height + 2 * y) * width + 2 * x;
  float best = p[0]; int at = 0;
  if (p[1] > best) { best = p[1]; at = 1; }
  if (p[width] > best) { best = p[width]; at = 2; }
  if (p[width + 1] > best) { best = p[width + 1]; at = 3; }
  out[((size_t)c * (height / 2) + y) * (width / 2) + x] = best;
  where[((size_t)c * (height / 2) + y) * (width / 2) + x] = at;
}
// sectorwise: launch max_pool<<<(1, 75, 64), 128>>>(f32[64*150*202]=uniform(2), f32[64*75*101], i32[64*75*101], 202, 150)

extern "C" __global__ void im2col(const float* __restrict__ in, float* __restrict__ out, int channels, int size, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = i % size, y = i / size % size, c = i / (size * size);
  for (int fy = -1; fy <= 1; ++fy) for (int fx = -1; fx <= 1; ++fx) {
    int k = (c * 3 + fy + 1) * 3 + fx + 1;
    bool inside = y + fy >= 0 && y + fy < size && x + fx >= 0 && x + fx < size;
    out[(size_t)k * size * size + y * size + x] = inside ? in[(c * size + y + fy) * size + x + fx] : 0;
  }
}
// sectorwise: launch im2col<<<2352, 128>>>(f32[96*56*56]=noise, f32[96*9*56*56], 96, 56, 301056)

extern "C" __global__ void quantise_rows(const float4* __restrict__ in, char4* __restrict__ out, float* __restrict__ scale, int quads) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  float most = 0;
  for (int j = threadIdx.x; j < quads; j += 32) { float4 v = in[row * quads + j]; most = fmaxf(fmaxf(fmaxf(most, fabsf(v.x)), fmaxf(fabsf(v.y), fabsf(v.z))), fabsf(v.w)); }
  for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
  float s = most * (1.0f / 127), r = __frcp_rn(s + 1e-20f);
  for (int j = threadIdx.x; j < quads; j += 32) {
    float4 v = in[row * quads + j];
    out[row * quads + j] = make_char4(__float2int_rn(v.x * r), __float2int_rn(v.y * r), __float2int_rn(v.z * r), __float2int_rn(v.w * r));
  }
  if (threadIdx.x == 0) scale[row] = s;
}
// sectorwise: launch quantise_rows<<<250, (32, 4)>>>(f32[1000*400]=noise, u8[1000*400], f32[1000], 100)

extern "C" __global__ void int8_rows(const int4* __restrict__ m, const int4* __restrict__ x, int* __restrict__ y, int sixteens) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, sum = 0;
  for (int j = lane; j < sixteens; j += 32) {
    int4 a = m[(size_t)row * sixteens + j], b = x[j];
    sum = __dp4a(a.x, b.x, __dp4a(a.y, b.y, __dp4a(a.z, b.z, __dp4a(a.w, b.w, sum))));
  }
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (lane == 0) y[row] = sum;
}
// sectorwise: launch int8_rows<<<512, 256>>>(u8[4096*4096]=noise, u8[4096]=noise, i32[4096], 256)

extern "C" __global__ void fp8_scale(const __nv_fp8x4_e4m3* __restrict__ in, const float* __restrict__ scale, float4* __restrict__ out, int quads, int group) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  float4 v = static_cast<float4>(in[i]);
  float s = scale[4 * i / group];
  out[i] = make_float4(v.x * s, v.y * s, v.z * s, v.w * s);
}
// sectorwise: launch fp8_scale<<<1954, 128>>>(u8[1000000]=noise, f32[7813]=noise, f32[1000000], 250000, 128)

extern "C" __global__ void int4_rows(const unsigned* __restrict__ m, const __half* __restrict__ scale, const __half2* __restrict__ x, float* __restrict__ y, int words) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int j = threadIdx.x; j < words; j += 32) {
    unsigned w = m[(size_t)row * words + j];
    float s = __half2float(scale[row * (words / 16) + j / 16]), part = 0;
    for (int k = 0; k < 4; ++k) {
      float2 v = __half22float2(x[4 * j + k]);
      part += ((int)(w >> (8 * k) & 15) - 8) * v.x + ((int)(w >> (8 * k + 4) & 15) - 8) * v.y;
    }
    sum += s * part;
  }
  sum = sum_warp(sum);
  if (threadIdx.x == 0) y[row] = sum;
}
// sectorwise: launch int4_rows<<<1024, (32, 4)>>>(u32[4096*512]=noise, f16[4096*32]=noise, f16[4096]=noise, f32[4096], 512)

extern "C" __global__ void softmax_online(const float* __restrict__ in, float* __restrict__ out, int columns) {
  __shared__ float2 parts[32];
  const float* row = in + (size_t)blockIdx.x * columns;
  float most = -1e30f, sum = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    float v = row[j], next = fmaxf(most, v);
    sum = sum * __expf(most - next) + __expf(v - next);
    most = next;
  }
  for (int d = 16; d; d /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, most, d), its = __shfl_xor_sync(0xffffffffu, sum, d), next = fmaxf(most, other);
    sum = sum * __expf(most - next) + its * __expf(other - next);
    most = next;
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = make_float2(most, sum);
  __syncthreads();
  float2 all = parts[0];
  for (int w = 1; w < blockDim.x / 32; ++w) { float2 p = parts[w]; float next = fmaxf(all.x, p.x); all.y = all.y * __expf(all.x - next) + p.y * __expf(p.x - next); all.x = next; }
  float r = __frcp_rn(all.y);
  for (int j = threadIdx.x; j < columns; j += blockDim.x) out[(size_t)blockIdx.x * columns + j] = __expf(row[j] - all.x) * r;
}
// sectorwise: launch softmax_online<<<1000, 320>>>(f32[1000*5000]=noise, f32[1000*5000], 5000)

extern "C" __global__ void embedding_backward(const int* __restrict__ token, const __half2* __restrict__ grad, __half2* table, int pairs) {
  for (int j = threadIdx.x; j < pairs; j += blockDim.x) atomicAdd(&table[(size_t)token[blockIdx.x] * pairs + j], grad[(size_t)blockIdx.x * pairs + j]);
}
// sectorwise: launch embedding_backward<<<2000, 96>>>(i32[2000]=uniform(3, 500), f16[2000*300]=noise, f16[500*300], 150)
