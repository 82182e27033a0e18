// C [m, n] = A [m, k] B [k, n] in 16-bit floats, one or a batch, for compute capability 9.0a; sums are in float.
#include "hopper.cuh"

constexpr int DEPTH = 64, LINE = 128;  // of the depth a stage; bytes of a line in shared memory
constexpr int BOX = 64 * LINE;         // bytes of 64 lines

// Lines of a box of the result: all of 64 columns, or the part of them that ACROSS has whole ones of.
template <int ACROSS> constexpr int RESULT_LINES = ACROSS % 64 == 0 ? 64 : ACROSS % 32 == 0 ? 32 : 16;

template <int DOWN, int ACROSS, int STAGES, bool B_BY_ROWS> struct Memory {
  static constexpr int A = DOWN * LINE, B = (B_BY_ROWS ? (ACROSS + 63) / 64 * 64 : ACROSS) * LINE, STAGE = A + B;
  static constexpr int RESULTS = STAGES * STAGE, BARRIERS = RESULTS + DOWN / 64 * 2 * BOX;
};

// How the work is shared: `whole` tiles of all go whole to a cluster, one after the other. The steps of the others are
// one row, of which each cluster has `share`, the first `more` one more.
struct Work {
  int steps, tiles_down, tiles_across, high, whole, share, more;
  int a_step, b_step;  // matrices of a batch from product to product, 0 where all have the same
};

// Where tile `number` is: down `high`, then across, so that what runs together reads the same of A and B.
__device__ int3 find_tile(int number, int tiles_down, int tiles_across, int high) {
  int each = tiles_down * tiles_across, matrix = number / each;
  number -= matrix * each;
  int band = number / (high * tiles_across), rest = number % (high * tiles_across);
  int height = min(high, tiles_down - high * band);
  return make_int3(high * band + rest % height, rest / height, matrix);
}

__device__ int find_share(const Work& work, int cluster) { return cluster * work.share + min(cluster, work.more); }

// What a cluster computes, piece by piece: a tile, and which steps of it. Of its share the end comes first: what it
// begins there for another cluster is long done when that one asks for it.
struct Pieces {
  int next, together, begin, end;
  int tile, from, to;
  __device__ Pieces(const Work& work, int cluster, int clusters)
      : next(cluster), together(clusters), begin(find_share(work, cluster)), end(find_share(work, cluster + 1)) {}
  __device__ bool take(const Work& work) {
    if (next < work.whole) {
      tile = next, from = 0, to = work.steps, next += together;
      return true;
    }
    if (end <= begin) return false;
    int at = (end - 1) / work.steps, first = at * work.steps;
    tile = work.whole + at, from = max(begin - first, 0), to = end - first, end = first + from;
    return true;
  }
};

// A stage of A: a box of DOWN rows, or where the depth goes from line to line, a box for each 64 of them.
template <int DOWN, bool BY_ROWS>
__device__ void fetch_a(unsigned int to, const TensorMap& a, int row, int depth, int matrix, unsigned int barrier) {
  if constexpr (BY_ROWS)
    fetch_box(to, a, depth, row, matrix, barrier);
  else
#pragma unroll
    for (int i = 0; i < DOWN / 64; ++i) fetch_box(to + i * BOX, a, row + 64 * i, depth, matrix, barrier);
}

// This block's part of a stage of B, for all blocks of the cluster: of the columns, or of the depth where they are not
// whole boxes.
template <int ACROSS, int CLUSTER, bool BY_ROWS>
__device__ void fetch_b(unsigned int to, const TensorMap& b, int column, int depth, int matrix, int rank,
                        unsigned int barrier) {
  constexpr int SHARE = ACROSS / CLUSTER;
  int from = rank * SHARE;
  if constexpr (!BY_ROWS)
    fetch_box_for_all<CLUSTER>(to + from * LINE, b, depth, column + from, matrix, barrier);
  else if constexpr (SHARE % 64 == 0)
#pragma unroll
    for (int i = 0; i < SHARE; i += 64)
      fetch_box_for_all<CLUSTER>(to + (from + i) * LINE, b, column + from + i, depth, matrix, barrier);
  else
#pragma unroll
    for (int i = 0; i < ACROSS; i += 64)
      fetch_box_for_all<CLUSTER>(to + i * LINE + rank * (BOX / CLUSTER), b, column + i,
                                 depth + rank * (DEPTH / CLUSTER), matrix, barrier);
}

