// y [batch, rows] = x [batch, depth] W^T on tensor cores, W [rows, depth] of 8 bits, by blocks that stay.
//
// A cluster goes through tiles of 16 rows; its warps share the depth, each with boxes of 128 bytes a row. So the part of
// x that belongs to a warp's boxes is the same for all tiles: it is read once and stays in registers. Of the order of the
// depth in a box, and of its rows, only that matters that W and x, W and y agree.
#include "ring.cuh"

struct Output {
  int64 batch_step, row_step;
};

// (word & mask) | bits in one instruction, which the compiler makes two of where both are constants.
__device__ unsigned int keep_and_set(unsigned int word, unsigned int mask, unsigned int bits) {
  unsigned int made;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(made) : "r"(word), "r"(mask), "r"(bits));
  return made;
}

// How 16 bytes of COUNT weights become pairs of T, two for each product, and how the elements of x that belong to them,
// four as they lie, are arranged.
template <typename T> struct Plain {
  static constexpr int COUNT = 8;
  static __device__ void decode(const uint4& held, int product, unsigned int (&pairs)[2]) {
    pairs[0] = pick(held, 2 * product);
    pairs[1] = pick(held, 2 * product + 1);
  }
  static __device__ void arrange(unsigned int&, unsigned int&) {}
};

template <typename T> struct Int8 {
  static constexpr int COUNT = 16;
  // Bytes 0 and 2, then 1 and 3. 0x6400 + b is 1024 + b as f16: bytes of either sign are shifted by 128 first.
  static __device__ void decode(const uint4& held, int product, unsigned int (&pairs)[2]) {
    unsigned int word = pick(held, product);
    if constexpr (IS_F16<T>) {
      unsigned int shifted = word ^ 0x80808080u;
      pairs[0] = keep_and_set(shifted, 0x00ff00ffu, 0x64006400u);
      pairs[1] = keep_and_set(shifted >> 8, 0x00ff00ffu, 0x64006400u);
      asm("sub.f16x2 %0, %0, %1;" : "+r"(pairs[0]) : "r"(0x64806480u));
      asm("sub.f16x2 %0, %0, %1;" : "+r"(pairs[1]) : "r"(0x64806480u));
    } else {
      // Bits 0 to 6 beside 128 are 128 + b, exact; bit 7 beside -128 makes -256 of it. Their sum is the number.
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        unsigned int both = word >> 8 * i;
        unsigned int low = keep_and_set(both, 0x007f007fu, 0x43004300u);
        unsigned int high = keep_and_set(both, 0x00800080u, 0xc300c300u);
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pairs[i]) : "r"(low), "r"(0x3f803f80u), "r"(high));
      }
    }
  }
  static __device__ void arrange(unsigned int& first, unsigned int& second) {
    unsigned int even = __byte_perm(first, second, 0x5410), odd = __byte_perm(first, second, 0x7632);
    first = even;
    second = odd;
  }
};

template <typename T> struct E4m3 {
  static constexpr int COUNT = 16;
  // As f16 by the instruction of compute capability 8.9, exact; bf16 takes it on, exact as well.
  static __device__ void decode(const uint4& held, int product, unsigned int (&pairs)[2]) {
    unsigned int word = pick(held, product);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pairs[i]) : "h"((unsigned short)(word >> 16 * i)));
      if constexpr (!IS_F16<T>) {
        float2 values = unpack<f16>(pairs[i]);
        pairs[i] = pair_bf16(values.x, values.y);
      }
    }
  }
  static __device__ void arrange(unsigned int&, unsigned int&) {}
};

// COUNT floats to shared memory of a block of the cluster, at the place that has this address here, and as many bytes less
// to wait for at its barrier: what is written is seen by who waits there, without a fence.
template <int COUNT>
__device__ void send(unsigned int to, unsigned int barrier, int block, const float* values) {
  unsigned int there, its;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(block));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its) : "r"(barrier), "r"(block));
  if constexpr (COUNT == 4)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(there),
                 "r"(its), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
                 : "memory");
  else if constexpr (COUNT == 2)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%2, %3}, [%1];" ::"r"(there),
                 "r"(its), "f"(values[0]), "f"(values[1])
                 : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %2, [%1];" ::"r"(there), "r"(its),
                 "f"(values[0])
                 : "memory");
}

