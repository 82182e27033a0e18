// y [batch, rows] = x [batch, depth] W^T on tensor cores, W [rows, depth] of the type of x, 8-bit or 4-bit.
//
// The product is x (16 rows) times W^T (8 columns): a lane of group g = lane / 4 and place t = lane % 4 gives W's row g.
// The order of the depth is free as long as x and W agree. So a lane loads 16 bytes in a row of W, and takes them as the
// pairs that mma wants of it; the 16-byte pieces of x that belong to them are loaded from global memory as they lie.
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

__device__ uint4 load_input(const void* from, bool inside) {
  return inside ? __ldg(static_cast<const uint4*>(from)) : make_uint4(0, 0, 0, 0);  // sectorwise: allow SW101, SW105, SW107
}

// A warp has 8 GROUPS rows and, of all chunks of the depth, every WARPS-th, with LOADS x GROUPS loads in flight a lane;
// the warps of a block add up in shared memory. BATCH is 8 or 16; blockIdx.y counts such groups of inputs. Scales are of
// rows, floats [rows], or of groups, T [groups, rows]; plain weights have none.
//
// What is allowed here: a lane of 8-bit weights reads half a sector of x, and the other half with its next load, out of
// L1 (SW101, SW105); of one input only the lanes of group 0 have any (SW107). A row of y of a block is 16 bytes for
// each input, one for each `depth` weights that were read (SW106). Every byte of W takes part in `batch` products,
// whatever the tile: the ridge is out of reach (SW502).
template <template <typename> class WEIGHTS, typename T, int BATCH, int GROUPS, int LOADS, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, WARPS < 32 ? 32 / WARPS : 1)
gemv_tensor(
    const uint4* __restrict__ weights, const T* __restrict__ x, const void* __restrict__ scales, T* __restrict__ y,
    int64 rows, int depth, int64 weights_row, int64 x_row, int64 scale_step, Output output, int batch) {
  typedef WEIGHTS<T> W;
  constexpr int SPAN = 4 * W::COUNT, HALVES = BATCH / 4, PITCH = 48, GROUP_PITCH = HALVES * PITCH + 8;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
  int64 first_row = (int64)blockIdx.x * (8 * GROUPS);
  int first_input = blockIdx.y * BATCH + group;
  const T* low = x + first_input * x_row;
  const T* high = low + 8 * x_row;
  bool has_low = first_input < batch, has_high = BATCH == 16 && first_input + 8 < batch;
  float sums[GROUPS][4] = {};
  int chunks = (depth - 1) / SPAN + 1;
  for (int first = warp; first < chunks; first += WARPS * LOADS) {
    uint4 held[LOADS][GROUPS];
    float scale[LOADS][GROUPS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l)
#pragma unroll
      for (int r = 0; r < GROUPS; ++r) {
        int chunk = first + l * WARPS, at = 4 * chunk + place;
        int64 row = min(first_row + 8 * r + group, rows - 1);
        held[l][r] = make_uint4(0, 0, 0, 0);
        scale[l][r] = 0;
        if (W::GROUPED ? chunk < chunks : at * W::COUNT < depth) held[l][r] = load_once(weights + row * weights_row + at);
        if (W::GROUPED && chunk < chunks) scale[l][r] = widen(static_cast<const T*>(scales)[chunk * scale_step + row]);
      }
#pragma unroll
    for (int l = 0; l < LOADS; ++l) {
      int chunk = first + l * WARPS;
      if (chunk >= chunks) break;
      float part[GROUPS][4] = {};
#pragma unroll
      for (int piece = 0; piece < W::COUNT / 8; ++piece) {
        int at = chunk * SPAN + W::begin(place, piece);
        uint4 a = load_input(low + at, has_low && at < depth), c = load_input(high + at, has_high && at < depth);
#pragma unroll
        for (int r = 0; r < GROUPS; ++r) {
          unsigned int pairs[4];
          W::decode(held[l][r], piece, pairs);
          float(&into)[4] = W::GROUPED ? part[r] : sums[r];
          multiply_add<T>(into, a.x, c.x, a.y, c.y, pairs[0], pairs[1]);
          multiply_add<T>(into, a.z, c.z, a.w, c.w, pairs[2], pairs[3]);
        }
      }
      if (W::GROUPED)
#pragma unroll
        for (int r = 0; r < GROUPS; ++r)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            sums[r][i] += part[r][i] * __shfl_sync(0xffffffffu, scale[l][r], 8 * place + 4 * (i % 2));
    }
  }
  // Of C a lane has inputs `group` and + 8, rows 2 place and + 1. The pitches let 32 neighbours in y meet all banks.
  __shared__ float partial[WARPS][GROUPS][GROUP_PITCH];
#pragma unroll
  for (int r = 0; r < GROUPS; ++r)
#pragma unroll
    for (int i = 0; i < HALVES; ++i) partial[warp][r][i * PITCH + lane] = sums[r][i];
  __syncthreads();
  for (int number = threadIdx.x; number < 8 * GROUPS * BATCH; number += 32 * WARPS) {
    int row = number % (8 * GROUPS), input = number / (8 * GROUPS);
    int half = input / 8 * 2 + row % 2, from = input % 8 * 4 + row % 8 / 2;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += partial[w][row / 8][half * PITCH + from];
    int64 at = first_row + row;
    int64 to = (int64)blockIdx.y * BATCH + input;
    if (at >= rows || to >= batch) continue;
    if (!W::GROUPED && scales != nullptr) sum *= static_cast<const float*>(scales)[at * scale_step];
    y[to * output.batch_step + at * output.row_step] = round_to<T>(sum);  // sectorwise: allow SW106
  }
}
