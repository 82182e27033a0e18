// y [batch, rows] = x [batch, depth] W^T on tensor cores, W [rows, depth] of 8 or 16 bits, by blocks that stay.
//
// A cluster goes through tiles of 16 rows; its warps share the depth, each with boxes of 128 bytes a row. So what part
// of x belongs to the boxes of a warp is the same for all tiles: it is read once and stays in registers. Of the order of
// the depth in a box, and of its rows, only that matters that W and x, W and y agree.
#include "ring.cuh"

#ifndef WARPS_OF_A_BLOCK
#define WARPS_OF_A_BLOCK 8
#endif
constexpr int WARPS = WARPS_OF_A_BLOCK;
// Where no other launch has room on the SM, boxes of a tile are asked for at once: 512 bytes that follow each other.
constexpr bool ASK_TOGETHER = WARPS == 16;

struct Output {
  int64 batch_step, row_step;
};

// (word & mask) | bits in one instruction, which the compiler makes two of where both are constants.
__device__ unsigned int keep_and_set(unsigned int word, unsigned int mask, unsigned int bits) {
  unsigned int made;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(made) : "r"(word), "r"(mask), "r"(bits));
  return made;
}

// How 16 bytes of COUNT weights become pairs of T, two for each product.
struct Plain {
  static constexpr int COUNT = 8;
  template <typename T> static __device__ void decode(const uint4& held, int product, unsigned int (&pairs)[2]) {
    pairs[0] = pick(held, 2 * product);
    pairs[1] = pick(held, 2 * product + 1);
  }
};

struct Int8 {
  static constexpr int COUNT = 16;
  template <typename T> static __device__ void decode(const uint4& held, int product, unsigned int (&pairs)[2]) {
    unsigned int word = pick(held, product);
    if constexpr (IS_F16<T>) {
      // 0x6400 + b is 1024 + b as f16: bytes of either sign are shifted by 128 first, and 1152 is taken away after.
      word ^= 0x80808080u;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        pairs[i] = __byte_perm(word, 0x64646464u, i ? 0x4342 : 0x4140);
        asm("sub.f16x2 %0, %0, %1;" : "+r"(pairs[i]) : "r"(0x64806480u));
      }
    } else {
      // Bits 0 to 6 beside 128 are 128 + b, exact; bit 7 beside -128 makes -256 of it. Their sum is the number.
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        unsigned int both = __byte_perm(word, 0, i ? 0x4342 : 0x4140);
        unsigned int low = keep_and_set(both, 0x007f007fu, 0x43004300u);
        unsigned int high = keep_and_set(both, 0x00800080u, 0xc300c300u);
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pairs[i]) : "r"(low), "r"(0x3f803f80u), "r"(high));
      }
    }
  }
};

struct E4m3 {
  static constexpr int COUNT = 16;
  // As f16 by the instruction of compute capability 8.9, exact; bf16 takes it on, exact as well.
  template <typename T> static __device__ void decode(const uint4& held, int product, unsigned int (&pairs)[2]) {
    unsigned int word = pick(held, product);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // Halves of a register, which takes no instruction, where a shift would be one.
      if (i == 0)
        asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, low; }" : "=r"(pairs[0]) : "r"(word));
      else
        asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, high; }"
            : "=r"(pairs[1])
            : "r"(word));
      if constexpr (!IS_F16<T>) {
        float2 values = unpack<f16>(pairs[i]);
        pairs[i] = pair_bf16(values.x, values.y);
      }
    }
  }
};

