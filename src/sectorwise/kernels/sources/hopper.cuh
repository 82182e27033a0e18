// What tensor cores of compute capability 9.0 want: barriers that count bytes, tiles copied by tensor maps, products of
// four warps together, a warpgroup (PTX ISA: mbarrier, cp.async.bulk.tensor, wgmma). Addresses in shared memory have 32
// bits.
#pragma once
#include "numbers.cuh"

// CUtensorMap of cuda.h: 128 bytes that the driver made.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

__device__ unsigned int address_of(const void* shared) { return (unsigned int)__cvta_generic_to_shared(shared); }

__device__ void make_barrier(unsigned int barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ void expect_bytes(unsigned int barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Wait until the phase of that parity is over.
__device__ void wait_for(unsigned int barrier, unsigned int parity) {
  asm volatile(
      "{ .reg .pred over; again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1; @over bra done; bra again; "
      "done: }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Arrive at the barrier at the same place in the shared memory of a block of the cluster. It hands on no data, only
// leave to overwrite what was read: with the scope of the cluster it would be a fence of the whole GPU each time.
__device__ void arrive_at(unsigned int barrier, int block) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// Wait for all threads of the cluster; what they wrote is not seen by that.
template <int CLUSTER> __device__ void join_cluster() {
  if constexpr (CLUSTER > 1)
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  else
    __syncthreads();
}

// The same, and what they wrote to shared memory is seen by all.
__device__ void share_with_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ int rank_in_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Programmatic dependent launch: what is behind on the stream may begin once all blocks have said so, or ended, and waits
// itself until what is ahead has ended.
__device__ void begin_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void await_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// A box of a tensor map, from element x of line y, to shared memory; zeros where it lies outside.
__device__ void fetch_box(unsigned int to, const TensorMap& map, int x, int y, unsigned int barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

// The same to all blocks of a cluster of CLUSTER, in each to the same place and with its own barrier.
template <int CLUSTER>
__device__ void fetch_box_for_all(unsigned int to, const TensorMap& map, int x, int y, unsigned int barrier) {
  if constexpr (CLUSTER == 1)
    fetch_box(to, map, x, y, barrier);
  else
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1))
        : "memory");
}

// Have a tensor map fetched before it is used.
__device__ void expect_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ void store_box(const TensorMap& map, int x, int y, unsigned int from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
               "cp.async.bulk.commit_group;" ::"l"(&map),
               "r"(x), "r"(y), "r"(from)
               : "memory");
}

// Wait until all but MOST of this thread's stores have read their shared memory.
template <int MOST> __device__ void await_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(MOST) : "memory");
}

// Where wgmma finds a tile with lines of 128 bytes, swizzled by as much (PTX ISA, matrix descriptor).
// With the depth along the lines, the next eight lines are 1,024 bytes on. With the depth from line to line, so are
// the next eight of the depth, and the next 64 of the other axis `apart` bytes.
template <bool DEPTH_IN_LINES> __device__ unsigned long long describe(unsigned int tile, int apart) {
  unsigned long long eight = 1024 >> 4, next = DEPTH_IN_LINES ? 1 : apart >> 4, swizzled = 1;
  return tile >> 4 & 0x3fff | next << 16 | eight << 32 | swizzled << 62;
}
// How far 16 of the depth are in such a descriptor.
template <bool DEPTH_IN_LINES> constexpr int SIXTEEN = DEPTH_IN_LINES ? 32 >> 4 : 2048 >> 4;

__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int MOST> __device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(MOST) : "memory");
}

// Lists of operands: ten numbers, and the sums of lanes.
#define TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define NUMBERS_32 TEN() TEN(1) TEN(2) "%30,%31"
#define NUMBERS_64 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60,%61,%62,%63"
#define NUMBERS_96 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) "%90,%91,%92,%93,%94,%95"
#define NUMBERS_128                                                                                                \
  TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) "%120,%121,%122,%123,%124," \
                                                                                       "%125,%126,%127"
