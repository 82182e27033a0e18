// Data read again: across warps, blocks and passes; working sets around the caches; strides of powers of two.
extern "C" __global__ void passes(const float* __restrict__ in, float* __restrict__ out, int per_block, int times) {
  const float* mine = in + (size_t)blockIdx.x * per_block;
  float sum = 0;
  for (int r = 0; r < times; ++r)
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) sum += mine[i] * r;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// sectorwise: launch passes<<<132, 256>>>(f32[132*16384]=noise, f32[132*256], 16384, 4)
// sectorwise: launch passes<<<132, 256>>>(f32[132*51200]=noise, f32[132*256], 51200, 4)
// sectorwise: launch passes<<<132, 256>>>(f32[132*73728]=noise, f32[132*256], 73728, 4)
// sectorwise: launch passes<<<132, 512>>>(f32[132*131072]=noise, f32[132*512], 131072, 3)
// sectorwise: launch passes<<<1, 1024>>>(f32[262144]=noise, f32[1024], 262144, 3)

extern "C" __global__ void everyone_reads(const float4* __restrict__ in, float* __restrict__ out, int quads) {
  float sum = 0;
  for (int i = threadIdx.x; i < quads; i += blockDim.x) { float4 v = in[i]; sum += v.x + v.y + v.z + v.w; }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// sectorwise: launch everyone_reads<<<528, 256>>>(f32[4*65536]=noise, f32[528*256], 65536)
// sectorwise: launch everyone_reads<<<132, 1024>>>(f32[4*1048576]=noise, f32[132*1024], 1048576)

extern "C" __global__ void column_walk(const float* __restrict__ m, float* __restrict__ out, int rows, int pitch) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int y = 0; y < rows; ++y) sum += m[(size_t)y * pitch + x];
  out[x] = sum;
}
// sectorwise: launch column_walk<<<16, 256>>>(f32[2048*4096]=noise, f32[4096], 2048, 4096)
// sectorwise: launch column_walk<<<16, 256>>>(f32[2048*4128]=noise, f32[4096], 2048, 4128)
// sectorwise: launch column_walk<<<128, 32>>>(f32[512*65536]=noise, f32[4096], 512, 65536)

extern "C" __global__ void row_walk(const float* __restrict__ m, float* __restrict__ out, int columns, int pitch, int rows) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= rows) return;
  float sum = 0;
  for (int x = 0; x < columns; ++x) sum += m[(size_t)y * pitch + x];
  out[y] = sum;
}
// sectorwise: launch row_walk<<<64, 128>>>(f32[8192*1024]=noise, f32[8192], 1024, 1024, 8192)
// sectorwise: launch row_walk<<<64, 128>>>(f32[8192*1032]=noise, f32[8192], 1024, 1032, 8192)
// sectorwise: launch row_walk<<<500, 100>>>(f32[50000*64]=noise, f32[50000], 64, 64, 50000)

extern "C" __global__ void strided_rows(const float* __restrict__ m, float* __restrict__ out, size_t pitch, int columns) {
  for (int x = threadIdx.x; x < columns; x += blockDim.x) out[blockIdx.x * columns + x] = 2 * m[blockIdx.x * pitch + x];
}
// sectorwise: launch strided_rows<<<4096, 128>>>(f32[4096*8192]=noise, f32[4096*256], i64(8192), 256)
// sectorwise: launch strided_rows<<<4096, 128>>>(f32[4096*8256]=noise, f32[4096*256], i64(8256), 256)

extern "C" __global__ void pairs_of_rows(const float* __restrict__ m, float* __restrict__ out, int columns, int rows) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, a = warp / rows, b = warp % rows;
  if (a >= rows) return;
  float sum = 0;
  for (int j = lane; j < columns; j += 32) { float d = m[a * columns + j] - m[b * columns + j]; sum += d * d; }
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) out[warp] = sum;
}
// sectorwise: launch pairs_of_rows<<<8192, 256>>>(f32[256*128]=noise, f32[65536], 128, 256)
// sectorwise: launch pairs_of_rows<<<20000, 256>>>(f32[400*1000]=noise, f32[160000], 1000, 400)

