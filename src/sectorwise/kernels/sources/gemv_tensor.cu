// y [batch, rows] = x [batch, depth] W^T on tensor cores, W [rows, depth] of the type of x, 8-bit or 4-bit.
//
// The product is W (16 rows) times x^T (8 columns): a lane of group g = lane / 4 and place t = lane % 4 gives rows g and
// g + 8 of W and input g. The order of the depth is free as long as x and W agree. So a lane takes 16 bytes of a row of W
// for the pairs that mma wants of it, and the 16-byte pieces of x that belong to them as they lie in global memory. W
// itself passes shared memory, so that its rows are read in contiguous pieces of 256 bytes.
#include "numbers.cuh"

struct Output {
  int64 batch_step, row_step;
};

// How 16 bytes of weights become pairs of T: COUNT elements, in COUNT / 8 pieces of 4 pairs. `begin` says where in the
// 4 COUNT elements of a chunk the piece begins for a lane's place.
template <typename T> struct Plain {
  static constexpr int COUNT = 8;
  static constexpr bool GROUPED = false;
  static constexpr unsigned int LESS = 0;
  static __device__ int begin(int place, int) { return COUNT * place; }
  static __device__ void decode(const uint4& held, int, unsigned int (&pairs)[4]) {
    for (int i = 0; i < 4; ++i) pairs[i] = pick(held, i);
  }
};

// (word & mask) | bits in one instruction, which the compiler makes two of where both are constants.
__device__ unsigned int keep_and_set(unsigned int word, unsigned int mask, unsigned int bits) {
  unsigned int made;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(made) : "r"(word), "r"(mask), "r"(bits));
  return made;
}

template <typename T> __device__ unsigned int pair_of_bytes(unsigned int word, int number);

// 0x6400 + b is 1024 + b as f16: bytes of either sign are shifted by 128 first, and 1152 is taken away after.
template <> __device__ unsigned int pair_of_bytes<f16>(unsigned int word, int number) {
  unsigned int pair = __byte_perm(word ^ 0x80808080u, 0x64646464u, number ? 0x4342 : 0x4140);
  asm("sub.f16x2 %0, %0, %1;" : "+r"(pair) : "r"(0x64806480u));
  return pair;
}
// Bits 0 to 6 beside 128 are 128 + b, exact; bit 7 beside -128 makes -256 of it. Their sum is the number.
template <> __device__ unsigned int pair_of_bytes<bf16>(unsigned int word, int number) {
  unsigned int both = __byte_perm(word, 0, number ? 0x4342 : 0x4140);
  unsigned int low = keep_and_set(both, 0x007f007fu, 0x43004300u);
  unsigned int high = keep_and_set(both, 0x00800080u, 0xc300c300u);
  asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(low) : "r"(0x3f803f80u), "r"(high));
  return low;
}

template <typename T> struct Int8 {
  static constexpr int COUNT = 16;
  static constexpr bool GROUPED = false;
  static constexpr unsigned int LESS = 0;
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
  static constexpr unsigned int LESS = 0;
  static __device__ int begin(int place, int piece) { return COUNT * place + 8 * piece; }
  static __device__ void decode(const uint4& held, int piece, unsigned int (&pairs)[4]) {
    for (int i = 0; i < 4; ++i)
      pairs[i] = pair_of_e4m3<T>((unsigned short)(pick(held, 2 * piece + i / 2) >> 16 * (i % 2)));
  }
};

// Four bits hold weight + 8, in the order of pack_int4: a chunk is a group of 128 with one scale, word `piece` of a lane
// has elements 32 piece + 8 place and seven more, those with even numbers in the lower half of the word. As bf16 they stay
// 136 + weight, which takes two instructions a pair, not three: the tensor cores take 136 x away again, piece by piece.
template <typename T> struct Int4 {
  static constexpr int COUNT = 32;
  static constexpr bool GROUPED = true;
  static constexpr unsigned int LESS = IS_F16<T> ? 0 : 0xc308c308u;
  static __device__ int begin(int place, int piece) { return 32 * piece + 8 * place; }
  static __device__ void decode(const uint4& held, int piece, unsigned int (&pairs)[4]) {
    unsigned int word = pick(held, piece);
    for (int i = 0; i < 4; ++i) {
      if constexpr (IS_F16<T>) {
        pairs[i] = keep_and_set(word >> 4 * i, 0x000f000fu, 0x64006400u);  // 1024 + b
        asm("sub.f16x2 %0, %0, %1;" : "+r"(pairs[i]) : "r"(0x64086408u));
      } else {
        pairs[i] = keep_and_set(word >> 4 * i, 0x000f000fu, 0x43004300u);  // 128 + b
      }
    }
  }
};

