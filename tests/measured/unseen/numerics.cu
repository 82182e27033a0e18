// Transforms, factorisations and other numerical steps.
extern "C" __global__ void fft512(const float2* __restrict__ in, float2* __restrict__ out, const float2* __restrict__ root) {
  __shared__ float2 s[512];
  int t = threadIdx.x;
  const float2* mine = in + blockIdx.x * 512;
  s[__brev(t) >> 23] = mine[t];
  s[__brev(t + 256) >> 23] = mine[t + 256];
  for (int half = 1; half < 512; half *= 2) {
    __syncthreads();
    int k = t % half, a = 2 * half * (t / half) + k, b = a + half;
    float2 w = root[k * (256 / half)], x = s[a], y = s[b], z = make_float2(w.x * y.x - w.y * y.y, w.x * y.y + w.y * y.x);
    s[a] = make_float2(x.x + z.x, x.y + z.y);
    s[b] = make_float2(x.x - z.x, x.y - z.y);
  }
  __syncthreads();
  out[blockIdx.x * 512 + t] = s[t];
  out[blockIdx.x * 512 + t + 256] = s[t + 256];
}
// sectorwise: launch fft512<<<200, 256>>>(f32[2*512*200]=noise, f32[2*512*200], f32[512]=noise)

extern "C" __global__ void lu_small(float* __restrict__ m, int batch) {
  __shared__ float a[4][16][17];
  int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z, b = blockIdx.x * 4 + z;
  bool real = b < batch;
  if (real) a[z][y][x] = m[(b * 16 + y) * 16 + x] + (x == y ? 16 : 0);
  for (int k = 0; k < 15; ++k) {
    __syncthreads();
    if (real && y > k && x == k) a[z][y][k] *= __frcp_rn(a[z][k][k]);
    __syncthreads();
    if (real && y > k && x > k) a[z][y][x] -= a[z][y][k] * a[z][k][x];
  }
  __syncthreads();
  if (real) m[(b * 16 + y) * 16 + x] = a[z][y][x];
}
// sectorwise: launch lu_small<<<26, (16, 16, 4)>>>(f32[103*256]=noise, 103)

extern "C" __global__ void cholesky_column(double* m, int n, int k) {
  extern __shared__ double column[];
  int t = threadIdx.x;
  for (int i = k + t; i < n; i += blockDim.x) column[i - k] = m[(size_t)i * n + k];
  __syncthreads();
  int j = k + 1 + blockIdx.x;
  for (int i = j + t; i < n; i += blockDim.x) m[(size_t)i * n + j] -= column[i - k] * column[j - k];
}
// sectorwise: launch cholesky_column<<<299, 96, 2560>>>(f64[320*320]=noise, 320, 20)

extern "C" __global__ void floyd_warshall(int* distance, int n, int k) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) distance[y * n + x] = min(distance[y * n + x], distance[y * n + k] + distance[k * n + x]);
}
// sectorwise: launch floyd_warshall<<<(16, 63), (32, 8)>>>(i32[500*500]=uniform(1, 1000), 500, 77)

extern "C" __global__ void nearest_centre(const float* __restrict__ points, const float* __restrict__ centres, int* __restrict__ label, float* sums, int* sizes, int n, int k) {
  extern __shared__ float c[];
  for (int i = threadIdx.x; i < 3 * k; i += blockDim.x) c[i] = centres[i];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = points[3 * i], y = points[3 * i + 1], z = points[3 * i + 2], best = 1e30f;
  int mine = 0;
  for (int j = 0; j < k; ++j) {
    float dx = x - c[3 * j], dy = y - c[3 * j + 1], dz = z - c[3 * j + 2], d = dx * dx + dy * dy + dz * dz;
    if (d < best) { best = d; mine = j; }
  }
  label[i] = mine;
  atomicAdd(&sums[3 * mine], x); atomicAdd(&sums[3 * mine + 1], y); atomicAdd(&sums[3 * mine + 2], z);
  atomicAdd(&sizes[mine], 1);
}
// sectorwise: launch nearest_centre<<<200, 250, 480>>>(f32[150000]=uniform(2), f32[120]=uniform(3), i32[50000], f32[120], i32[40], 50000, 40)

