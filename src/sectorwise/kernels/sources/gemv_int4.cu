// y [batch, rows] = x [batch, depth] W^T for packed weights of 4 bits, one or two inputs, x as integers.
//
// W comes in tiles of 16 rows, a tile in groups of 128 of the depth, each 1,024 bytes one after the other (pack_int4), so
// that a warp fetches its part of a tile as one piece. The warps of a block share the depth. Each has its part of x in
// registers and its own ring in shared memory, and goes through all tiles of the block without waiting for another; what
// it sums up it puts aside, and all is added at the end.
//
// A warp takes x as 30 bits beside the largest of its part, 0x1p-30 of that exact, and splits them into four signed bytes.
// These are four columns of a product of bytes on tensor cores, so that the sums of a group are exact.
#include "hopper.cuh"

struct Output {
  int64 batch_step, row_step;
};

constexpr int GROUP_BYTES = 1024, SCALE_BYTES = 32, MOST_TILES = 16;

__device__ unsigned int keep_and_flip(unsigned int word, unsigned int mask, unsigned int flip) {
  unsigned int made;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(made) : "r"(word), "r"(mask), "r"(flip));
  return made;
}

__device__ unsigned int larger_halves(unsigned int a, unsigned int b) {
  unsigned int made;
  asm("max.u16x2 %0, %1, %2;" : "=r"(made) : "r"(a), "r"(b));
  return made;
}

// sums += A B of bytes, A 16 x 32 with rows of lane / 4 and + 8, B 32 x 8 with column lane / 4 (PTX ISA, mma.m16n8k32).
__device__ void multiply_bytes(int (&sums)[4], unsigned int a0, unsigned int a1, unsigned int a2, unsigned int a3,
                               const uint2& b) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
}

// `bytes` of global memory, in whole pieces of 16, to shared memory; the barrier counts them.
__device__ void fetch_bytes(unsigned int to, const void* from, int bytes, unsigned int barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(barrier)
               : "memory");
}

// Four bytes of global memory, the same for all that was copied since the last time, and until all but MOST of it are there.
__device__ void copy_word(unsigned int to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int MOST> __device__ void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(MOST) : "memory"); }

