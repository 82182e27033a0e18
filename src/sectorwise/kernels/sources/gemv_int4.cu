// y [batch, rows] = x [batch, depth] W^T for packed weights of 4 bits, one or two inputs, x as integers.
//
// W comes in tiles of 16 rows, a tile in groups of 128 of the depth, each 1,024 bytes that lie together (pack_int4), so
// that a warp copies its part of a tile from one place. The warps of a block share the depth. Each has its part of x in
// registers and its own ring in shared memory, and goes through all tiles of the block without waiting for another; what
// it sums up it puts aside, and all is added at the end.
//
// A warp takes x as numbers of 30 bits beside the largest of its part and splits them into four signed bytes. These are
// four columns of a product of bytes on tensor cores; the sums of a group are exact, and become floats once.
#include "hopper.cuh"

struct Output {
  int64 batch_step, row_step;
};

constexpr int GROUP_BYTES = 1024, SCALE_BYTES = 32, MOST_TILES = 16;
constexpr int ASIDE = 16 * MOST_TILES, SPLIT = 272;  // floats of a warp: sums of one input, and where it splits x

// (word & mask) ^ flip in one instruction, which the compiler makes two of where both are constants.
__device__ unsigned int keep_and_flip(unsigned int word, unsigned int mask, unsigned int flip) {
  unsigned int made;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(made) : "r"(word), "r"(mask), "r"(flip));
  return made;
}

// sums + A B of bytes, A 16 x 32 with rows of lane / 4 and + 8, B 32 x 8 with column lane / 4 (PTX ISA, mma.m16n8k32).
__device__ int4 multiply_add_bytes(const int4& sums, unsigned int a0, unsigned int a1, unsigned int a2, unsigned int a3,
                                   const uint2& b) {
  int4 made;
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(made.x), "=r"(made.y), "=r"(made.z), "=r"(made.w)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y), "r"(sums.x), "r"(sums.y), "r"(sums.z), "r"(sums.w));
  return made;
}

// Four bytes into shared memory, zeros where there are none.
__device__ void copy_word(unsigned int to, const void* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(inside ? 4 : 0) : "memory");
}

// What was copied since the last time belongs together.
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Bytes of global memory that lie together, in pieces of 16, into shared memory; the barrier counts them.
__device__ void copy_bulk(unsigned int to, const void* from, int bytes, unsigned int barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
      "r"(bytes), "r"(barrier)
      : "memory");
}

// One lane of the warp, the same each time.
__device__ bool is_elected() {
  unsigned int yes;
  asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(yes));
  return yes;
}

// Until all but PENDING of the copies that were begun together are there, for the whole warp.
template <int PENDING> __device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
  __syncwarp();
}

// The largest exponent of eight elements of T of each of COUNT lines of all lanes, as that of a float, 20 at least.
template <typename T, int COUNT> __device__ int largest_exponent(const uint4 (&lines)[COUNT]) {
  unsigned int largest = 0;
#pragma unroll
  for (int l = 0; l < COUNT; ++l)
#pragma unroll
    for (int i = 0; i < 4; ++i) largest = __vmaxu2(largest, pick(lines[l], i) & 0x7fff7fffu);
  largest = __reduce_max_sync(0xffffffffu, max(largest & 0xffffu, largest >> 16));
  return max((int)(__float_as_uint(widen(T{(unsigned short)largest})) >> 23), 20);
}

// Eight elements of T, of no larger exponent, times 2 to the power of 156 - exponent: whole numbers below 2^30, each as
// four signed bytes. `columns` are the bytes of the same weight, the highest first: those of elements 0, 4, 1 and 5,
// which the lower halves of bytes of W multiply, and of 2, 6, 3 and 7. The factor is two, as it may be too large for one.
template <typename T> __device__ void split(const uint4& line, int exponent, uint2 (&columns)[4]) {
  float first = __uint_as_float((unsigned int)(259 - exponent) << 23), second = 0x1p24f;
  unsigned int words[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 both = unpack<T>(pick(line, i));
    words[2 * i] = (__float2int_rn(both.x * first * second) + 0x00808080) ^ 0x00808080;
    words[2 * i + 1] = (__float2int_rn(both.y * first * second) + 0x00808080) ^ 0x00808080;
  }
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
}

// What the lowest byte counts in a product: less those 156, and four for weights that are 16 times themselves. With an
// infinity or what is no number in x it is no number.
__device__ float unit_of(int exponent) {
  return exponent == 255 ? __uint_as_float(0x7fc00000u)
                         : __uint_as_float((unsigned int)(exponent - 19) << 23) * 0x1p-14f;
}