extern "C" __global__ void tridiagonal(const double* __restrict__ a, const double* __restrict__ b, double* __restrict__ x, int n, int systems) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= systems) return;
  double scratch[32], last = 0, before = 0;
  for (int i = 0; i < n; ++i) {
    double w = a[i * systems + s] - 0.25 * before;
    last = (b[i * systems + s] - last) * w;
    scratch[i & 31] = before = w;
    x[i * systems + s] = last;
  }
  for (int i = n - 2; i >= 0; --i) x[i * systems + s] -= scratch[i & 31] * x[(i + 1) * systems + s];
}
// sectorwise: launch tridiagonal<<<20, 100>>>(f64[30*1999]=noise, f64[30*1999]=noise, f64[30*1999], 30, 1999)

extern "C" __global__ void jacobi_red_black(double* u, const double* __restrict__ f, int n, int colour) {
  int y = blockIdx.y * blockDim.y + threadIdx.y + 1, x = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + 1 + (y + colour & 1);
  if (x >= n - 1 || y >= n - 1) return;
  u[y * n + x] = 0.25 * (u[y * n + x - 1] + u[y * n + x + 1] + u[(y - 1) * n + x] + u[(y + 1) * n + x] - f[y * n + x]);
}
// sectorwise: launch jacobi_red_black<<<(12, 94), (32, 8)>>>(f64[750*750]=noise, f64[750*750]=noise, 750, 0)

extern "C" __global__ void lattice_stream(const float* __restrict__ in, float* __restrict__ out, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, cells = nx * ny;
  if (x >= nx) return;
  const int dx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, dy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  float f[9], rho = 0;
#pragma unroll
  for (int k = 0; k < 9; ++k) { f[k] = in[k * cells + (y - dy[k] + ny) % ny * nx + (x - dx[k] + nx) % nx]; rho += f[k]; }
#pragma unroll
  for (int k = 0; k < 9; ++k) out[k * cells + y * nx + x] = f[k] + 0.6f * (rho * 0.111f - f[k]);
}
// sectorwise: launch lattice_stream<<<(6, 400), 100>>>(f32[9*600*400]=noise, f32[9*600*400], 600, 400)

extern "C" __global__ void particles_to_grid(const float2* __restrict__ at, float* grid, int n, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 p = at[i];
  float fx = p.x * (size - 2), fy = p.y * (size - 2);
  int x = (int)fx, y = (int)fy;
  float u = fx - x, v = fy - y;
  atomicAdd(&grid[y * size + x], (1 - u) * (1 - v));
  atomicAdd(&grid[y * size + x + 1], u * (1 - v));
  atomicAdd(&grid[(y + 1) * size + x], (1 - u) * v);
  atomicAdd(&grid[(y + 1) * size + x + 1], u * v);
}
// sectorwise: launch particles_to_grid<<<782, 128>>>(f32[200000]=uniform(4), f32[256*256], 100000, 256)

extern "C" __global__ void complex_outer(const double2* __restrict__ a, const double2* __restrict__ b, double2* __restrict__ c, int m, int n) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < m) { double2 u = a[y], v = b[x]; c[(size_t)y * n + x] = make_double2(u.x * v.x - u.y * v.y, u.x * v.y + u.y * v.x); }
}
// sectorwise: launch complex_outer<<<(32, 32), (16, 16)>>>(f64[1000]=noise, f64[1000]=noise, f64[500000], 500, 500)

extern "C" __global__ void upper_triangle(const float* __restrict__ m, float* __restrict__ packed, int n) {
  int row = blockIdx.x;
  float* to = packed + (size_t)row * n - (size_t)row * (row - 1) / 2 - row;
  for (int j = row + threadIdx.x; j < n; j += blockDim.x) to[j] = m[(size_t)row * n + j];
}
// sectorwise: launch upper_triangle<<<700, 64>>>(f32[490000]=noise, f32[245350], 700)

extern "C" __global__ void interpolate_table(const float* __restrict__ in, const float2* __restrict__ table, float* __restrict__ out, int n, int entries) {
  extern __shared__ float2 held[];
  for (int k = threadIdx.x; k < entries; k += blockDim.x) held[k] = table[k];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float at = in[i] * (entries - 1);
    int k = (int)at;
    float2 e = held[k];
    out[i] = e.x + (at - k) * e.y;
  }
}
// sectorwise: launch interpolate_table<<<66, 512, 8192>>>(f32[200000]=uniform(5), f32[2048]=noise, f32[200000], 200000, 1024)
