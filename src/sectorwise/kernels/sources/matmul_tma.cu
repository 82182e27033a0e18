// C [m, n] = A [m, k] B [k, n] in 16-bit floats, one or a batch, for compute capability 9.0a; sums are in float.
#include "hopper.cuh"

constexpr int DEPTH = 64, LINE = 128;  // of the depth a stage; bytes of a line in shared memory
constexpr int BOX = 64 * LINE;         // bytes of 64 lines

// Lines of a box of the result: all of 64 columns, or the part of them that ACROSS has whole ones of.
template <int ACROSS> constexpr int RESULT_LINES = ACROSS % 64 == 0 ? 64 : ACROSS % 32 == 0 ? 32 : 16;

// Shared memory: stages, two boxes of results a warpgroup, barriers. Where a block has no more than ONE tile, results take
// the place of that warpgroup's part of A.
template <int DOWN, int ACROSS, int STAGES, bool B_BY_ROWS, bool ONE> struct Memory {
  static constexpr int A = DOWN * LINE, B = (B_BY_ROWS ? (ACROSS + 63) / 64 * 64 : ACROSS) * LINE, STAGE = A + B;
  static constexpr int RESULTS = ONE ? 0 : STAGES * STAGE, GROUP = ONE ? BOX : 2 * BOX, NEXT = ONE ? STAGE : BOX;
  static constexpr int BARRIERS = STAGES * STAGE + (ONE ? 0 : DOWN / 64 * 2 * BOX);
  static_assert(!ONE || (ACROSS + 63) / 64 <= STAGES);
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

// This block's part of a stage of an operand for all blocks of the cluster: of the lines where the depth goes along them,
// else of boxes of 64 of the other axis, or of the depth where a part is no whole boxes.
template <int EXTENT, int CLUSTER, bool DEPTH_IN_LINES>
__device__ void fetch(unsigned int to, const TensorMap& map, int at, int depth, int matrix, int rank,
                      unsigned int barrier) {
  constexpr int SHARE = EXTENT / CLUSTER;
  if constexpr (CLUSTER == 1) rank = 0;
  int from = rank * SHARE;
  if constexpr (DEPTH_IN_LINES)
    fetch_box_for_all<CLUSTER>(to + from * LINE, map, depth, at + from, matrix, barrier);
  else if constexpr (SHARE % 64 == 0)
#pragma unroll
    for (int i = 0; i < SHARE; i += 64)
      fetch_box_for_all<CLUSTER>(to + (from + i) * LINE, map, at + from + i, depth, matrix, barrier);
  else
#pragma unroll
    for (int i = 0; i < EXTENT; i += 64)
      fetch_box_for_all<CLUSTER>(to + i * LINE + rank * (BOX / CLUSTER), map, at + i,
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

// Wait until the next place for results is free: the one of two that all but the last store have read, or the first of
// many that all products have read.
template <bool ONE> __device__ void await_place(int box, int group) {
  if (ONE && box) return;
  if (!ONE && threadIdx.x % 128 == 0) await_reads<1>();
  join_warpgroup(1 + group);
}
__device__ void turn_place(int& turn, bool one) { turn = one ? turn + 1 : turn ^ 1; }

// A warpgroup's 64 rows of a tile, a box of 64 columns after the other, through places in shared memory, NEXT bytes
// apart: `turn` says which is next. A piece of 16 bytes stands at a column that is exclusive-ored with its line, as the
// map has it.
template <typename T, int NEXT, bool ONE, int EIGHTS>
__device__ void store_tile(float (&sums)[EIGHTS][4], const TensorMap& c, int row, int column, int matrix,
                           unsigned int places, int& turn, int group) {
  static_assert(EIGHTS % 8 == 0);
  int lane = threadIdx.x % 32, line = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
  for (int box = 0; box < EIGHTS / 8; ++box) {
    await_place<ONE>(box, group);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&low)[4] = sums[8 * box + 2 * i], (&up)[4] = sums[8 * box + 2 * i + 1];
      store_four(places + turn * NEXT + line * LINE + ((2 * i + lane / 16) ^ line % 8) * 16, pair<T>(low[0], low[1]),
                 pair<T>(low[2], low[3]), pair<T>(up[0], up[1]), pair<T>(up[2], up[3]));
    }
    publish();
    join_warpgroup(1 + group);
    if (threadIdx.x % 128 == 0) {
      store_box(c, column + 64 * box, row, matrix, places + turn * NEXT);
      commit_stores();
    }
    turn_place(turn, ONE);
  }
}

// The same where C lies by columns: a line of a box has 64 rows of one column.
template <typename T, int NEXT, bool ONE, int EIGHTS>
__device__ void store_turned(float (&sums)[EIGHTS][4], const TensorMap& c, int row, int column, int matrix,
                             unsigned int places, int& turn, int group) {
  constexpr int LINES = RESULT_LINES<8 * EIGHTS>;
  int lane = threadIdx.x % 32, line = lane / 16 * 8 + lane % 8, piece = threadIdx.x / 32 % 4 * 2 + lane / 8 % 2;
#pragma unroll
  for (int from = 0; from < EIGHTS; from += 8) {
    await_place<ONE>(from, group);
#pragma unroll
    for (int i = 0; i < 4 && from + 2 * i < EIGHTS; ++i) {
      float(&low)[4] = sums[from + 2 * i], (&up)[4] = sums[from + 2 * i + 1];
      store_four_turned(places + turn * NEXT + (16 * i + line) * LINE + (piece ^ line % 8) * 16,
                        pair<T>(low[0], low[1]), pair<T>(low[2], low[3]), pair<T>(up[0], up[1]),
                        pair<T>(up[2], up[3]));
    }
    publish();
    join_warpgroup(1 + group);
    if (threadIdx.x % 128 == 0) {
#pragma unroll
      for (int i = 0; i < 64 && 8 * from + i < 8 * EIGHTS; i += LINES)
        store_box(c, row, column + 8 * from + i, matrix, places + turn * NEXT + i * LINE);
      commit_stores();
    }
    turn_place(turn, ONE);
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
// cluster lie one below the other and fetch B together, or BESIDE each other and fetch A together. Where TURNED, C is given by columns. `parts` and `flags` are
// what warpgroups hand on: a tile's sums and a word each, words 0 before and after. ONE: no block has two tiles.
template <typename T, int DOWN, int ACROSS, int STAGES, int CLUSTER, bool BESIDE, bool A_BY_ROWS, bool B_BY_ROWS,
          bool TURNED, bool ONE>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(DOWN * 2 + 128, 1)
matmul_tma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
           const __grid_constant__ TensorMap c, float4* __restrict__ parts, unsigned int* __restrict__ flags,
           const __grid_constant__ Work work) {
  typedef Memory<DOWN, ACROSS, STAGES, B_BY_ROWS, ONE> Place;
  constexpr int WARPGROUPS = DOWN / 64, EIGHTS = ACROSS / 8, LEFT = BESIDE ? CLUSTER : 1, RIGHT = CLUSTER / LEFT;
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
        int row = (tile.x * RIGHT + (BESIDE ? 0 : rank)) * DOWN, in_a = tile.z * work.a_step;
        int column = (tile.y * LEFT + (BESIDE ? rank : 0)) * ACROSS, in_b = tile.z * work.b_step;
        for (int t = pieces.from; t < pieces.to; ++t) {
          unsigned int left = base + stage * Place::STAGE, barrier = full + 8 * stage;
          wait_for(empty + 8 * stage, parity ^ 1);
          expect_bytes(barrier, Place::STAGE);
          fetch<DOWN, LEFT, A_BY_ROWS>(left, a, row, t * DEPTH, in_a, rank, barrier);
          fetch<ACROSS, RIGHT, !B_BY_ROWS>(left + Place::A, b, column, t * DEPTH, in_b, rank, barrier);
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
      int row = (tile.x * RIGHT + (BESIDE ? 0 : rank)) * DOWN + group * 64;
      int column = (tile.y * LEFT + (BESIDE ? rank : 0)) * ACROSS;
      unsigned int places = base + Place::RESULTS + group * Place::GROUP;
      if constexpr (TURNED)
        store_turned<T, Place::NEXT, ONE>(sums, c, row, column, tile.z, places, turn, group);
      else
        store_tile<T, Place::NEXT, ONE>(sums, c, row, column, tile.z, places, turn, group);
    }
    if (threadIdx.x % 128 == 0) await_reads<0>();
  }
  join_cluster<CLUSTER>();
}

// Few rows or columns: a cluster has 64 x ACROSS of C, each of its blocks SPLIT-th of the depth, so that all SMs have
// something to fetch. What they made is added through the shared memory of the cluster, where it lies as C does.
template <typename T, int ACROSS, int STAGES, int SPLIT, bool A_BY_ROWS, bool B_BY_ROWS, bool TURNED>
__global__ void __cluster_dims__(SPLIT, 1, 1) __launch_bounds__(160)
matmul_split(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, T* __restrict__ c, int m, int n,
             int64 c_step, int64 c_apart, int steps, int tiles_down, int tiles_across, int a_step, int b_step) {
  constexpr int A = BOX, STAGE = A + (B_BY_ROWS ? (ACROSS + 63) / 64 * 64 : ACROSS) * LINE;
  constexpr int LINES = TURNED ? ACROSS : 64, ALONG = TURNED ? 64 : ACROSS, WIDTH = ALONG + (TURNED ? 4 : 8);
  static_assert(LINES * WIDTH * 4 <= STAGES * STAGE && LINES * ALONG / 4 % SPLIT == 0);
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned int base = (address_of(memory) + 1023) & ~1023u;
  unsigned int full = base + STAGES * STAGE, empty = full + 8 * STAGES;
  int rank = SPLIT > 1 ? rank_in_cluster() : 0, tile = blockIdx.x / SPLIT;
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
      fetch<64, 1, A_BY_ROWS>(left, a, row, t * DEPTH, in_a, 0, barrier);
      fetch<ACROSS, 1, !B_BY_ROWS>(left + A, b, column, t * DEPTH, in_b, 0, barrier);
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
    int mine = warp * 16 + lane / 4, first = lane % 4 * 2;
    unsigned int at = base + (TURNED ? first * WIDTH + mine : mine * WIDTH + first) * 4;
#pragma unroll
    for (int i = 0; i < ACROSS / 8; ++i) {
      if constexpr (TURNED) {
        unsigned int next = at + 8 * i * WIDTH * 4;
        store_one(next, sums[i][0]), store_one(next + WIDTH * 4, sums[i][1]);
        store_one(next + 32, sums[i][2]), store_one(next + WIDTH * 4 + 32, sums[i][3]);
      } else {
        store_pair(at + 32 * i, sums[i][0], sums[i][1]);
        store_pair(at + 32 * i + 8 * WIDTH * 4, sums[i][2], sums[i][3]);
      }
    }
  }
  __syncwarp();
  share_with_cluster();
  constexpr int QUARTERS = ALONG / 4, SHARE = LINES * QUARTERS / SPLIT, TURNS = (SHARE + 159) / 160;
  float4 added[TURNS];
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn) {
    // Past the end, what is there is read again: all loads are on their way before one is waited for.
    int number = rank * SHARE + min(turn * 160 + (int)threadIdx.x, SHARE - 1);
    unsigned int place = base + (number / QUARTERS * WIDTH + number % QUARTERS * 4) * 4;
    added[turn] = load_from(place, 0);
#pragma unroll
    for (int block = 1; block < SPLIT; ++block) {
      float4 part = load_from(place, block);
      added[turn].x += part.x, added[turn].y += part.y, added[turn].z += part.z, added[turn].w += part.w;
    }
  }
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn) {
    int number = turn * 160 + threadIdx.x, line = (rank * SHARE + number) / QUARTERS;
    int x = (rank * SHARE + number) % QUARTERS * 4;
    int down = TURNED ? column + line : row + line, across = TURNED ? row + x : column + x;
    if (number >= SHARE || down >= m || across >= n) continue;
    uint2 words = make_uint2(pair<T>(added[turn].x, added[turn].y), pair<T>(added[turn].z, added[turn].w));
    *reinterpret_cast<uint2*>(c + matrix * c_apart + down * c_step + across) = words;
  }
  join_cluster<SPLIT>();
}