template <typename T, int INPUTS, int GROUPS, int PIECE, int STAGES, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
gemv_int4(const unsigned char* weights, const T* x, const T* scales, T* y, int64 rows, int depth, int64 x_row,
          int64 scale_step, Output output, int batch, int ready) {
  constexpr int PIECE_BYTES = PIECE * (GROUP_BYTES + SCALE_BYTES), PIECES = (GROUPS + PIECE - 1) / PIECE;
  constexpr int SHARE = 144, SPLIT = 272;  // cells of 8 bytes, floats
  constexpr int ROUND = MOST_TILES;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ unsigned long long barriers[WARPS * STAGES];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
  unsigned char* ring = memory + warp * (STAGES * PIECE_BYTES);
  unsigned int filled = address_of(barriers + warp * STAGES), ring_address = address_of(ring);
  int groups = (depth - 1) / 128 + 1, passes = (groups - 1) / (WARPS * GROUPS) + 1;
  // With one pass, what is put aside takes the place where x was split.
  int apart = passes > 1 ? INPUTS * MOST_TILES * 16 + SPLIT : max(INPUTS * MOST_TILES * 16, SPLIT);
  float* asides = reinterpret_cast<float*>(memory + WARPS * STAGES * PIECE_BYTES);
  uint2* cells = reinterpret_cast<uint2*>(asides + warp * apart);
  if (passes > 1) asides += SPLIT;
  float* aside = asides + warp * apart;
  int64 all = (rows - 1) / 16 + 1;
  int64 first_tile = all * blockIdx.x / gridDim.x;
  int tiles = (int)(all * (blockIdx.x + 1) / gridDim.x - first_tile);

  // What is fetched next, in the order in which it is used: rounds of tiles, passes of the depth, tiles, pieces.
  int next_round = 0, next_pass = 0, next_tile = 0, next_piece = 0, next_stage = 0;
  auto fetch = [&]() {
    if (next_round >= tiles) {
      commit_copies();
      return;
    }
    int begin = (next_pass * WARPS + warp) * GROUPS + next_piece * PIECE;
    int count = min(min(PIECE, GROUPS - next_piece * PIECE), groups - begin);
    if (count > 0) {
      int64 tile = first_tile + next_round + next_tile;
      if (lane == 0) {
        unsigned int barrier = filled + 8 * next_stage;
        expect_bytes(barrier, count * GROUP_BYTES);
        fetch_bytes(ring_address + next_stage * PIECE_BYTES, weights + (tile * groups + begin) * GROUP_BYTES,
                    count * GROUP_BYTES, barrier);
      }
#pragma unroll
      for (int cell = lane; cell < 8 * PIECE; cell += 32)
        if (cell / 8 < count) {
          int64 row = min(tile * 16 + cell % 8 * 2, rows - 2);
          copy_word(ring_address + next_stage * PIECE_BYTES + PIECE * GROUP_BYTES + 4 * cell,
                    scales + (begin + cell / 8) * scale_step + row);
        }
    }
    commit_copies();
    if (count > 0) next_stage = next_stage + 1 == STAGES ? 0 : next_stage + 1;
    if (++next_piece < PIECES) return;
    next_piece = 0;
    if (++next_tile < min(ROUND, tiles - next_round)) return;
    next_tile = 0;
    if (++next_pass < passes) return;
    next_pass = 0;
    next_round += ROUND;
  };

  let_next_begin();
  if (lane == 0) {
    for (int stage = 0; stage < STAGES; ++stage) make_barrier(filled + 8 * stage, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  if (!ready) wait_for_previous();
  // A piece that is not there takes no stage: a warp beyond the depth has none at all.
  for (int stage = 0; stage < STAGES; ++stage) fetch();
  wait_for_previous();

  uint2 digits[GROUPS][4];
  float unit = 0;
  auto take_input = [&](int pass) {
    constexpr int LOADS = (GROUPS + 1) / 2;
    int begin = (pass * WARPS + warp) * GROUPS * 128, end = min(depth, begin + GROUPS * 128);
#pragma unroll
    for (int input = 0; input < INPUTS; ++input) {
      const T* from = x + min(input, batch - 1) * x_row + begin;
      uint4 held[LOADS];
      unsigned int largest = 0;
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        int at = 8 * (lane + 32 * l);
        held[l] = begin + at < end ? *reinterpret_cast<const uint4*>(from + at) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < 4; ++i) largest = larger_halves(largest, pick(held[l], i) & 0x7fff7fffu);
      }
      largest = __reduce_max_sync(0xffffffffu, max(largest & 0xffffu, largest >> 16));
      int exponent = max((int)(__float_as_uint(widen(T{(unsigned short)largest})) >> 23), 20);
      // 2 to the power of 156 - exponent, in two factors, so that all that is smaller than the largest is below 2^30.
      float one = __uint_as_float((unsigned int)(259 - exponent) << 23), other = 0x1p24f;
      bool mine = INPUTS == 1 || place / 2 == input;
      // What a sum of digits counts: less the 156, and the 4 of weights that are 16 times themselves.
      float counts = exponent == 255 ? __uint_as_float(0x7fc00000u) : __uint_as_float((unsigned int)(exponent - 19) << 23) * 0x1p-14f;
      if (mine) unit = counts * (place % 2 ? 1.f : 65536.f);
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        unsigned int words[8];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float2 both = unpack<T>(pick(held[l], i));
          words[2 * i] = (__float2int_rn(both.x * one * other) + 0x00808080) ^ 0x00808080;
          words[2 * i + 1] = (__float2int_rn(both.y * one * other) + 0x00808080) ^ 0x00808080;
        }
        uint2 columns[4];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          unsigned int a = words[2 * h], b = words[4 + 2 * h], c = words[1 + 2 * h], d = words[5 + 2 * h];
          unsigned int low_ab = __byte_perm(a, b, 0x5140), high_ab = __byte_perm(a, b, 0x7362);
          unsigned int low_cd = __byte_perm(c, d, 0x5140), high_cd = __byte_perm(c, d, 0x7362);
          (h ? columns[3].y : columns[3].x) = __byte_perm(low_ab, low_cd, 0x5410);
          (h ? columns[2].y : columns[2].x) = __byte_perm(low_ab, low_cd, 0x7632);
          (h ? columns[1].y : columns[1].x) = __byte_perm(high_ab, high_cd, 0x5410);
          (h ? columns[0].y : columns[0].x) = __byte_perm(high_ab, high_cd, 0x7632);
        }
        __syncwarp();
        reinterpret_cast<uint4*>(cells)[lane] = make_uint4(columns[0].x, columns[0].y, columns[1].x, columns[1].y);
        reinterpret_cast<uint4*>(cells)[SHARE / 4 + lane] = make_uint4(columns[2].x, columns[2].y, columns[3].x, columns[3].y);
        __syncwarp();
#pragma unroll
        for (int c = 0; c < 2; ++c)
          if (2 * l + c < GROUPS)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              int cell = 2 * (16 * c + 4 * i + place) + group % 2 + group / 2 % 2 * (SHARE / 2);
              if (INPUTS == 1 || group / 4 == input) digits[2 * l + c][i] = cells[cell];
            }
      }
      __syncwarp();
    }
  };

  int stage = 0, parity = 0;
  for (int round = 0; round < tiles; round += ROUND) {
    int here = min(ROUND, tiles - round);
    for (int pass = 0; pass < passes; ++pass) {
      if (passes > 1 || round == 0) take_input(pass);
      int begin = (pass * WARPS + warp) * GROUPS;
      for (int tile = 0; tile < here; ++tile) {
        float upper_sum = 0, lower_sum = 0;
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) {
          if (begin + piece * PIECE < groups) {
            wait_for(filled + 8 * stage, parity);
            await_copies<STAGES - 1>();
            __syncwarp();
            const unsigned char* held = ring + stage * PIECE_BYTES;
#pragma unroll
            for (int i = 0; i < PIECE; ++i) {
              constexpr int COUNT = GROUPS;
              int number = piece * PIECE + i;
              if (number < COUNT && begin + number < groups) {
                const uint4* cells = reinterpret_cast<const uint4*>(held + i * GROUP_BYTES);
                const T* factors = reinterpret_cast<const T*>(held + PIECE * GROUP_BYTES + i * SCALE_BYTES);
                uint4 upper = cells[lane], lower = cells[32 + lane];
                float upper_scale = widen(factors[group]), lower_scale = widen(factors[8 + group]);
                int sums[4] = {};
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                  unsigned int u = pick(upper, k), v = pick(lower, k);
                  multiply_bytes(sums, keep_and_flip(u << 4, 0xf0f0f0f0u, 0x80808080u),
                                 keep_and_flip(v << 4, 0xf0f0f0f0u, 0x80808080u), keep_and_flip(u, 0xf0f0f0f0u, 0x80808080u),
                                 keep_and_flip(v, 0xf0f0f0f0u, 0x80808080u), digits[number < COUNT ? number : 0][k]);
                }
                upper_sum += (float)(sums[0] * 256 + sums[1]) * unit * upper_scale;
                lower_sum += (float)(sums[2] * 256 + sums[3]) * unit * lower_scale;
              }
            }
            __syncwarp();
            fetch();
            if (++stage == STAGES) stage = 0, parity ^= 1;
          } else {
            fetch();
          }
        }
        upper_sum += __shfl_xor_sync(0xffffffffu, upper_sum, 1);
        lower_sum += __shfl_xor_sync(0xffffffffu, lower_sum, 1);
        if (place % 2 == 0 && place / 2 < INPUTS) {
          float* to = aside + (place / 2 * MOST_TILES + tile) * 16 + group;
          to[0] = pass ? to[0] + upper_sum : upper_sum;
          to[8] = pass ? to[8] + lower_sum : lower_sum;
        }
      }
    }
    __syncthreads();
    for (int number = threadIdx.x; number < INPUTS * 16 * here; number += 32 * WARPS) {
      int input = number / (16 * here), row = number % (16 * here);
      int64 at = (first_tile + round) * 16 + row;
      if (input >= batch || at >= rows) continue;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < WARPS; ++w) sum += asides[w * apart + input * (MOST_TILES * 16) + row];
      y[input * output.batch_step + at * output.row_step] = round_to<T>(sum);
    }
    if (round + ROUND < tiles) __syncthreads();
  }
}