// A block has `each` tiles of 16 rows, the first `more` of them one more. Of each tile a warp has GROUPS groups, PIECE of
// which it copies together, and STAGES such pieces on their way. Where the depth is not gone through ONCE, MOST_TILES
// tiles are for each part of it. INPUTS is 1 or 2; `ready` is as in gemv_rows.
//
// What is allowed here: what keeps DRAM busy is on its way without loads of warps, 96 to 128 KiB an SM, and few warps are
// resident (SW401, SW402). With few rows some SMs have no block (SW404). Scales of four groups, copied at once, meet in
// the banks of L1: one copy in 200 instructions (SW204).
template <typename T, int INPUTS, int GROUPS, int PIECE, int STAGES, int WARPS, int BLOCKS, bool ONCE>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
gemv_int4(  // sectorwise: allow SW401, SW402, SW404
    const uint4* weights, const T* x, const T* scales, T* y, int rows, int depth, int64 x_row, unsigned int scale_step,
    Output output, int each, int more, int ready) {
  static_assert(GROUPS % PIECE == 0 && PIECE <= 4);
  constexpr int PIECES = GROUPS / PIECE, PIECE_BYTES = PIECE * (GROUP_BYTES + SCALE_BYTES), RING = STAGES * PIECE_BYTES;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ unsigned long long barriers[WARPS * STAGES];
  int lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
  int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);  // so that what follows from it is the same for all lanes
  int groups = (depth - 1) / 128 + 1, passes = ONCE ? 1 : (groups - 1) / (WARPS * GROUPS) + 1;
  unsigned int ring = (unsigned int)__cvta_generic_to_shared(memory) + warp * RING;
  // What is put aside takes the place where x was split, if that is done once.
  constexpr int APART = !ONCE ? INPUTS * ASIDE + SPLIT : INPUTS * ASIDE < SPLIT ? SPLIT : INPUTS * ASIDE;
  float* shared = reinterpret_cast<float*>(memory + WARPS * RING);
  uint2* cells = reinterpret_cast<uint2*>(shared + warp * APART);
  float* asides = shared + (ONCE ? 0 : SPLIT);
  float* aside = asides + warp * APART;
  int first_tile = each * blockIdx.x + min((int)blockIdx.x, more), tiles = each + ((int)blockIdx.x < more);

  // What is copied next. MOST_TILES tiles are a round, in which all are gone through for each part of the depth.
  int next_tile = 0, next_pass = 0;
  unsigned int cell_of_warp = (first_tile * groups + warp * GROUPS) * 64;
  unsigned int scale_of_lane = (warp * GROUPS + lane / 8) * scale_step + first_tile * 16 + lane % 8 * 2;
  unsigned int filled = address_of(barriers + warp * STAGES);
  bool elected = is_elected();
  auto copy_piece = [&](int piece, int stage) {
    if (next_tile < tiles) {
      int group = next_pass * (WARPS * GROUPS) + piece * PIECE, left = groups - warp * GROUPS - group;
      const uint4* from = weights + (unsigned int)(cell_of_warp + (next_tile * groups + group) * 64);
      unsigned int to = ring + stage * PIECE_BYTES, barrier = filled + 8 * stage;
      if (elected) {
        int bytes = GROUP_BYTES * min(max(left, 0), PIECE);
        expect_bytes(barrier, bytes);
        if (bytes) copy_bulk(to, from, bytes, barrier);
      }
      bool inside = lane / 8 < left && (first_tile + next_tile) * 16 + lane % 8 * 2 < rows;
      if (PIECE == 4 || lane < 8 * PIECE)
        copy_word(to + PIECE * GROUP_BYTES + 4 * lane,  // sectorwise: allow SW204
                      scales + (unsigned int)(scale_of_lane + group * scale_step + next_tile * 16), inside);
    }
    commit_copies();
    if (piece + 1 < PIECES) return;
    ++next_tile;
    if (ONCE || (next_tile % MOST_TILES != 0 && next_tile != tiles)) return;
    if (++next_pass < passes)
      next_tile = (next_tile - 1) / MOST_TILES * MOST_TILES;
    else
      next_pass = 0;
  };

  let_next_begin();
  if (elected) {
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage) make_barrier(filled + 8 * stage, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  if (!ready) wait_for_previous();
#pragma unroll 1
  for (int stage = 0; stage < STAGES; ++stage) copy_piece(stage % PIECES, stage);
  wait_for_previous();

  uint2 digits[GROUPS][4];
  float unit = 0;
  auto take_inputs = [&](int pass) {
    constexpr int LOADS = (GROUPS + 1) / 2;
    int begin = (pass * WARPS + warp) * GROUPS * 128;
#pragma unroll
    for (int input = 0; input < INPUTS; ++input) {
      uint4 held[LOADS];
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        int within = 8 * (lane + 32 * l), at = begin + within;
        bool inside = within < 128 * GROUPS && at < depth;
        const T* from = x + input * x_row + at;
        held[l] = inside ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);  // sectorwise: allow SW401
      }
      int exponent = largest_exponent<T>(held);
      bool mine = INPUTS == 1 || place / 2 == input;
      if (mine) unit = unit_of(exponent) * (place % 2 ? 1.f : 65536.f);
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        uint4* to = reinterpret_cast<uint4*>(cells) + lane;
        uint2 columns[4];
        split<T>(held[l], exponent, columns);
        __syncwarp();
        to[0] = make_uint4(columns[0].x, columns[0].y, columns[1].x, columns[1].y);
        to[36] = make_uint4(columns[2].x, columns[2].y, columns[3].x, columns[3].y);
        __syncwarp();
#pragma unroll
        for (int c = 0; c < 2 && 2 * l + c < GROUPS; ++c)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const uint2* cell = cells + 2 * (16 * c + 4 * i + place) + group % 2 + group / 2 % 2 * 72;
            if (INPUTS == 1 || group / 4 == input) digits[2 * l + c][i] = *cell;
          }
      }
      __syncwarp();
    }
  };

  if (ONCE) take_inputs(0);
  int stage = 0;
  unsigned int parity = 0;
  for (int round = 0; round < tiles; round += MOST_TILES) {
    int here = min(MOST_TILES, tiles - round);
    for (int pass = 0; pass < passes; ++pass) {
      if (!ONCE) take_inputs(pass);
      for (int tile = 0; tile < here; ++tile) {
        float upper_sum = 0, lower_sum = 0;
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) {
          wait_for(filled + 8 * stage, parity);
          wait_for_copies<STAGES - 1>();
          const unsigned char* held = memory + warp * RING + stage * PIECE_BYTES;
#pragma unroll
          for (int i = 0; i < PIECE; ++i) {
            const uint4* lines = reinterpret_cast<const uint4*>(held + i * GROUP_BYTES) + lane;
            const T* factors = reinterpret_cast<const T*>(held + PIECE * GROUP_BYTES + i * SCALE_BYTES) + group;
            uint4 upper = lines[0], lower = lines[32];
            float upper_scale = widen(factors[0]), lower_scale = widen(factors[8]);
            int4 sums = {0, 0, 0, 0};
#pragma unroll
            for (int k = 0; k < 4; ++k) {
              unsigned int u = pick(upper, k), v = pick(lower, k), mask = 0xf0f0f0f0u, flip = 0x80808080u;
              sums = multiply_add_bytes(sums, keep_and_flip(u << 4, mask, flip), keep_and_flip(v << 4, mask, flip),
                                        keep_and_flip(u, mask, flip), keep_and_flip(v, mask, flip),
                                        digits[piece * PIECE + i][k]);
            }
            upper_sum += (float)(sums.x * 256 + sums.y) * unit * upper_scale;
            lower_sum += (float)(sums.z * 256 + sums.w) * unit * lower_scale;
          }
          __syncwarp();
          copy_piece((piece + STAGES) % PIECES, stage);
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        upper_sum += __shfl_xor_sync(0xffffffffu, upper_sum, 1);
        lower_sum += __shfl_xor_sync(0xffffffffu, lower_sum, 1);
        if (place % 2 == 0 && place / 2 < INPUTS) {
          float* to = aside + place / 2 * ASIDE + tile * 16 + group;
          to[0] = pass ? to[0] + upper_sum : upper_sum;
          to[8] = pass ? to[8] + lower_sum : lower_sum;
        }
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int input = 0; input < INPUTS; ++input)
#pragma unroll 1
      for (int row = threadIdx.x; row < 16 * here; row += 32 * WARPS) {
        int at = (first_tile + round) * 16 + row;
        if (at >= rows) continue;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) sum += asides[w * APART + input * ASIDE + row];
        y[input * output.batch_step + at * output.row_step] = round_to<T>(sum);
      }
    if (here == MOST_TILES) __syncthreads();
  }
}
