// y [batch, rows] = x [batch, depth] W^T on tensor cores, W [rows, depth] of the type of x, 8-bit or 4-bit.
//
// The product is W (16 rows) times x^T (8 columns): a lane of group g = lane / 4 and place t = lane % 4 gives rows g and
// g + 8 of W and input g. The order of the depth is free as long as x and W agree. So a lane loads 16 bytes in a row of W,
// and takes them as the pairs that mma wants of it; the 16-byte pieces of x that belong to them are loaded from global
// memory as they lie, for as many chunks as weights are in flight.
#include "numbers.cuh"

struct Output {
  int64 batch_step, row_step;
};

// How 16 bytes of weights become pairs of T: COUNT elements, in COUNT / 8 pieces of 4 pairs. `begin` says where in the
// 4 COUNT elements of a chunk the piece begins for a lane's place.
template <typename T> struct Plain {
  static constexpr int COUNT = 8;
  static constexpr bool GROUPED = false;
  static __device__ int begin(int place, int) { return COUNT * place; }
  static __device__ void decode(const uint4& held, int, unsigned int (&pairs)[4]) {
    for (int i = 0; i < 4; ++i) pairs[i] = pick(held, i);
  }
};

template <typename T> __device__ unsigned int pair_of_bytes(unsigned int word, int number);

// 0x6400 + b is 1024 + b as f16: bytes of either sign are shifted by 128 first, and 1152 is taken away after.
template <> __device__ unsigned int pair_of_bytes<f16>(unsigned int word, int number) {
  unsigned int pair = __byte_perm(word ^ 0x80808080u, 0x64646464u, number ? 0x4342 : 0x4140);
  asm("sub.f16x2 %0, %0, %1;" : "+r"(pair) : "r"(0x64806480u));
  return pair;
}
template <> __device__ unsigned int pair_of_bytes<bf16>(unsigned int word, int number) {
  unsigned int shifted = word ^ 0x80808080u;
  float low = __uint_as_float(__byte_perm(shifted, 0x4b000000u, number ? 0x7442 : 0x7440)) - 8388736.0f;
  float high = __uint_as_float(__byte_perm(shifted, 0x4b000000u, number ? 0x7443 : 0x7441)) - 8388736.0f;
  return pair_bf16(low, high);
}

template <typename T> struct Int8 {
  static constexpr int COUNT = 16;
  static constexpr bool GROUPED = false;
  static __device__ int begin(int place, int piece) { return COUNT * place + 8 * piece; }
  static __device__ void decode(const uint4& held, int piece, unsigned int (&pairs)[4]) {
    for (int i = 0; i < 4; ++i) pairs[i] = pair_of_bytes<T>(pick(held, 2 * piece + i / 2), i % 2);
  }
};

// e4m3 as f16 by the instruction of compute capability 8.9, exact; bf16 takes it on, exact as well.
template <typename T> __device__ unsigned int pair_of_e4m3(unsigned short both) {
  unsigned int pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(both));
  if constexpr (!IS_F16<T>) {
    float2 values = unpack<f16>(pair);
    return pair_bf16(values.x, values.y);
  }
  return pair;
}

template <typename T> struct E4m3 {
  static constexpr int COUNT = 16;
  static constexpr bool GROUPED = false;
  static __device__ int begin(int place, int piece) { return COUNT * place + 8 * piece; }
  static __device__ void decode(const uint4& held, int piece, unsigned int (&pairs)[4]) {
    for (int i = 0; i < 4; ++i)
      pairs[i] = pair_of_e4m3<T>((unsigned short)(pick(held, 2 * piece + i / 2) >> 16 * (i % 2)));
  }
};

// Four bits hold weight + 8, in the order of pack_int4: a chunk is a group of 128 with one scale, word `piece` of a lane
// has elements 32 piece + 8 place and seven more, those with even numbers in the lower half of the word.
template <typename T> struct Int4 {
  static constexpr int COUNT = 32;
  static constexpr bool GROUPED = true;
  static __device__ int begin(int place, int piece) { return 32 * piece + 8 * place; }
  static __device__ void decode(const uint4& held, int piece, unsigned int (&pairs)[4]) {
    unsigned int word = pick(held, piece);
    for (int i = 0; i < 4; ++i) {
      unsigned int pair = word >> 4 * i & 0x000f000fu;
      if constexpr (IS_F16<T>) {
        pair |= 0x64006400u;  // 1024 + b
        asm("sub.f16x2 %0, %0, %1;" : "+r"(pair) : "r"(0x64086408u));
      } else {
        pair |= 0x43004300u;  // 128 + b; times 1, less 136
        asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(pair) : "r"(0x3f803f80u), "r"(0xc308c308u));
      }
      pairs[i] = pair;
    }
  }
};