// What can be multiplied as f16 takes a third of the instructions to unpack weights of 8 bits to. 8 bits of bf16 are
// exact in f16 from 2^-14 on, and times a power of two that makes the largest 2^15 or more most x are: whether a warp's
// are is looked up. Then they become f16, and `back` what their products are to be multiplied with.
template <int COUNT> __device__ bool narrow(unsigned int (&pairs)[COUNT], float& back) {
  unsigned int mosts[2] = {}, leasts[2] = {0xffffffffu, 0xffffffffu};  // two chains: each waits for itself
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    unsigned int size = pairs[i] & 0x7fff7fffu;
    asm("max.u16x2 %0, %0, %1;" : "+r"(mosts[i % 2]) : "r"(size));
    // Less one: zeros, which are exact, become the largest.
    asm("{ .reg .b32 less; add.u16x2 less, %1, %2; min.u16x2 %0, %0, less; }"
        : "+r"(leasts[i % 2])
        : "r"(size), "r"(0xffffffffu));
  }
  unsigned int most = mosts[0], least = leasts[0];
  asm("max.u16x2 %0, %0, %1;" : "+r"(most) : "r"(mosts[1]));
  asm("min.u16x2 %0, %0, %1;" : "+r"(least) : "r"(leasts[1]));
  most = __reduce_max_sync(0xffffffffu, max(most & 0xffff, most >> 16));
  least = __reduce_min_sync(0xffffffffu, min(least & 0xffff, least >> 16));
  int exponent = max(most >> 7, 30);
  if (exponent == 255 || least + 1 < (exponent - 29) << 7) return false;
  unsigned int shift = (-(exponent - 30) * 128 & 0xffff) * 0x10001u;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    unsigned int size;
    asm volatile("and.b32 %0, %1, 0x7fff7fff;" : "=r"(size) : "r"(pairs[i]));  // again, not kept in a register
    asm("{ .reg .b32 less; add.s16x2 less, %0, %1; max.s16x2 %0, less, %2; }" : "+r"(size) : "r"(shift), "r"(0));
    pairs[i] = keep_and_set(pairs[i], 0x80008000u, size << 3);
  }
  back = __int_as_float(exponent - 15 << 23);
  return true;
}

// Every STEP-th of four floats to shared memory of a block of the cluster, and as many bytes less to wait for at its
// barrier: what is written is seen by who waits there, without a fence.
template <int STEP> __device__ void send(unsigned int to, unsigned int barrier, const float* values) {
  if constexpr (STEP == 1)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(to),
                 "r"(barrier), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
                 : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%2, %3}, [%1];" ::"r"(to),
                 "r"(barrier), "f"(values[0]), "f"(values[2])
                 : "memory");
}

// The address in a block of the cluster of what has this address here.
template <int CLUSTER> __device__ unsigned int place_in(unsigned int address, int block) {
  unsigned int there = address;
  if constexpr (CLUSTER > 1) asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}

// What is multiplied: x as it is, or made narrow.
template <typename T> struct Chosen {
  typedef T type;
};

