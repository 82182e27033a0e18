// Finance and Monte Carlo: formulas over arrays, paths, trees and tables.
extern "C" __global__ void black_scholes(const float* __restrict__ price, const float* __restrict__ strike, const float* __restrict__ years, float* __restrict__ call, float* __restrict__ put, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = price[i] + 1, k = strike[i] + 1, t = years[i] + 0.1f, root = 0.3f * sqrtf(t);
  float d1 = (__logf(s / k) + (0.02f + 0.045f) * t) / root, d2 = d1 - root, discount = __expf(-0.02f * t);
  float c = s * normcdff(d1) - k * discount * normcdff(d2);
  call[i] = c;
  put[i] = c + k * discount - s;
}
// sectorwise: launch black_scholes<<<32768, 256>>>(f32[1<<23]=noise, f32[1<<23]=noise, f32[1<<23]=noise, f32[1<<23], f32[1<<23], n=8388608)

extern "C" __global__ void monte_carlo(float* __restrict__ out, int steps) {
  unsigned seed = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 1;
  float s = 1, sum = 0;
  for (int i = 0; i < steps; ++i) {
    seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5;
    float u = (seed >> 8) * (1.0f / 16777216) - 0.5f;
    s *= __expf(0.0001f + 0.02f * u);
    sum += s;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum / steps;
}
// sectorwise: launch monte_carlo<<<2112, 256>>>(f32[540672], steps=256)

extern "C" __global__ void binomial_tree(const float* __restrict__ strike, float* __restrict__ value, int steps) {
  __shared__ float v[2][512];
  int t = threadIdx.x, from = 0;
  v[0][t] = fmaxf(__expf(0.02f * (2 * t - steps)) - strike[blockIdx.x], 0);
  for (int i = steps; i > 0; --i) {
    __syncthreads();
    v[1 - from][t] = t < i ? 0.4999f * (v[from][t] + v[from][t + 1]) : 0;
    from = 1 - from;
  }
  __syncthreads();
  if (!t) value[blockIdx.x] = v[from][0];
}
// sectorwise: launch binomial_tree<<<2048, 512>>>(f32[2048]=noise, f32[2048], steps=255)

extern "C" __global__ void interpolate_curve(const float* __restrict__ x, const float2* __restrict__ curve, float* __restrict__ y, int points) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  int low = 0, high = points - 1;
  while (high - low > 1) { int middle = (low + high) / 2; if (curve[middle].x <= v) low = middle; else high = middle; }
  y[i] = curve[low].y + (v - curve[low].x) * (curve[high].y - curve[low].y);
}
// sectorwise: launch interpolate_curve<<<16384, 256>>>(f32[1<<22]=uniform(1), f32[2048]=arange, f32[1<<22], points=1024)

extern "C" __global__ void moving_average(const float* __restrict__ x, float* __restrict__ y, int days) {
  int series = blockIdx.x * blockDim.x + threadIdx.x, count = gridDim.x * blockDim.x;
  float sum = 0;
  for (int d = 0; d < days; ++d) {
    sum += x[(size_t)d * count + series];
    if (d >= 20) sum -= x[(size_t)(d - 20) * count + series];
    y[(size_t)d * count + series] = sum / 20;
  }
}
// sectorwise: launch moving_average<<<256, 256>>>(f32[256*65536]=noise, f32[256*65536], days=256)

extern "C" __global__ void covariance(const float* __restrict__ x, float* __restrict__ out, int days, int series) {
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int d = 0; d < days; ++d) sum += x[d * series + i] * x[d * series + j];
  out[i * series + j] = sum / days;
}
// sectorwise: launch covariance<<<(64, 64), (16, 16)>>>(f32[512*1024]=noise, f32[1024*1024], days=512, series=1024)

extern "C" __global__ void portfolio_gather(const float* __restrict__ price, const int* __restrict__ holding, const float* __restrict__ amount, float* __restrict__ worth, int assets, int held) {
  int lane = threadIdx.x % 32, portfolio = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float sum = 0;
  for (int h = lane; h < held; h += 32) {
    size_t i = (size_t)portfolio * held + h;
    sum += amount[i] * price[holding[i] % assets];
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (!lane) worth[portfolio] = sum;
}
// sectorwise: launch portfolio_gather<<<8192, 256>>>(f32[16384]=noise, i32[1<<24]=uniform(2), f32[1<<24]=noise, f32[65536], assets=16384, held=256)
