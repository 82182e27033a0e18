// Eight ways to multiply a matrix W [rows, depth] of bfloat16 with a vector x, y = W x; the last for four vectors.
// A bfloat16 is the upper half of a float.

__device__ float low(unsigned int pair) { return __uint_as_float(pair << 16); }
__device__ float high(unsigned int pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ float widen(unsigned short value) { return __uint_as_float((unsigned int)value << 16); }
__device__ float add_lanes(float sum) {
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  return sum;
}
// Eight products: 16 bytes of W and of x.
__device__ float dot(uint4 w, uint4 x) {
  return low(w.x) * low(x.x) + high(w.x) * high(x.x) + low(w.y) * low(x.y) + high(w.y) * high(x.y) +
         low(w.z) * low(x.z) + high(w.z) * high(x.z) + low(w.w) * low(x.w) + high(w.w) * high(x.w);
}

// sectorwise: launch thread_a_row<<<32, 128>>>(u16[4096*4096]=noise, u16[4096]=noise, f32[4096], depth=4096)
// Rung 1. A thread a row: the 32 lanes of a request are in 32 rows, 32 sectors for 64 bytes.
extern "C" __global__ void thread_a_row(const unsigned short* w, const unsigned short* x, float* y, int depth) {
  int row = blockIdx.x * 128 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < depth; ++k) sum += widen(w[row * depth + k]) * widen(x[k]);
  y[row] = sum;
}

// sectorwise: launch thread_a_column<<<32, 128>>>(u16[4096*4096]=noise, u16[4096]=noise, f32[4096], rows=4096, depth=4096)
// Rung 2. W stored the other way round, so lanes lie side by side: no byte is wasted, but 4,096 threads have 2 bytes in
// flight each, where an SM needs 24 KiB.
extern "C" __global__ void thread_a_column(const unsigned short* w, const unsigned short* x, float* y, int rows,
                                           int depth) {
  int row = blockIdx.x * 128 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < depth; ++k) sum += widen(w[k * rows + row]) * widen(x[k]);
  y[row] = sum;
}

// sectorwise: launch warp_a_row<<<512, 256>>>(u16[4096*4096]=noise, u16[4096]=noise, f32[4096], depth=4096)
// Rung 3. A warp a row: 32 times the threads, each request 64 bytes side by side.
extern "C" __global__ void warp_a_row(const unsigned short* w, const unsigned short* x, float* y, int depth) {
  int row = blockIdx.x * 8 + threadIdx.x / 32;
  float sum = 0;
  for (int k = threadIdx.x % 32; k < depth; k += 32) sum += widen(w[row * depth + k]) * widen(x[k]);
  sum = add_lanes(sum);
  if (threadIdx.x % 32 == 0) y[row] = sum;
}

// sectorwise: launch sixteen_bytes<<<512, 256>>>(u16[4096*4096]=noise, u16[4096]=noise, f32[4096], depth=4096)
// Rung 4. 16 bytes a lane: an eighth of the requests for the same sectors, eight times the bytes in flight.
extern "C" __global__ void sixteen_bytes(const unsigned short* w, const unsigned short* x, float* y, int depth) {
  int row = blockIdx.x * 8 + threadIdx.x / 32;
  const uint4 *from = (const uint4*)(w + row * depth), *input = (const uint4*)x;
  float sum = 0;
#pragma unroll 1
  for (int k = threadIdx.x % 32; k < depth / 8; k += 32) sum += dot(from[k], input[k]);
  sum = add_lanes(sum);
  if (threadIdx.x % 32 == 0) y[row] = sum;
}

// sectorwise: launch two_rows<<<256, 256>>>(u16[4096*4096]=noise, u16[4096]=noise, f32[4096], depth=4096)
// Rung 5. Two rows a warp and two loads of each before the first is used: x is read half as often, and four loads of W
// are in flight where there was one, in half as many warps.
extern "C" __global__ void two_rows(const unsigned short* w, const unsigned short* x, float* y, int depth) {
  int row = blockIdx.x * 16 + threadIdx.x / 32 * 2;
  const uint4 *a = (const uint4*)(w + row * depth), *b = (const uint4*)(w + (row + 1) * depth), *input = (const uint4*)x;
  float sum_a = 0, sum_b = 0;
#pragma unroll 1
  for (int k = threadIdx.x % 32; k < depth / 8; k += 64) {
    uint4 a0 = a[k], a1 = a[k + 32], b0 = b[k], b1 = b[k + 32];
    uint4 x0 = input[k], x1 = input[k + 32];
    sum_a += dot(a0, x0) + dot(a1, x1);
    sum_b += dot(b0, x0) + dot(b1, x1);
  }
  sum_a = add_lanes(sum_a), sum_b = add_lanes(sum_b);
  if (threadIdx.x % 32 == 0) y[row] = sum_a, y[row + 1] = sum_b;
}

