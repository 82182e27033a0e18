// Normalisation and pointwise layers over rows of activations.
extern "C" __global__ void layer_norm_block(const float* __restrict__ x, const float* __restrict__ gain, const float* __restrict__ shift, float* __restrict__ y, int n) {
  __shared__ float sums[32], squares[32];
  int t = threadIdx.x;
  const float* row = x + (size_t)blockIdx.x * n;
  float sum = 0, square = 0;
  for (int i = t; i < n; i += blockDim.x) { float v = row[i]; sum += v; square += v * v; }
  for (int o = 16; o; o >>= 1) { sum += __shfl_xor_sync(~0u, sum, o); square += __shfl_xor_sync(~0u, square, o); }
  if (t % 32 == 0) { sums[t / 32] = sum; squares[t / 32] = square; }
  __syncthreads();
  sum = square = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) { sum += sums[i]; square += squares[i]; }
  float mean = sum / n, scale = rsqrtf(square / n - mean * mean + 1e-5f);
  for (int i = t; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = (row[i] - mean) * scale * gain[i] + shift[i];
}
// sectorwise: launch layer_norm_block<<<16384, 256>>>(f32[16384*2048]=noise, f32[2048]=noise, f32[2048]=noise, f32[16384*2048], n=2048)

extern "C" __global__ void layer_norm_warp(const float4* __restrict__ x, float4* __restrict__ y) {
  int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float4 v[6];
  float sum = 0, square = 0;
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    v[i] = x[(size_t)row * 192 + i * 32 + lane];
    sum += v[i].x + v[i].y + v[i].z + v[i].w;
    square += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
  }
  for (int o = 16; o; o >>= 1) { sum += __shfl_xor_sync(~0u, sum, o); square += __shfl_xor_sync(~0u, square, o); }
  float mean = sum / 768, scale = rsqrtf(square / 768 - mean * mean + 1e-5f);
#pragma unroll
  for (int i = 0; i < 6; ++i)
    y[(size_t)row * 192 + i * 32 + lane] = make_float4((v[i].x - mean) * scale, (v[i].y - mean) * scale, (v[i].z - mean) * scale, (v[i].w - mean) * scale);
}
// sectorwise: launch layer_norm_warp<<<8192, 256>>>(f32[65536*768]=noise, f32[65536*768])

extern "C" __global__ void rms_norm_in_place(float* __restrict__ x, const float* __restrict__ gain, int n) {
  __shared__ float part[8];
  int t = threadIdx.x;
  float* row = x + (size_t)blockIdx.x * n;
  float square = 0;
  for (int i = t; i < n; i += 256) square += row[i] * row[i];
  for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
  if (t % 32 == 0) part[t / 32] = square;
  __syncthreads();
  square = 0;
  for (int i = 0; i < 8; ++i) square += part[i];
  float scale = rsqrtf(square / n + 1e-6f);
  for (int i = t; i < n; i += 256) row[i] *= scale * gain[i];
}
// sectorwise: launch rms_norm_in_place<<<4096, 256>>>(f32[4096*8192]=noise, f32[8192]=noise, n=8192)

extern "C" __global__ void softmax_warp(const float* __restrict__ x, float* __restrict__ y) {
  int lane = threadIdx.x % 32;
  size_t row = (size_t)(blockIdx.x * blockDim.x + threadIdx.x) / 32 * 256;
  float v[8], most = -1e30f, sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) { v[i] = x[row + i * 32 + lane]; most = fmaxf(most, v[i]); }
  for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
#pragma unroll
  for (int i = 0; i < 8; ++i) { v[i] = __expf(v[i] - most); sum += v[i]; }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
#pragma unroll
  for (int i = 0; i < 8; ++i) y[row + i * 32 + lane] = v[i] / sum;
}
// sectorwise: launch softmax_warp<<<16384, 256>>>(f32[131072*256]=noise, f32[131072*256])

extern "C" __global__ void batch_norm_sums(const float* __restrict__ x, float* __restrict__ sums, int channels, int pixels, int images) {
  __shared__ float part[256];
  int t = threadIdx.x, channel = blockIdx.x;
  float sum = 0;
  for (int image = blockIdx.y; image < images; image += gridDim.y)
    for (int i = t; i < pixels; i += 256) sum += x[((size_t)image * channels + channel) * pixels + i];
  part[t] = sum;
  __syncthreads();
  for (int s = 128; s; s >>= 1) { if (t < s) part[t] += part[t + s]; __syncthreads(); }
  if (!t) atomicAdd(&sums[channel], part[0]);
}
// sectorwise: launch batch_norm_sums<<<(256, 8), 256>>>(f32[64*256*3136]=noise, f32[256], channels=256, pixels=3136, images=64)

extern "C" __global__ void channels_last_bias(const float4* __restrict__ x, const float4* __restrict__ bias, float4* __restrict__ y, int channels4) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i], b = bias[i % channels4];
  y[i] = make_float4(fmaxf(v.x + b.x, 0), fmaxf(v.y + b.y, 0), fmaxf(v.z + b.z, 0), fmaxf(v.w + b.w, 0));
}
// sectorwise: launch channels_last_bias<<<32768, 256>>>(f32[1<<25]=noise, f32[256]=noise, f32[1<<25], channels4=64)

extern "C" __global__ void gelu_scalar(const float* __restrict__ x, float* __restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    y[i] = 0.5f * v * (1 + tanhf(0.7978845f * (v + 0.044715f * v * v * v)));
  }
}
// sectorwise: launch gelu_scalar<<<2112, 256>>>(f32[1<<25]=noise, f32[1<<25], n=33554432)