// A warp has 16 TILES rows and, of all chunks of the depth, LOADS side by side in turns with the block's other warps: it
// has 2 LOADS x TILES loads in flight a lane. The warps add up in shared memory. BATCH is 8 or 16; blockIdx.y counts such
// groups of inputs; inputs beyond the last are the last again. Scales are of rows, floats [rows], or of groups, T [groups,
// rows]; plain weights have none. `ready` is as in gemv_rows.
//
// What is allowed here: a lane of 8-bit weights reads half a sector of x, and the other half with its next load, out of
// L1 (SW101, SW105). A row of y of a block is 32 bytes for each input (SW106).
template <template <typename> class WEIGHTS, typename T, int BATCH, int TILES, int LOADS, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
gemv_tensor(
    const uint4* weights, const T* x, const void* scales, T* y, int64 rows, int depth, int64 weights_row, int64 x_row,
    int64 scale_step, Output output, int batch, int ready) {
  typedef WEIGHTS<T> W;
  constexpr int SPAN = 4 * W::COUNT, PIECES = W::COUNT / 8, COLUMNS = BATCH / 8, PITCH = 20;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
  int64 first_row = (int64)blockIdx.x * (16 * TILES);
  int chunks = (depth - 1) / SPAN + 1, first = warp * LOADS;
  float sums[TILES][COLUMNS][4] = {};
  uint4 held[LOADS][TILES][2];
  T scale[LOADS][TILES][2];
  auto load = [&]() {
#pragma unroll
    for (int r = 0; r < 2 * TILES; ++r) {
      int64 row = min(first_row + 8 * r + group, rows - 1);
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        int chunk = first + l, at = 4 * chunk + place;
        held[l][r / 2][r % 2] = make_uint4(0, 0, 0, 0);
        if (W::GROUPED)
          scale[l][r / 2][r % 2] = static_cast<const T*>(scales)[min(chunk, chunks - 1) * scale_step + row];
        if (W::GROUPED ? chunk < chunks : at * W::COUNT < depth)
          held[l][r / 2][r % 2] = load_once(weights + row * weights_row + at);
      }
    }
  };
  let_next_begin();
  if (!ready) wait_for_previous();
  load();
  wait_for_previous();
  while (first < chunks) {
    uint4 given[LOADS][PIECES][COLUMNS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l)
#pragma unroll
      for (int piece = 0; piece < PIECES; ++piece)
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
          int input = min((int)blockIdx.y * BATCH + 8 * c + group, batch - 1);
          int at = min((first + l) * SPAN + W::begin(place, piece), depth - 8);
          given[l][piece][c] = *reinterpret_cast<const uint4*>(x + input * x_row + at);  // sectorwise: allow SW101, SW105
        }
    __syncwarp();
    if ((first + LOADS) * SPAN > depth)
#pragma unroll
      for (int l = 0; l < LOADS; ++l)
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece)
#pragma unroll
          for (int c = 0; c < COLUMNS; ++c)
            if ((first + l) * SPAN + W::begin(place, piece) >= depth) given[l][piece][c] = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int l = 0; l < LOADS; ++l)
#pragma unroll
      for (int r = 0; r < TILES; ++r) {
        float part[COLUMNS][4] = {};
        float(&into)[COLUMNS][4] = W::GROUPED ? part : sums[r];
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) {
          unsigned int low[4], high[4];
          W::decode(held[l][r][0], piece, low);
          W::decode(held[l][r][1], piece, high);
#pragma unroll
          for (int c = 0; c < COLUMNS; ++c) {
            const uint4& b = given[l][piece][c];
            multiply_add<T>(into[c], low[0], high[0], low[1], high[1], b.x, b.y);
            multiply_add<T>(into[c], low[2], high[2], low[3], high[3], b.z, b.w);
          }
        }
        if (W::GROUPED)
#pragma unroll
          for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[r][c][i] += part[c][i] * widen(scale[l][r][i / 2]);
      }
    first += WARPS * LOADS;
    if (first < chunks) load();
  }
  // Of C a lane has rows `group` and + 8, inputs 2 place and + 1. With this pitch 8 rows of inputs 0, 2, 4, 6, written at
  // once, meet all banks, and so do 16 rows of inputs n and n + 4, read at once.
  __shared__ float partial[WARPS][TILES * COLUMNS][8 * PITCH];
#pragma unroll
  for (int r = 0; r < TILES; ++r)
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        partial[warp][r * COLUMNS + c][(2 * place + i % 2) * PITCH + group + i / 2 * 8] = sums[r][c][i];
  __syncthreads();
  for (int number = threadIdx.x; number < 128 * TILES * COLUMNS; number += 32 * WARPS) {
    int row = number % 16, within = number / 32 % 4 + number / 16 % 2 * 4, tile = number / 128;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += partial[w][tile][within * PITCH + row];
    int64 at = first_row + tile / COLUMNS * 16 + row;
    int64 to = (int64)blockIdx.y * BATCH + tile % COLUMNS * 8 + within;
    if (at >= rows || to >= batch) continue;
    if (!W::GROUPED && scales != nullptr) sum *= static_cast<const float*>(scales)[at * scale_step];
    y[to * output.batch_step + at * output.row_step] = round_to<T>(sum);  // sectorwise: allow SW106
  }
}