// sectorwise: launch split<<<4096, 128>>>(u16[4096*4096]=noise, u16[4096]=noise, f32[4096], depth=4096)
// Rung 6. Four warps share a row, so that a row of 8 KiB is in flight at once, and 1,024 rows would fill the GPU, too.
extern "C" __global__ void split(const unsigned short* w, const unsigned short* x, float* y, int depth) {
  __shared__ float partial[4];
  const uint4 *from = (const uint4*)(w + blockIdx.x * depth), *input = (const uint4*)x;
  float sum = 0;
#pragma unroll 4
  for (int k = threadIdx.x; k < depth / 8; k += 128) sum += dot(from[k], input[k]);
  sum = add_lanes(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = partial[0] + partial[1] + partial[2] + partial[3];
}

// sectorwise: launch four_bits<<<4096, 128>>>(u32[4096*512]=noise, u16[4096]=noise, u16[4096*32]=noise, f32[4096],
//   depth=4096)
// Rung 7. Weights of 4 bits, eight a word, a scale for 128: a quarter of the bytes, so the work for each byte counts. The
// pieces of x that 16 bytes of weights want are 64 bytes: lanes step over them, and L1 has the rest. Another order of
// the weights, as sectorwise.kernels packs them, lets lanes read x side by side.
extern "C" __global__ void four_bits(const unsigned int* w, const unsigned short* x, const unsigned short* scales,
                                     float* y, int depth) {
  __shared__ float partial[4];
  const uint4 *from = (const uint4*)(w + blockIdx.x * (depth / 8)), *input = (const uint4*)x;
  float sum = 0;
#pragma unroll 1
  for (int k = threadIdx.x; k < depth / 32; k += 128) {
    uint4 held = from[k];
    unsigned int words[4] = {held.x, held.y, held.z, held.w};
    float part = 0;
    for (int i = 0; i < 4; ++i) {
      uint4 given = input[k * 4 + i];
      unsigned int pairs[4] = {given.x, given.y, given.z, given.w};
      for (int j = 0; j < 4; ++j) {
        part += (float)((int)(words[i] >> 8 * j & 15) - 8) * low(pairs[j]);
        part += (float)((int)(words[i] >> 8 * j + 4 & 15) - 8) * high(pairs[j]);
      }
    }
    sum += part * widen(scales[blockIdx.x * (depth / 128) + k / 4]);
  }
  sum = add_lanes(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = partial[0] + partial[1] + partial[2] + partial[3];
}

// sectorwise: launch batch<<<4096, 128>>>(u16[4096*4096]=noise, u16[4*4096]=noise, f32[4*4096], depth=4096)
// Rung 8. Four vectors at once: W is read once for all of them, so four products cost hardly more than one.
extern "C" __global__ void batch(const unsigned short* w, const unsigned short* x, float* y, int depth) {
  __shared__ float partial[4][4];
  const uint4 *from = (const uint4*)(w + blockIdx.x * depth), *input = (const uint4*)x;
  float sums[4] = {};
#pragma unroll 2
  for (int k = threadIdx.x; k < depth / 8; k += 128) {
    uint4 held = from[k];
    for (int b = 0; b < 4; ++b) sums[b] += dot(held, input[b * (depth / 8) + k]);
  }
  for (int b = 0; b < 4; ++b) {
    float sum = add_lanes(sums[b]);
    if (threadIdx.x % 32 == 0) partial[b][threadIdx.x / 32] = sum;
  }
  __syncthreads();
  int b = threadIdx.x;
  if (b < 4) y[b * gridDim.x + blockIdx.x] = partial[b][0] + partial[b][1] + partial[b][2] + partial[b][3];
}
