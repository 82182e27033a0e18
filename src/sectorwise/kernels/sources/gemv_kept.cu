// y [batch, rows] = x [batch, depth] W^T on tensor cores for up to 16 inputs, W [rows, depth] of the type of x, where x
// fits the registers of a cluster: it is read once for all rows of a cluster, not once for 16 or 32.
//
// The warps of a cluster share the depth, 128 SLICES of it each; each keeps its part of x, goes through all tiles of 16
// rows of the cluster with its own ring of asynchronous copies in shared memory, and puts what it sums up aside. What
// MOST_TILES tiles gave is added at once.
#include "hopper.cuh"

struct Output {
  int64 batch_step, row_step;
};


// 16 bytes into shared memory, zeros where there are none.
__device__ void copy_async(unsigned int to, const uint4* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ void wait_for_copies() {
  __syncwarp();
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
  __syncwarp();
}
__device__ void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ void await_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

template <typename T, int SLICES, int STAGES, int MOST_TILES, int WARPS, int CLUSTER, int BLOCKS>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(32 * WARPS, BLOCKS)
gemv_kept(const uint4* weights, const T* x, T* y, int64 rows, int depth, unsigned int weights_row, int64 x_row,
          Output output, int batch, int ready) {
  extern __shared__ uint4 memory[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
  int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  float4* asides = reinterpret_cast<float4*>(memory + WARPS * STAGES * 256);  // [WARPS][MOST_TILES][64]
  float4* aside = asides + warp * (MOST_TILES * 64);
  const uint4* ring = memory + warp * (STAGES * 256);
  unsigned int ring_address = address_of(ring);
  int clusters = gridDim.x / CLUSTER, cluster = blockIdx.x / CLUSTER, begin = (rank * WARPS + warp) * SLICES * 128;
  int64 all = (rows - 1) / 16 + 1, first_tile = all * cluster / clusters;
  int tiles = (int)(all * (cluster + 1) / clusters - first_tile);

  int next_slice = 0, next_stage = 0;
  int64 next_row = first_tile * 16;
  int64 end_row = next_row + 16 * tiles;
  auto fill = [&]() {
    int at = begin / 8 + 16 * next_slice + lane % 16;
    bool inside = 8 * at < depth;
    if (next_row < end_row && begin + 128 * next_slice < depth) {
      unsigned int last = (unsigned int)min(rows - 1 - next_row, (int64)15);
      unsigned int to = ring_address + next_stage * 4096 + lane / 16 * 256;
      const uint4* from = weights + next_row * weights_row + at;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        unsigned int row = min((unsigned int)(2 * i + lane / 16), last);
        copy_async(to + 512 * i + (lane % 16 ^ lane / 16 * 4) * 16, from + (unsigned long long)row * weights_row, inside);
      }
    }
    commit_copies();
    if (++next_stage == STAGES) next_stage = 0;
    if (++next_slice < SLICES) return;
    next_slice = 0;
    next_row += 16;
  };
  let_next_begin();
  if (!ready) wait_for_previous();
#pragma unroll
  for (int s = 0; s < STAGES; ++s) fill();
  wait_for_previous();
  uint4 given[SLICES][4][2];
#pragma unroll
  for (int s = 0; s < SLICES; ++s)
#pragma unroll
    for (int l = 0; l < 4; ++l)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        int at = begin + 128 * s + 32 * l + 8 * place, input = min((int)blockIdx.y * 16 + 8 * c + group, batch - 1);
        given[s][l][c] = at < depth ? *reinterpret_cast<const uint4*>(x + input * x_row + at) : make_uint4(0, 0, 0, 0);
      }
  int stage = 0;
  for (int round = 0; round < tiles; round += MOST_TILES) {
    int here = min(MOST_TILES, tiles - round);
    if (round > 0) await_cluster();  // what was put aside has been taken
    for (int tile = 0; tile < here; ++tile) {
      float sums[2][4] = {};
#pragma unroll
      for (int s = 0; s < SLICES; ++s) {
        wait_for_copies<STAGES - 1>();
        if (begin + 128 * s < depth) {
#pragma unroll
          for (int l = 0; l < 4; ++l) {
            const uint4* held = ring + stage * 256 + 16 * group + ((place + group % 2 * 4) ^ (4 * l));
            uint4 upper = held[0], lower = held[128];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
              const uint4& b = given[s][l][c];
              multiply_add<T>(sums[c], upper.x, lower.x, upper.y, lower.y, b.x, b.y);
              multiply_add<T>(sums[c], upper.z, lower.z, upper.w, lower.w, b.z, b.w);
            }
          }
        }
        __syncwarp();
        fill();
        if (++stage == STAGES) stage = 0;
      }
#pragma unroll
      for (int c = 0; c < 2; ++c)
        aside[tile * 64 + 32 * c + lane] = make_float4(sums[c][0], sums[c][1], sums[c][2], sums[c][3]);
    }
    arrive_in_cluster();
    await_cluster();
    for (int number = threadIdx.x + rank * (32 * WARPS); number < here * 64; number += 32 * WARPS * CLUSTER) {
      float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
      for (int block = 0; block < CLUSTER; ++block)
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
          float4 part = CLUSTER > 1 ? load_from(address_of(asides + w * (MOST_TILES * 64) + number), block)
                                    : asides[w * (MOST_TILES * 64) + number];
          sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
      int64 row = (first_tile + round + number / 64) * 16 + number % 32 / 4;
      int64 input = (int64)blockIdx.y * 16 + number / 32 % 2 * 8 + number % 4 * 2;
      T* to = y + input * output.batch_step + row * output.row_step;
      if (input < batch && row < rows) to[0] = round_to<T>(sum.x);
      if (input + 1 < batch && row < rows) to[output.batch_step] = round_to<T>(sum.y);
      if (input < batch && row + 8 < rows) to[8 * output.row_step] = round_to<T>(sum.z);
      if (input + 1 < batch && row + 8 < rows) to[8 * output.row_step + output.batch_step] = round_to<T>(sum.w);
    }
    arrive_in_cluster();
  }
  if (tiles > 0) await_cluster();
}