extern "C" __global__ void write_then_read(float* __restrict__ a, int n, int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = i;
  __syncthreads();
  float v = a[(i + shift) % n];
  __syncthreads();
  a[i] = v + 1;
}
// sectorwise: launch write_then_read<<<8192, 256>>>(f32[1<<21], 2097152, 32)

extern "C" __global__ void update_in_place(float4* a, int n, int rounds) {
  for (int r = 0; r < rounds; ++r)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { float4 v = a[i]; v.x += 1; v.w *= 0.5f; a[i] = v; }
}
// sectorwise: launch update_in_place<<<264, 512>>>(f32[1<<22], 1048576, 2)
// sectorwise: launch update_in_place<<<264, 512>>>(f32[1<<25], 8388608, 2)

extern "C" __global__ void scatter_words(float* __restrict__ out, const int* __restrict__ where, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[where[i]] = i;
}
// sectorwise: launch scatter_words<<<16384, 256>>>(f32[1<<22], i32[1<<22]=perm(1), 4194304)
// sectorwise: launch scatter_words<<<4096, 256>>>(f32[1<<20], i32[1<<20]=perm(2), 1048576)

extern "C" __global__ void random_reads(const float* __restrict__ in, float* __restrict__ out, unsigned mask, int times) {
  unsigned s = blockIdx.x * blockDim.x + threadIdx.x + 1;
  float sum = 0;
  for (int k = 0; k < times; ++k) { s = s * 1664525u + 1013904223u; sum += in[(s >> 7) & mask]; }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// sectorwise: launch random_reads<<<528, 256>>>(f32[1<<24]=noise, f32[528*256], 16777215, 16)
// sectorwise: launch random_reads<<<528, 256>>>(f32[1<<16]=noise, f32[528*256], 65535, 16)

extern "C" __global__ void tile_of_image(const float* __restrict__ in, float* __restrict__ out, int width, int pitch, int radius) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int dy = -radius; dy <= radius; ++dy)
    for (int dx = -radius; dx <= radius; ++dx) sum += in[(y + radius + dy) * pitch + x + radius + dx];
  out[y * width + x] = sum;
}
// sectorwise: launch tile_of_image<<<(64, 128), (32, 8)>>>(f32[1040*2064]=noise, f32[2048*1024], 2048, 2064, 3)
// sectorwise: launch tile_of_image<<<(256, 64), (8, 16)>>>(f32[1040*2064]=noise, f32[2048*1024], 2048, 2064, 3)

extern "C" __global__ void long_chain(const float* __restrict__ in, float* __restrict__ out, int n, int steps) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = in[i];
    for (int k = 0; k < steps; ++k) v = v * 1.0001f + 0.5f;
    out[i] = v;
  }
}
// sectorwise: launch long_chain<<<264, 256>>>(f32[1<<22]=noise, f32[1<<22], 4194304, 256)
// sectorwise: launch long_chain<<<133, 1024>>>(f32[136192]=noise, f32[136192], 136192, 1000)
// sectorwise: launch long_chain<<<1, 32>>>(f32[1024]=noise, f32[1024], 1024, 100)

extern "C" __global__ void uneven(const int* __restrict__ work, const float* __restrict__ in, float* __restrict__ out) {
  int rounds = work[blockIdx.x];
  float sum = 0;
  for (int r = 0; r < rounds; ++r) sum += in[(r * 256 + threadIdx.x + blockIdx.x * 64) & 1048575];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}
// sectorwise: launch uneven<<<2000, 256>>>(i32[2000]=uniform(3, 400), f32[1<<20]=noise, f32[2000*256])

extern "C" __global__ void whole_kernel_div(const int* __restrict__ in, int* __restrict__ out, int w, int h, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int c = i / (w * h), y = i / w % h, x = i % w;
  out[i] = in[(y * w + x) * (n / (w * h)) + c];
}
// sectorwise: launch whole_kernel_div<<<5880, 256>>>(i32[10*300*500]=noise, i32[10*300*500], 500, 300, 1500000)
