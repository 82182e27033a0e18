// Stencils: grids of two and three dimensions, from registers, from shared memory and straight from the caches.
extern "C" __global__ void heat2d(const float* __restrict__ u, float* __restrict__ v, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  size_t i = (size_t)y * n + x;
  v[i] = u[i] + 0.1f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - 4 * u[i]);
}
// sectorwise: launch heat2d<<<(128, 512), (32, 8)>>>(f32[4096*4096]=noise, f32[4096*4096], n=4096)

extern "C" __global__ void heat2d_shared(const float* __restrict__ u, float* __restrict__ v, int n) {
  __shared__ float tile[18][34];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 16, t = threadIdx.y * 32 + threadIdx.x;
  for (int i = t; i < 18 * 34; i += 512) {
    int y = min(max(y0 + i / 34 - 1, 0), n - 1), x = min(max(x0 + i % 34 - 1, 0), n - 1);
    tile[i / 34][i % 34] = u[(size_t)y * n + x];
  }
  __syncthreads();
  int x = threadIdx.x + 1, y = threadIdx.y + 1;
  v[(size_t)(y0 + threadIdx.y) * n + x0 + threadIdx.x] = tile[y][x] + 0.1f * (tile[y][x - 1] + tile[y][x + 1] + tile[y - 1][x] + tile[y + 1][x] - 4 * tile[y][x]);
}
// sectorwise: launch heat2d_shared<<<(128, 256), (32, 16)>>>(f32[4096*4096]=noise, f32[4096*4096], n=4096)

extern "C" __global__ void heat3d(const float* __restrict__ u, float* __restrict__ v, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
  size_t i = ((size_t)z * n + y) * n + x, plane = (size_t)n * n;
  v[i] = 0.4f * u[i] + 0.1f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + u[i - plane] + u[i + plane]);
}
// sectorwise: launch heat3d<<<(10, 40, 320), (32, 8)>>>(f32[320*320*320]=noise, f32[320*320*320], n=320)

extern "C" __global__ void heat3d_marching(const float* __restrict__ u, float* __restrict__ v, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  size_t i = (size_t)y * n + x, plane = (size_t)n * n;
  float below = u[i], here = u[i + plane];
  for (int z = 1; z < n - 1; ++z) {
    i += plane;
    float above = u[i + plane];
    v[i] = 0.4f * here + 0.1f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + below + above);
    below = here;
    here = above;
  }
}
// sectorwise: launch heat3d_marching<<<(10, 40), (32, 8)>>>(f32[320*320*320]=noise, f32[320*320*320], n=320)

extern "C" __global__ void wave_fourth_order(const float* __restrict__ now, float* __restrict__ next, const float* __restrict__ speed, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < 2 || y < 2 || x >= n - 2 || y >= n - 2) return;
  size_t i = (size_t)y * n + x;
  float sum = -5 * now[i];
  sum += 1.3333f * (now[i - 1] + now[i + 1] + now[i - n] + now[i + n]) - 0.0833f * (now[i - 2] + now[i + 2] + now[i - 2 * n] + now[i + 2 * n]);
  next[i] = 2 * now[i] - next[i] + speed[i] * sum;
}
// sectorwise: launch wave_fourth_order<<<(16, 4096), 256>>>(f32[4096*4096]=noise, f32[4096*4096]=noise, f32[4096*4096]=noise, n=4096)

extern "C" __global__ void life(const unsigned char* __restrict__ cells, unsigned char* __restrict__ next, int n) {
  int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
  int left = (x + n - 1) % n, right = (x + 1) % n, up = (y + n - 1) % n, down = (y + 1) % n;
  int sum = cells[up * n + left] + cells[up * n + x] + cells[up * n + right] + cells[y * n + left] + cells[y * n + right] + cells[down * n + left] + cells[down * n + x] + cells[down * n + right];
  next[y * n + x] = sum == 3 || (sum == 2 && cells[y * n + x]);
}
// sectorwise: launch life<<<(64, 1024), (64, 4)>>>(u8[4096*4096]=zeros, u8[4096*4096], n=4096)