// sums [64, ACROSS] = the product of a stage, or += where `adding`, some time.
template <typename T, bool A_BY_ROWS, bool B_BY_ROWS, int EIGHTS>
__device__ void multiply_stage(float (&sums)[EIGHTS][4], unsigned int left, unsigned int right, int adding) {
  unsigned long long rows = describe<A_BY_ROWS>(left, BOX), columns = describe<!B_BY_ROWS>(right, BOX);
  begin_products();
#pragma unroll
  for (int i = 0; i < DEPTH / 16; ++i)
    multiply<T, !A_BY_ROWS, B_BY_ROWS>(sums, rows + i * SIXTEEN<A_BY_ROWS>, columns + i * SIXTEEN<!B_BY_ROWS>,
                                       adding | i);
  commit_products();
}

// A warpgroup's 64 rows of a tile, a box of 64 columns after the other, through one of two places in shared memory:
// `turn` says which is next. A piece of 16 bytes stands at a column that is exclusive-ored with its line, as the map
// has it.
template <typename T, int EIGHTS>
__device__ void store_tile(float (&sums)[EIGHTS][4], const TensorMap& c, int row, int column, int matrix,
                           unsigned int places, int& turn, int group) {
  static_assert(EIGHTS % 8 == 0);
  int lane = threadIdx.x % 32, line = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
  for (int box = 0; box < EIGHTS / 8; ++box) {
    if (threadIdx.x % 128 == 0) await_reads<1>();
    join_warpgroup(1 + group);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&low)[4] = sums[8 * box + 2 * i], (&up)[4] = sums[8 * box + 2 * i + 1];
      store_four(places + turn * BOX + line * LINE + ((2 * i + lane / 16) ^ line % 8) * 16, pair<T>(low[0], low[1]),
                 pair<T>(low[2], low[3]), pair<T>(up[0], up[1]), pair<T>(up[2], up[3]));
    }
    publish();
    join_warpgroup(1 + group);
    if (threadIdx.x % 128 == 0) store_box(c, column + 64 * box, row, matrix, places + turn * BOX);
    turn ^= 1;
  }
}

// The same where C lies by columns: a line of a box has 64 rows of one column.
template <typename T, int EIGHTS>
__device__ void store_turned(float (&sums)[EIGHTS][4], const TensorMap& c, int row, int column, int matrix,
                             unsigned int places, int& turn, int group) {
  constexpr int LINES = RESULT_LINES<8 * EIGHTS>;
  int lane = threadIdx.x % 32, line = lane / 16 * 8 + lane % 8, piece = threadIdx.x / 32 % 4 * 2 + lane / 8 % 2;
#pragma unroll
  for (int box = 0; box < 8 * EIGHTS / LINES; ++box) {
    if (threadIdx.x % 128 == 0) await_reads<1>();
    join_warpgroup(1 + group);
#pragma unroll
    for (int i = 0; i < LINES / 16; ++i) {
      float(&low)[4] = sums[LINES / 8 * box + 2 * i], (&up)[4] = sums[LINES / 8 * box + 2 * i + 1];
      store_four_turned(places + turn * BOX + (16 * i + line) * LINE + (piece ^ line % 8) * 16,
                        pair<T>(low[0], low[1]), pair<T>(low[2], low[3]), pair<T>(up[0], up[1]),
                        pair<T>(up[2], up[3]));
    }
    publish();
    join_warpgroup(1 + group);
    if (threadIdx.x % 128 == 0) store_box(c, row, column + LINES * box, matrix, places + turn * BOX);
    turn ^= 1;
  }
}