#define FOUR(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define SUMS_32 FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)
#define SIXTEEN_MORE(i) FOUR(i), FOUR(i + 1), FOUR(i + 2), FOUR(i + 3)
#define SUMS_64 SUMS_32, SIXTEEN_MORE(8), SIXTEEN_MORE(12)
#define SUMS_96 SUMS_64, SIXTEEN_MORE(16), SIXTEEN_MORE(20)
#define SUMS_128 SUMS_96, SIXTEEN_MORE(24), SIXTEEN_MORE(28)
#define MULTIPLY(shape, type, numbers, a, b, add, turn_a, turn_b, ...)                                               \
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %" #add ", 0; wgmma.mma_async.sync.aligned." shape ".f32." type   \
               "." type " {" numbers "}, %" #a ", %" #b ", add, 1, 1, %" #turn_a ", %" #turn_b "; }"                 \
               : __VA_ARGS__                                                                                         \
               : "l"(left), "l"(right), "r"(adding), "n"(TURN_A), "n"(TURN_B))

// sums [64, 8 x EIGHTS] = A B, or += where `adding`, 16 of the depth, some time; TURN_ where the depth goes from line
// to line. Of its warp's 16 rows a lane has lane / 4 (sums[i][0] and [1]) and + 8, columns 8 i + lane % 4 * 2 and + 1.
template <typename T, bool TURN_A, bool TURN_B, int EIGHTS>
__device__ void multiply(float (&sums)[EIGHTS][4], unsigned long long left, unsigned long long right, int adding) {
  static_assert(EIGHTS == 32 || EIGHTS == 24 || EIGHTS == 16 || EIGHTS == 8);
  if constexpr (EIGHTS == 32 && IS_F16<T>)
    MULTIPLY("m64n256k16", "f16", NUMBERS_128, 128, 129, 130, 131, 132, SUMS_128);
  else if constexpr (EIGHTS == 32)
    MULTIPLY("m64n256k16", "bf16", NUMBERS_128, 128, 129, 130, 131, 132, SUMS_128);
  else if constexpr (EIGHTS == 24 && IS_F16<T>)
    MULTIPLY("m64n192k16", "f16", NUMBERS_96, 96, 97, 98, 99, 100, SUMS_96);
  else if constexpr (EIGHTS == 24)
    MULTIPLY("m64n192k16", "bf16", NUMBERS_96, 96, 97, 98, 99, 100, SUMS_96);
  else if constexpr (EIGHTS == 16 && IS_F16<T>)
    MULTIPLY("m64n128k16", "f16", NUMBERS_64, 64, 65, 66, 67, 68, SUMS_64);
  else if constexpr (EIGHTS == 16)
    MULTIPLY("m64n128k16", "bf16", NUMBERS_64, 64, 65, 66, 67, 68, SUMS_64);
  else if constexpr (IS_F16<T>)
    MULTIPLY("m64n64k16", "f16", NUMBERS_32, 32, 33, 34, 35, 36, SUMS_32);
  else
    MULTIPLY("m64n64k16", "bf16", NUMBERS_32, 32, 33, 34, 35, 36, SUMS_32);
}

// Keeps the compiler from using sums before they are there.
template <int EIGHTS> __device__ void hold(float (&sums)[EIGHTS][4]) {
#pragma unroll
  for (int i = 0; i < EIGHTS; ++i) asm volatile("" : FOUR(i)::"memory");
}

// Two floats as a word of T, lower half first.
template <typename T> __device__ unsigned int pair(float low, float high) {
  if constexpr (IS_F16<T>) {
    unsigned int word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  } else {
    return pair_bf16(low, high);
  }
}

__device__ void store_four(unsigned int to, unsigned int a, unsigned int b, unsigned int c, unsigned int d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

__device__ void store_pair(unsigned int to, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(a), "f"(b) : "memory");
}

// Four floats from shared memory of a block of the cluster, at the place that has this address here.
__device__ float4 load_from(unsigned int place, int block) {
  float4 held;
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %4, %5;"
               "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [there]; }"
               : "=f"(held.x), "=f"(held.y), "=f"(held.z), "=f"(held.w)
               : "r"(place), "r"(block)
               : "memory");
  return held;
}

// Have what was stored to shared memory seen by asynchronous copies.
__device__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void join_warpgroup(int name) { asm volatile("bar.sync %0, 128;" ::"r"(name) : "memory"); }