// A cluster has tiles of 16 rows, and a warp BOXES boxes of 16 x 128 bytes of weights of each; AHEAD tiles are on their
// way. Inputs are 8 COLUMNS; blockIdx.y counts such groups; inputs beyond the last are the last again. What the warps
// make of a tile is added while they are at the next ones, half of it by each block. `ready` is as in gemv_rows. `early`
// tiles beyond those on their way come to L2 at the beginning, while the launch waits for what is ahead.
//
// What is allowed here: a lane reads half a sector of x, and the other half with its next load, out of L1 (SW101,
// SW105). What keeps DRAM busy are the boxes on their way, 64 KiB a block, and 128 of one of 16 warps (SW402).
template <typename W, typename T, int COLUMNS, int BOXES, int AHEAD, int CLUSTER, int BLOCKS>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(32 * WARPS, BLOCKS)
gemv_ring(  // sectorwise: allow SW402
    const __grid_constant__ TensorMap weights, const T* x, const float* scales, T* y, int rows, int depth, int64 x_row,
    int64 scale_step, Output output, int batch, int ready, int early) {
  static_assert(CLUSTER == 1 || CLUSTER == 2);
  constexpr int COUNT = W::COUNT, LINE = 8 * COUNT, STAGES = BOXES * AHEAD;
  constexpr int SHARE = 4 / CLUSTER, PART = 32 * SHARE, TILE = COLUMNS * PART;  // sums of a lane, 8 inputs, a tile
  constexpr int TOGETHER = 256 / TILE, SUMS = TOGETHER * TILE, ADDENDS = CLUSTER * WARPS;
  constexpr int CHAINS = 2, PAIRS = BOXES * COUNT;
  extern __shared__ __align__(1024) unsigned char rings[];
  __shared__ unsigned long long barriers[WARPS * STAGES], added[2];
  float* partial = reinterpret_cast<float*>(rings + BOX_BYTES * STAGES * WARPS);  // [2][ADDENDS][SUMS]
  begin_next();
  int lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = lane / 4, place = lane % 4;
  int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER, tiles = (rows + 15) / 16;
  int count = (tiles - first + step - 1) / step;
  int begin = LINE * BOXES * (rank * WARPS + warp);
  Ring<STAGES> ring = {address_of(rings) + BOX_BYTES * STAGES * warp, address_of(barriers) + 8 * STAGES * warp};
  auto expect_sums = [&](int number) {
    int given = min(count - number * TOGETHER, TOGETHER);
    if (given > 0) expect_bytes(address_of(&added[number % 2]), given * 4 * ADDENDS * TILE);
  };
  if (threadIdx.x == 0)
    for (int turn = 0; turn < 2; ++turn) {
      make_barrier(address_of(&added[turn]), 1);
      expect_sums(turn);
    }
  // Of a tile a block adds SHARE of the four sums that lanes have: both inputs of two rows, or one. They lie so that 16
  // threads that follow each other have all rows of an input.
  struct Sum {
    int thread, row, input;
    bool there;
  };
  auto find_sum = [&](int number) {
    unsigned int thread = threadIdx.x;
    asm volatile("" : "+r"(thread));  // what follows from it needs no registers meanwhile
    unsigned int value = thread % SHARE * CLUSTER + rank, from = thread % PART / SHARE;
    int row = 16 * (first + (number * TOGETHER + thread / TILE) * step) + from % 8 + value / 2 * 8;
    int input = (int)blockIdx.y * (8 * COLUMNS) + 8 * (thread % TILE / PART) + from / 8 * 2 + value % 2;
    return Sum{(int)thread, row, input, thread < SUMS && row < rows && input < batch};
  };
  auto find_scale = [&](int number) {
    Sum sum = find_sum(number);
    return scales != nullptr && sum.there ? scales[sum.row * scale_step] : 1.0f;
  };
  bool elected = is_elected();
  if (elected) ring.make();
  if (!ready) await_previous();
  // A box at once, the others not before it is there: meanwhile they come to L2, and what the launch ahead now reads of x
  // has the way from L2 to the SMs for itself.
  if (elected) {
    ring.fetch(0, weights, begin, 16 * first);
#pragma unroll 1
    for (int ahead = 0; ahead < min(count, AHEAD + early); ++ahead)
#pragma unroll
      for (int box = 0; box < BOXES; ++box)
        if (ahead + box > 0) fetch_ahead(weights, begin + LINE * box, 16 * (first + ahead * step));
    ring.await(0, 0);
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ++ahead)
#pragma unroll
      for (int box = 0; box < BOXES; ++box)
        if (ahead + box > 0 && ahead < count)
          ring.fetch(ahead * BOXES + box, weights, begin + LINE * box, 16 * (first + ahead * step));
  }
  float scale = find_scale(0);
  if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  await_previous();
  unsigned int given[COLUMNS][PAIRS];
  auto read_inputs = [&](int c) {
    int input = min((int)blockIdx.y * (8 * COLUMNS) + 8 * c + group, batch - 1);
    const T* from = x + input * x_row;
#pragma unroll
    for (int i = 0; i < PAIRS; i += 4) {
      int at = begin + 4 * COUNT * (2 * i / COUNT) + COUNT * place + 2 * i % COUNT;
      uint4 line = make_uint4(0, 0, 0, 0);
      if (at < depth) line = *reinterpret_cast<const uint4*>(from + at);  // sectorwise: allow SW101, SW105
      given[c][i] = line.x, given[c][i + 1] = line.y, given[c][i + 2] = line.z, given[c][i + 3] = line.w;
    }
  };
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) read_inputs(c);
  int line = line_of(group);
  unsigned int cell = 128 * line + 16 * (place ^ line);
  unsigned int sent = address_of(partial) + 4 * (rank * WARPS + warp) * SUMS + 4 * SHARE * (8 * place + line);
  auto add_up = [&](int number) {
    Sum sum = find_sum(number);
    T* to = y + (sum.input * output.batch_step + sum.row * output.row_step);
    wait_for(address_of(&added[number % 2]), number / 2 % 2);
    if (threadIdx.x == 0) expect_sums(number + 2);
    if (!sum.there) return;
    float all[4] = {};
#pragma unroll
    for (int w = 0; w < ADDENDS; ++w) all[w % 4] += partial[(number % 2 * ADDENDS + w) * SUMS + sum.thread];
    *to = round_to<T>((all[0] + all[1] + all[2] + all[3]) * scale);
    scale = find_scale(number + 1);
  };
  if constexpr (CLUSTER > 1)
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  else
    __syncthreads();
  float back[COLUMNS];
  auto multiply = [&](auto chosen) {
    typedef typename decltype(chosen)::type U;
    constexpr bool NARROWED = IS_F16<U> && !IS_F16<T>;
    for (int number = 0; number < count; ++number) {
      int into = number % AHEAD * BOXES, next = 16 * (first + (number + AHEAD) * step);
      unsigned int parity = number / AHEAD % 2;
      float sums[COLUMNS][CHAINS][4] = {};  // mma waits long for its own sums
#pragma unroll
      for (int box = 0; box < BOXES; ++box) {
        unsigned int from = ring.await(into + box, parity) + cell;
        uint4 held[2][2] = {{load_shared(from), load_shared(from + 1024)},
                            {load_shared(from ^ 64), load_shared((from ^ 64) + 1024)}};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int i = 0; i < COUNT / 4; ++i) {
            unsigned int top[2], low[2];
            W::template decode<U>(held[half][0], i, top);
            W::template decode<U>(held[half][1], i, low);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
              const unsigned int* b = given[c] + (box * 2 + half) * (COUNT / 2) + 2 * i;
              multiply_add<U>(sums[c][i % CHAINS], top[0], low[0], top[1], low[1], b[0], b[1]);
            }
          }
          if (half == 1) continue;
          // The next box, not before all of this one is in registers: the request hangs on what was read, of which it
          // takes nothing, but that the compiler does not know.
          unsigned int last = held[0][0].w | held[0][1].w | held[1][0].w | held[1][1].w;
          __syncwarp();
          if (ASK_TOGETHER && box < BOXES - 1) continue;
          if (elected && next + (int)(last & depth >> 31) < rows)
#pragma unroll
            for (int b = ASK_TOGETHER ? 0 : box; b <= box; ++b)
              ring.fetch(into + b, weights, begin + LINE * b, next);
        }
      }
      int turn = number / TOGETHER % 2, within = number % TOGETHER;
      if (within == 0 && number) add_up(number / TOGETHER - 1);
      unsigned int to = sent + 4 * (turn * ADDENDS * SUMS + within * TILE);
      unsigned int barrier = address_of(&added[turn]);
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c) {
        float both[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          both[i] = sums[c][0][i] + sums[c][1][i];
          if (NARROWED) both[i] *= back[c];
        }
#pragma unroll
        for (int block = 0; block < CLUSTER; ++block)
          send<CLUSTER>(place_in<CLUSTER>(to + 4 * PART * c, block), place_in<CLUSTER>(barrier, block), both + block);
      }
    }
  };
  if constexpr (COUNT == 16 && !IS_F16<T>) {
    // Inputs of a column are narrowed while those of the next are on their way.
    bool narrowed = true;
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) narrowed = narrow(given[c], back[c]) && narrowed;
    if (narrowed) {
      multiply(Chosen<f16>());
    } else {
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c) read_inputs(c);
      multiply(Chosen<T>());
    }
  } else {
    multiply(Chosen<T>());
  }
  // Then all sums have come that others send to this block: it may end before they do.
  add_up((count - 1) / TOGETHER);
}