// A cluster has tiles of 16 rows, and a warp BOXES boxes of 16 x 128 weights of each, STAGES of them on their way. Inputs
// are 8 COLUMNS; blockIdx.y counts such groups; inputs beyond the last are the last again. What the warps make of a
// tile is added while they are at the next one. `ready` is as in gemv_rows.
template <template <typename> class WEIGHTS, typename T, int COLUMNS, int BOXES, int STAGES, int WARPS, int CLUSTER, int BLOCKS>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(32 * WARPS, BLOCKS)
gemv_ring(const __grid_constant__ TensorMap weights, const T* x, const float* scales, T* y, int rows, int depth,
          int64 x_row, int64 scale_step, Output output, int batch, int ready) {
  typedef WEIGHTS<T> W;
  constexpr int COUNT = W::COUNT, LINE = 8 * COUNT, APART = LINE * CLUSTER * WARPS;
  constexpr int SHARE = 4 / CLUSTER, PART = 32 * SHARE, TOLD = 4 * CLUSTER * WARPS * COLUMNS * PART;
  extern __shared__ __align__(1024) unsigned char rings[];
  __shared__ __align__(16) float partial[2][CLUSTER * WARPS][COLUMNS][PART];
  __shared__ unsigned long long barriers[WARPS * STAGES], added[2];
  begin_next();
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
  int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER, tiles = (rows + 15) / 16;
  int begin = LINE * (rank * WARPS + warp);
  if (threadIdx.x == 0)
    for (int turn = 0; turn < 2; ++turn) {
      make_barrier(address_of(&added[turn]), 1);
      expect_bytes(address_of(&added[turn]), TOLD);
    }
  Ring<STAGES> ring(address_of(rings) + BOX_BYTES * STAGES * warp, address_of(barriers) + 8 * STAGES * warp, lane);
  int next_tile = first, next_box = 0;
  auto fetch_next = [&](int into) {
    if (next_tile < tiles) {
      if (lane == 0) ring.fetch(into, weights, begin + APART * next_box, 16 * next_tile);
      if (++next_box == BOXES) {
        next_box = 0;
        next_tile += step;
      }
    }
  };
  if (!ready) await_previous();
#pragma unroll
  for (int s = 0; s < STAGES; ++s) fetch_next(s);
  await_previous();
  join_cluster<CLUSTER>();
  unsigned int given[BOXES][2][COLUMNS][COUNT / 2];
#pragma unroll
  for (int box = 0; box < BOXES; ++box)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c) {
        int at = begin + APART * box + 4 * COUNT * half + COUNT * place;
        int input = min((int)blockIdx.y * (8 * COLUMNS) + 8 * c + group, batch - 1);
        const uint4* from = reinterpret_cast<const uint4*>(x + input * x_row + min(at, depth - COUNT));
        unsigned int(&held)[COUNT / 2] = given[box][half][c];
#pragma unroll
        for (int i = 0; i < COUNT / 8; ++i) {
          uint4 line = from[i];
          if (at >= depth) line = make_uint4(0, 0, 0, 0);
          held[4 * i] = line.x, held[4 * i + 1] = line.y, held[4 * i + 2] = line.z, held[4 * i + 3] = line.w;
        }
      }
#pragma unroll
  for (int box = 0; box < BOXES; ++box)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
        for (int i = 0; i < COUNT / 2; i += 2) W::arrange(given[box][half][c][i], given[box][half][c][i + 1]);
  int line = line_of(group);
  unsigned int cell = 128 * line + 16 * (place ^ line);
  // Of a tile a block adds SHARE of the four sums that lanes have: both inputs of a row, or one of them.
  auto add_up = [&](int tile, int number) {
    unsigned int barrier = address_of(&added[number % 2]);
    wait_for(barrier, number / 2 % 2);
    if (threadIdx.x == 0) expect_bytes(barrier, TOLD);
    for (int at = threadIdx.x; at < COLUMNS * PART; at += 32 * WARPS) {
      int from = at % PART / SHARE, value = rank * SHARE + at % SHARE, part = at / PART;
      int row = 16 * tile + line_of(from / 4) + value / 2 * 8;
      int input = (int)blockIdx.y * (8 * COLUMNS) + 8 * part + from % 4 * 2 + value % 2;
      if (row >= rows || input >= batch) continue;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < CLUSTER * WARPS; ++w) sum += partial[number % 2][w][part][at % PART];
      if (scales != nullptr) sum *= scales[row * scale_step];
      y[input * output.batch_step + row * output.row_step] = round_to<T>(sum);
    }
  };
  int number = 0;
  for (int tile = first; tile < tiles; tile += step, ++number) {
    float sums[COLUMNS][2][4] = {};
#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
      unsigned int from = ring.await() + cell;
      uint4 held[2][2] = {{load_shared(from), load_shared(from + 1024)},
                          {load_shared(from ^ 64), load_shared((from ^ 64) + 1024)}};
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
          unsigned int top[2], low[2];
          W::decode(held[half][0], i, top);
          W::decode(held[half][1], i, low);
#pragma unroll
          for (int c = 0; c < COLUMNS; ++c)
            multiply_add<T>(sums[c][i % 2], top[0], low[0], top[1], low[1], given[box][half][c][2 * i],
                            given[box][half][c][2 * i + 1]);
        }
      __syncwarp();
      fetch_next(ring.stage);
      ring.advance();
    }
    if (number) add_up(tile - step, number - 1);
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      float both[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) both[i] = sums[c][0][i] + sums[c][1][i];
#pragma unroll
      for (int block = 0; block < CLUSTER; ++block) {
        const float* to = &partial[number % 2][rank * WARPS + warp][c][SHARE * lane];
        send<SHARE>(address_of(to), address_of(&added[number % 2]), block, both + SHARE * block);
      }
    }
  }
  add_up(first + (number - 1) * step, number - 1);
  join_cluster<CLUSTER>();
}