// Sums of a part of the depth, for the warpgroup that has the end of that tile; and theirs to its own.
template <int EIGHTS> __device__ void hand_on(float (&sums)[EIGHTS][4], float4* to, unsigned int* flag, int group) {
#pragma unroll
  for (int i = 0; i < EIGHTS; ++i)
    __stcg(to + i * 128 + threadIdx.x % 128, make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  join_warpgroup(1 + group);
  if (threadIdx.x % 128 == 0) say_ready(flag);
}
template <int EIGHTS>
__device__ void add_others(float (&sums)[EIGHTS][4], const float4* from, unsigned int* flag, int group) {
  if (threadIdx.x % 128 == 0) await_ready(flag);
  join_warpgroup(1 + group);
#pragma unroll
  for (int i = 0; i < EIGHTS; ++i) {
    float4 part = __ldcg(from + i * 128 + threadIdx.x % 128);
    sums[i][0] += part.x, sums[i][1] += part.y, sums[i][2] += part.z, sums[i][3] += part.w;
  }
}

// A block has DOWN x ACROSS of C at a time, a warpgroup each 64 rows of it, one more warpgroup fetches. The blocks of a
// cluster lie one below the other and fetch B together. Where TURNED, C is given by columns. `parts` and `flags` are
// what warpgroups hand on: a tile's sums and a word each, words 0 before and after.
template <typename T, int DOWN, int ACROSS, int STAGES, int CLUSTER, bool A_BY_ROWS, bool B_BY_ROWS, bool TURNED>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(DOWN * 2 + 128, 1)
matmul_tma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
           const __grid_constant__ TensorMap c, float4* __restrict__ parts, unsigned int* __restrict__ flags,
           const __grid_constant__ Work work) {
  typedef Memory<DOWN, ACROSS, STAGES, B_BY_ROWS> Place;
  constexpr int WARPGROUPS = DOWN / 64, EIGHTS = ACROSS / 8;
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned int base = (address_of(memory) + 1023) & ~1023u;
  unsigned int full = base + Place::BARRIERS, empty = full + 8 * STAGES;
  int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  if (threadIdx.x == 0) {
    expect_map(a), expect_map(b), expect_map(c);
    for (int stage = 0; stage < STAGES; ++stage) {
      make_barrier(full + 8 * stage, 1);
      make_barrier(empty + 8 * stage, CLUSTER * WARPGROUPS * 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  join_cluster<CLUSTER>();
  begin_next();
  await_previous();
  int cluster = blockIdx.x / CLUSTER;
  Pieces pieces(work, cluster, gridDim.x / CLUSTER);
  int stage = 0, parity = 0;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      while (pieces.take(work)) {
        int3 tile = find_tile(pieces.tile, work.tiles_down, work.tiles_across, work.high);
        int row = (tile.x * CLUSTER + rank) * DOWN, in_a = tile.z * work.a_step, in_b = tile.z * work.b_step;
        for (int t = pieces.from; t < pieces.to; ++t) {
          unsigned int left = base + stage * Place::STAGE, barrier = full + 8 * stage;
          wait_for(empty + 8 * stage, parity ^ 1);
          expect_bytes(barrier, Place::STAGE);
          fetch_a<DOWN, A_BY_ROWS>(left, a, row, t * DEPTH, in_a, barrier);
          fetch_b<ACROSS, CLUSTER, B_BY_ROWS>(left + Place::A, b, tile.y * ACROSS, t * DEPTH, in_b, rank, barrier);
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
      }
    }
    __syncwarp();
  } else {
    if constexpr (WARPGROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, turn = 0;
    while (pieces.take(work)) {
      float sums[EIGHTS][4];
      int last = 0;
      for (int t = pieces.from; t < pieces.to; ++t) {
        unsigned int left = base + stage * Place::STAGE;
        wait_for(full + 8 * stage, parity);
        multiply_stage<T, A_BY_ROWS, B_BY_ROWS>(sums, left + group * BOX, left + Place::A, t - pieces.from);
        await_products<1>();
        if (t > pieces.from && lane < CLUSTER) arrive_at(empty + 8 * last, lane);
        last = stage;
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
      await_products<0>();
      hold(sums);
      if (lane < CLUSTER) arrive_at(empty + 8 * last, lane);
      if (pieces.to < work.steps) {
        int place = blockIdx.x * WARPGROUPS + group;
        hand_on(sums, parts + place * (EIGHTS * 128), flags + place, group);
        continue;
      }
      int first = (pieces.tile - work.whole) * work.steps;
      for (int other = cluster; pieces.from && find_share(work, other) > first;) {
        int place = (--other * CLUSTER + rank) * WARPGROUPS + group;
        add_others(sums, parts + place * (EIGHTS * 128), flags + place, group);
      }
      int3 tile = find_tile(pieces.tile, work.tiles_down, work.tiles_across, work.high);
      int row = (tile.x * CLUSTER + rank) * DOWN + group * 64, column = tile.y * ACROSS;
      unsigned int places = base + Place::RESULTS + group * 2 * BOX;
      if constexpr (TURNED)
        store_turned<T>(sums, c, row, column, tile.z, places, turn, group);
      else
        store_tile<T>(sums, c, row, column, tile.z, places, turn, group);
    }
    if (threadIdx.x % 128 == 0) await_reads<0>();
  }
  join_cluster<CLUSTER>();
}

// Few rows: a cluster has 64 x ACROSS of C, each of its blocks SPLIT-th of the depth, so that all SMs have some of B to
// fetch. What they made is added through the shared memory of the cluster, a block ACROSS / SPLIT columns of it.
template <typename T, int ACROSS, int STAGES, int SPLIT, bool A_BY_ROWS, bool B_BY_ROWS>
__global__ void __cluster_dims__(SPLIT, 1, 1) __launch_bounds__(160)
matmul_split(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, T* __restrict__ c, int m, int n,
             int64 c_step, int64 c_apart, int steps, int tiles_down, int tiles_across, int a_step, int b_step) {
  constexpr int A = BOX, STAGE = A + ACROSS * LINE, WIDTH = ACROSS + 8;
  static_assert(64 * WIDTH * 4 <= STAGES * STAGE);
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned int base = (address_of(memory) + 1023) & ~1023u;
  unsigned int full = base + STAGES * STAGE, empty = full + 8 * STAGES;
  int rank = rank_in_cluster(), tile = blockIdx.x / SPLIT;
  int matrix = tile / (tiles_down * tiles_across), row = tile / tiles_across % tiles_down * 64;
  int column = tile % tiles_across * ACROSS, in_a = matrix * a_step, in_b = matrix * b_step;
  int from = (int)((int64)steps * rank / SPLIT), to = (int)((int64)steps * (rank + 1) / SPLIT);
  if (threadIdx.x == 128) {
    expect_map(a), expect_map(b);
    for (int stage = 0; stage < STAGES; ++stage) {
      make_barrier(full + 8 * stage, 1);
      make_barrier(empty + 8 * stage, 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  begin_next();
  await_previous();
  int stage = 0, parity = 0, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 128) {
    for (int t = from; t < to; ++t) {
      unsigned int left = base + stage * STAGE, barrier = full + 8 * stage;
      wait_for(empty + 8 * stage, parity ^ 1);
      expect_bytes(barrier, STAGE);
      fetch_b<ACROSS, 1, B_BY_ROWS>(left + A, b, column, t * DEPTH, in_b, 0, barrier);
      fetch_a<64, A_BY_ROWS>(left, a, row, t * DEPTH, in_a, barrier);
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  } else if (threadIdx.x < 128) {
    float sums[ACROSS / 8][4] = {};
    for (int t = from; t < to; ++t) {
      unsigned int left = base + stage * STAGE;
      wait_for(full + 8 * stage, parity);
      multiply_stage<T, A_BY_ROWS, B_BY_ROWS>(sums, left, left + A, 1);
      await_products<0>();
      if (lane == 0) arrive_at(empty + 8 * stage, rank);
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    hold(sums);
    // The last stages may still be read by other warps' products.
    join_warpgroup(1);
    unsigned int mine = base + ((warp * 16 + lane / 4) * WIDTH + lane % 4 * 2) * 4;
#pragma unroll
    for (int i = 0; i < ACROSS / 8; ++i) {
      store_pair(mine + 32 * i, sums[i][0], sums[i][1]);
      store_pair(mine + 32 * i + 8 * WIDTH * 4, sums[i][2], sums[i][3]);
    }
  }
  __syncwarp();
  share_with_cluster();
  constexpr int QUARTERS = ACROSS / SPLIT / 4;
  for (int number = threadIdx.x; number < 64 * QUARTERS; number += 160) {
    int line = number / QUARTERS, x = rank * (ACROSS / SPLIT) + number % QUARTERS * 4;
    if (row + line >= m || column + x >= n) continue;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int block = 0; block < SPLIT; ++block) {
      float4 part = load_from(base + (line * WIDTH + x) * 4, block);
      sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    T* at = c + matrix * c_apart + (row + line) * c_step + column + x;
    *reinterpret_cast<uint2*>(at) = make_uint2(pair<T>(sum.x, sum.y), pair<T>(sum.z, sum.w));
  }
  join_cluster<SPLIT>();
}
