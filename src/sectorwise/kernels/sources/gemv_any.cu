// y [batch, rows] = x [batch, depth] W^T for any strides and alignment, a warp a row: slow, and right.
#include "numbers.cuh"

struct Output {
  int64 batch_step, row_step;
};
struct e4m3 {
  unsigned char bits;
};
struct nibble {
  unsigned char bits;
};

__device__ float widen(e4m3 value) {
  unsigned int pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)value.bits));
  return unpack<f16>(pair).x;
}

// One weight, by strides in elements; of four-bit ones in the order of pack_int4, `row_step` bytes a row on average.
template <typename W> struct Read {
  static __device__ float at(const W* weights, int64 row, int64 depth, int64 row_step, int64 depth_step) {
    return widen(weights[row * row_step + depth * depth_step]);
  }
};
template <> struct Read<nibble> {
  static __device__ float at(const nibble* weights, int64 row, int64 depth, int64 row_step, int64) {
    int within = (int)(depth % 128), piece = within / 32, place = within % 32 / 8, number = within % 8;
    int bit = 4 * (number / 2) + 16 * (number % 2);
    int64 byte = row / 16 * (16 * row_step) + depth / 128 * 1024 + row % 16 * 64 + 16 * place + 4 * piece + bit / 8;
    return (float)((weights[byte].bits >> bit % 8 & 15) - 8);
  }
};

// Scales are floats of rows, or with `group` above 0 T of [groups, rows]; there may be none.
template <typename W, typename T>
__global__ void __launch_bounds__(256)
gemv_any(const W* __restrict__ weights, const T* __restrict__ x, const void* __restrict__ scales, T* __restrict__ y,
         int64 rows, int64 depth, int64 weights_row, int64 weights_depth, int64 x_row, int64 x_depth, int64 scale_step,
         Output output, int batch, int group) {
  int64 row = (int64)blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  for (int input = 0; input < batch; ++input) {
    float sum = 0;
    for (int64 at = threadIdx.x % 32; at < depth; at += 32) {
      float weight = Read<W>::at(weights, row, at, weights_row, weights_depth);
      if (group > 0) weight *= widen(static_cast<const T*>(scales)[at / group * scale_step + row]);
      sum += weight * widen(x[input * x_row + at * x_depth]);
    }
    for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
    if (threadIdx.x % 32 != 0) continue;
    if (group == 0 && scales != nullptr) sum *= static_cast<const float*>(scales)[row * scale_step];
    y[input * output.batch_step + row * output.row_step] = round_to<T>(sum);
  }
}

// Weights of -8 to 7, a byte each and `from_row`, `from_depth` apart, as [ceil(rows / 16), groups of 128, 16, 64] bytes, a
// word a thread. Of the 16 words of a row in a group number 4 place + piece has elements 32 piece + 8 place and seven more,
// each as weight + 8: element e from bit 4 (e / 2) + 16 (e % 2) on. What is below or above is clipped; beyond the rows and
// the depth are zeros.
extern "C" __global__ void __launch_bounds__(256)
pack_int4(const signed char* __restrict__ from, unsigned int* __restrict__ to, int64 rows, int64 depth, int64 from_row,
          int64 from_depth, int64 groups) {
  int64 number = (int64)blockIdx.x * 256 + threadIdx.x, tile = number / 256 / groups, group = number / 256 % groups;
  if (16 * tile >= rows) return;
  int row = (int)(number % 256) / 16, place = (int)(number % 16) / 4, piece = (int)(number % 4);
  int64 first = 128 * group + 32 * piece + 8 * place, at = 16 * tile + row;
  unsigned int packed = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    int value = at < rows && first + i < depth ? from[at * from_row + (first + i) * from_depth] : 0;
    packed |= (unsigned int)(min(max(value, -8), 7) + 8) << (4 * (i / 2) + 16 * (i % 2));
  }
  to[number] = packed;
}
