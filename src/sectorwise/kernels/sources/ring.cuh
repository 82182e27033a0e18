// A ring of boxes of a matrix in shared memory, for one warp: a lane asks for boxes by a tensor map, and all read them.
// What a warp alone fills and empties needs no barrier of the block.
#pragma once
#include "hopper.cuh"

// 16 lines of 128 bytes; 16 bytes of line r lie at their place exclusive-or r % 8 (PTX ISA, swizzle of 128 bytes).
constexpr int BOX_LINES = 16, BOX_BYTES = 128 * BOX_LINES;

// What `createpolicy.fractional.L2::evict_first` makes of 1.0: lines that are the first to give way.
constexpr unsigned long long GIVE_WAY = 0x12f0000000000000ull;

// A box that is read once, so that it is not x for which it makes room in L2.
__device__ void fetch_once(unsigned int to, const TensorMap& map, int x, int y, unsigned int barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(0), "r"(barrier), "l"(GIVE_WAY)
      : "memory");
}

// Have a box come to L2.
__device__ void fetch_ahead(const TensorMap& map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&map), "r"(x), "r"(y), "r"(0)
               : "memory");
}

// STAGES boxes from `boxes`, at a multiple of 1,024 bytes, and a barrier of 8 bytes each from `barriers`.
template <int STAGES> struct Ring {
  unsigned int boxes, barriers;

  // By one lane, before all else.
  __device__ void make() const {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) make_barrier(barriers + 8 * s, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  // By one lane: have the box at column x and line y come to a stage that nothing is read from any more.
  __device__ void fetch(int stage, const TensorMap& map, int x, int y) const {
    expect_bytes(barriers + 8 * stage, BOX_BYTES);
    fetch_once(boxes + BOX_BYTES * stage, map, x, y, barriers + 8 * stage);
  }

  // Until the box of a stage is there, the parity of how often it was there before; where it begins.
  __device__ unsigned int await(int stage, unsigned int parity) const {
    wait_for(barriers + 8 * stage, parity);
    return boxes + BOX_BYTES * stage;
  }
};

__device__ uint4 load_shared(unsigned int from) {
  uint4 held;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(held.x), "=r"(held.y), "=r"(held.z), "=r"(held.w)
               : "r"(from)
               : "memory");
  return held;
}

// Of the lines of a box those two that eight lanes read at once are four apart, so that they meet all banks.
__device__ int line_of(int group) { return group / 2 + group % 2 * 4; }

// One lane of the warp, the same each time.
__device__ bool is_elected() {
  unsigned int yes;
  asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(yes));
  return yes;
}
