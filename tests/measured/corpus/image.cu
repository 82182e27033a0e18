// Images: filters, changes of layout and of size.
extern "C" __global__ void blur_rows(const float* __restrict__ x, float* __restrict__ y, int width) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  float sum = 0;
#pragma unroll
  for (int d = -8; d <= 8; ++d) sum += x[(size_t)r * width + min(max(c + d, 0), width - 1)];
  y[(size_t)r * width + c] = sum / 17;
}
// sectorwise: launch blur_rows<<<(16, 4096), 256>>>(f32[4096*4096]=noise, f32[4096*4096], width=4096)

extern "C" __global__ void blur_columns(const float* __restrict__ x, float* __restrict__ y, int width, int height) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  float sum = 0;
#pragma unroll
  for (int d = -8; d <= 8; ++d) sum += x[(size_t)min(max(r + d, 0), height - 1) * width + c];
  y[(size_t)r * width + c] = sum / 17;
}
// sectorwise: launch blur_columns<<<(16, 4096), 256>>>(f32[4096*4096]=noise, f32[4096*4096], width=4096, height=4096)

extern "C" __global__ void convolve3x3(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y, int size, int channels) {
  __shared__ float tile[10][34];
  int tx = threadIdx.x, ty = threadIdx.y, c0 = blockIdx.x * 32, r0 = blockIdx.y * 8, out = blockIdx.z;
  float sum = 0;
  for (int channel = 0; channel < channels; ++channel) {
    for (int i = ty * 32 + tx; i < 340; i += 256) {
      int r = min(max(r0 + i / 34 - 1, 0), size - 1), c = min(max(c0 + i % 34 - 1, 0), size - 1);
      tile[i / 34][i % 34] = x[((size_t)channel * size + r) * size + c];
    }
    __syncthreads();
    for (int d = 0; d < 9; ++d) sum += tile[ty + d / 3][tx + d % 3] * weight[(out * channels + channel) * 9 + d];
    __syncthreads();
  }
  y[((size_t)out * size + r0 + ty) * size + c0 + tx] = sum;
}
// sectorwise: launch convolve3x3<<<(8, 32, 32), (32, 8)>>>(f32[16*256*256]=noise, f32[32*16*9]=noise, f32[32*256*256], size=256, channels=16)

extern "C" __global__ void interleaved_to_planes(const unsigned char* __restrict__ rgb, unsigned char* __restrict__ planes, int pixels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int c = 0; c < 3; ++c) planes[c * pixels + i] = rgb[3 * i + c];
}
// sectorwise: launch interleaved_to_planes<<<65536, 256>>>(u8[3*16777216], u8[3*16777216], pixels=16777216)

extern "C" __global__ void grey(const uchar4* __restrict__ rgba, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uchar4 v = rgba[i];
  out[i] = 0.299f * v.x + 0.587f * v.y + 0.114f * v.z;
}
// sectorwise: launch grey<<<65536, 256>>>(u32[1<<24]=noise, f32[1<<24])

extern "C" __global__ void resize_bilinear(const float* __restrict__ x, float* __restrict__ y, int from, int to) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  float scale = (float)from / to, fx = c * scale, fy = r * scale;
  int x0 = min((int)fx, from - 2), y0 = min((int)fy, from - 2);
  float u = fx - x0, v = fy - y0;
  const float* p = x + (size_t)y0 * from + x0;
  y[(size_t)r * to + c] = (1 - v) * ((1 - u) * p[0] + u * p[1]) + v * ((1 - u) * p[from] + u * p[from + 1]);
}
// sectorwise: launch resize_bilinear<<<(160, 640), (32, 8)>>>(f32[2048*2048]=noise, f32[5120*5120], from=2048, to=5120)

extern "C" __global__ void rotate_quarter(const unsigned* __restrict__ x, unsigned* __restrict__ y, int n) {
  __shared__ unsigned tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32;
  for (int j = threadIdx.y; j < 32; j += 8) tile[j][threadIdx.x] = x[(size_t)(r + j) * n + c];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8) y[(size_t)(blockIdx.x * 32 + j) * n + n - 1 - r - threadIdx.x] = tile[threadIdx.x][j];
}
// sectorwise: launch rotate_quarter<<<(128, 128), (32, 8)>>>(u32[4096*4096]=noise, u32[4096*4096], n=4096)

extern "C" __global__ void median3x3(const float* __restrict__ x, float* __restrict__ y, int n) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  float v[9];
#pragma unroll
  for (int d = 0; d < 9; ++d) v[d] = x[(size_t)min(max(r + d / 3 - 1, 0), n - 1) * n + min(max(c + d % 3 - 1, 0), n - 1)];
#pragma unroll
  for (int i = 0; i < 5; ++i)
#pragma unroll
    for (int j = i + 1; j < 9; ++j) { float low = fminf(v[i], v[j]); v[j] = fmaxf(v[i], v[j]); v[i] = low; }
  y[(size_t)r * n + c] = v[4];
}
// sectorwise: launch median3x3<<<(128, 512), (32, 8)>>>(f32[4096*4096]=noise, f32[4096*4096], n=4096)