// 16 bytes into shared memory, zeros where there are none.
__device__ void copy_async(uint4* to, const uint4* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}

// What was copied since the last time belongs together.
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all but PENDING of the copies that were begun together are there, for the whole warp. What was loaded before it
// has been asked for before.
template <int PENDING> __device__ void wait_for_copies() {
  __syncwarp();
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
  __syncwarp();
}

// A block has 16 TILES rows. Of the slices of the depth, 256 bytes of W a row, a warp has every WARPS-th, and STAGES of
// them on their way. The warps add up in shared memory. BATCH is 1, 8 or 16; blockIdx.y counts such groups of inputs;
// inputs beyond the last are the last again. A single input passes shared memory beside the slices of W. Scales are of
// rows, floats [rows], or of groups, T [groups, rows]; plain weights have none. `ready` is as in gemv_rows.
//
// What is allowed here: a lane of 8-bit weights reads half a sector of x, and the other half with its next load, out of
// L1 (SW101, SW105). A row of y of a block is 32 bytes for each input (SW106). Few warps are resident, but what keeps DRAM
// busy is on its way without them, 64 KiB an SM (SW402). With few rows the last wave is not full; blocks of fewer rows
// would read more of x (SW403); below 2,112 rows some SMs have no block at all (SW401, SW404).
template <template <typename> class WEIGHTS, typename T, int BATCH, int TILES, int STAGES, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
gemv_tensor(  // sectorwise: allow SW401, SW402, SW403, SW404
    const uint4* weights, const T* x, const void* scales, T* y, int64 rows, int depth, unsigned int weights_row,
    int64 x_row, int64 scale_step, Output output, int batch, int ready) {
  typedef WEIGHTS<T> W;
  constexpr int SPAN = 4 * W::COUNT, PIECES = W::COUNT / 8, COLUMNS = (BATCH + 7) / 8, PITCH = 20;
  constexpr int INPUT = BATCH == 1 ? 2 * W::COUNT : 0;  // cells of 16 bytes of x beside a slice of W
  constexpr int STAGE = 256 * TILES + INPUT, SUMS = 128 * TILES * COLUMNS;
  constexpr int CHUNKS = PIECES * COLUMNS > 2 ? 1 : PIECES * COLUMNS > 1 ? 2 : 4;  // whose x is asked for at once
  extern __shared__ uint4 rings[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
  uint4* ring = rings + warp * STAGES * STAGE;
  int64 first_row = (int64)blockIdx.x * (16 * TILES);
  int last_row = (int)min(rows - first_row, (int64)(16 * TILES)) - 1;
  int chunks = (depth - 1) / SPAN + 1, slices = (chunks + 3) / 4, slice = warp;
  int vectors = W::GROUPED ? 4 * chunks : depth / W::COUNT;
  // None of these is negative, but the compiler does not know: a constant it would move to four registers again and again.
  unsigned int less[4] = {W::LESS | depth >> 31, W::LESS | batch >> 31, W::LESS | ready >> 31, W::LESS | chunks >> 31};
  float sums[TILES][COLUMNS][4] = {};
  unsigned int kept[STAGES][TILES][2];  // of a slice's 4 groups of 16 rows a lane keeps two scales
  // Packed weights lie in tiles of 16 rows, and of a tile group after group.
  const uint4* tile = weights + first_row * weights_row + (W::GROUPED ? lane % 16 / 4 * 64 + lane % 4 : lane % 16);
  auto fill = [&](int number, int stage) {
    bool inside = 16 * number + lane % 16 < vectors;
    uint4* to = ring + stage * STAGE + lane / 16 * 16;
#pragma unroll
    for (int i = 0; i < 8 * TILES; ++i) {
      unsigned int row = min(2 * i + lane / 16, last_row);
      const uint4* from = W::GROUPED ? tile + 256 * number + row / 16 * 16ull * weights_row + row % 16 * 4
                                     : tile + 16 * number + (unsigned long long)row * weights_row;
      copy_async(to + 32 * i + (lane % 16 ^ lane / 16 * 4), from, inside);
    }
    if (W::GROUPED)
#pragma unroll
      for (int r = 0; r < TILES; ++r)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          int chunk = min(4 * number + 2 * j + lane / 16, chunks - 1);
          int64 row = first_row + min(16 * r + lane % 16, last_row);
          kept[stage][r][j] = static_cast<const T*>(scales)[chunk * scale_step + row].bits;
        }
  };
  auto fill_input = [&](int number, int stage) {
#pragma unroll
    for (int cell = lane; cell < INPUT; cell += 32) {
      int at = number * (4 * SPAN) + 8 * cell;
      const T* from = x + (int64)blockIdx.y * x_row + at;
      copy_async(ring + stage * STAGE + 256 * TILES + cell, reinterpret_cast<const uint4*>(from), at < depth);
    }
  };
  let_next_begin();
  if (!ready) wait_for_previous();
#pragma unroll
  for (int s = 0; s < STAGES; ++s)
    if (slice + s * WARPS < slices) fill(slice + s * WARPS, s);
  wait_for_previous();
#pragma unroll
  for (int s = 0; s < STAGES; ++s) {
    if (slice + s * WARPS < slices) fill_input(slice + s * WARPS, s);
    commit_copies();
  }
  auto multiply = [&](int s) {
    if (INPUT) wait_for_copies<STAGES - 1>();
#pragma unroll(W::GROUPED && BATCH > 1 ? 1 : 4)
    for (int begin = 0; begin < 4; begin += CHUNKS) {
      uint4 given[CHUNKS][PIECES][COLUMNS];
#pragma unroll
      for (int l = 0; l < CHUNKS; ++l)
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece)
#pragma unroll
          for (int c = 0; c < COLUMNS; ++c) {
            int within = (begin + l) * SPAN + W::begin(place, piece), at = slice * (4 * SPAN) + within;
            if (INPUT) {
              given[l][piece][c] = ring[s * STAGE + 256 * TILES + within / 8];
            } else {
              int input = min((int)blockIdx.y * BATCH + 8 * c + group, batch - 1);
              const T* from = x + input * x_row + min(at, depth - 8);
              given[l][piece][c] = *reinterpret_cast<const uint4*>(from);  // sectorwise: allow SW101, SW105
            }
          }
      if (!INPUT && begin == 0) wait_for_copies<STAGES - 1>();
      if (!INPUT && slice * (4 * SPAN) + (begin + CHUNKS) * SPAN > depth)
#pragma unroll
        for (int l = 0; l < CHUNKS; ++l)
#pragma unroll
          for (int piece = 0; piece < PIECES; ++piece)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
              if (slice * (4 * SPAN) + (begin + l) * SPAN + W::begin(place, piece) >= depth)
                given[l][piece][c] = make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int l = 0; l < CHUNKS; ++l)
#pragma unroll
        for (int r = 0; r < TILES; ++r) {
          int cell = (place + group % 2 * 4) ^ (4 * (begin + l));
          const uint4* held = ring + s * STAGE + 256 * r + 16 * group + cell;
          uint4 upper = held[0], lower = held[128];
          float part[COLUMNS][2][4] = {};  // two chains: mma waits long for its own sums
#pragma unroll
          for (int piece = 0; piece < PIECES; ++piece) {
            unsigned int top[4], low[4];
            W::decode(upper, piece, top);
            W::decode(lower, piece, low);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
              const uint4& b = given[l][piece][c];
              float(&one)[4] = W::GROUPED ? part[c][0] : sums[r][c], (&other)[4] = W::GROUPED ? part[c][1] : sums[r][c];
              multiply_add<T>(one, top[0], low[0], top[1], low[1], b.x, b.y);
              if (W::LESS) multiply_add<T>(other, less[0], less[1], less[2], less[3], b.x, b.y);
              multiply_add<T>(other, top[2], low[2], top[3], low[3], b.z, b.w);
              if (W::LESS) multiply_add<T>(one, less[0], less[1], less[2], less[3], b.z, b.w);
            }
          }
          if (W::GROUPED)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              int from = (begin + l) % 2 * 16 + 8 * h + group;
              T scale = {(unsigned short)__shfl_sync(0xffffffffu, begin + l < 2 ? kept[s][r][0] : kept[s][r][1], from)};
#pragma unroll
              for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; ++i)
                  sums[r][c][i] += (part[c][0][i] + part[c][1][i]) * widen(scale);
            }
        }
    }
    int next = slice + STAGES * WARPS;
    if (next < slices) {
      __syncwarp();
      fill(next, s);
      fill_input(next, s);
    }
    commit_copies();
    slice += WARPS;
  };
  while (slice < slices)
#pragma unroll
    for (int s = 0; s < STAGES; ++s)
      if (slice < slices) multiply(s);
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
  for (int number = threadIdx.x; number < SUMS; number += 32 * WARPS) {
    int row = number % 16, input = number / 32 % 4 + number / 16 % 2 * 4, part = number / 128;
    int tile_row = part / COLUMNS * 16 + row;
    int64 to = (int64)blockIdx.y * BATCH + part % COLUMNS * 8 + input;
    if (tile_row > last_row || to >= batch) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += partial[w][part][input * PITCH + row];
    int64 at = first_row + tile_row;
    if (!W::GROUPED && scales != nullptr) sum *= static_cast<const float*>(scales)[at * scale_step];
    y[to * output.batch_step + at * output.row_step] = round_to<T>(sum);  // sectorwise: allow SW106
  }
}
