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

// A box of a tensor map, from element x of line y of matrix z, to shared memory; zeros where it lies outside.
__device__ void fetch_box(unsigned int to, const TensorMap& map, int x, int y, int z, unsigned int barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

// The same to all blocks of a cluster of CLUSTER, in each to the same place and with its own barrier.
template <int CLUSTER>
__device__ void fetch_box_for_all(unsigned int to, const TensorMap& map, int x, int y, int z, unsigned int barrier) {
  if constexpr (CLUSTER == 1)
    fetch_box(to, map, x, y, z, barrier);
  else
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1))
        : "memory");
}

// Have a tensor map fetched before it is used.
__device__ void expect_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ void store_box(const TensorMap& map, int x, int y, int z, unsigned int from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
               "r"(x), "r"(y), "r"(z), "r"(from)
               : "memory");
}

__device__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Wait until all but MOST of this thread's groups of stores have read their shared memory.
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

// Lists of operands: the numbers of eight sums each, those before them first, and the sums.
#define NUMBERS_1 "%0,%1,%2,%3,%4,%5,%6,%7"
#define NUMBERS_2 NUMBERS_1 "," "%8,%9,%10,%11,%12,%13,%14,%15"
#define NUMBERS_3 NUMBERS_2 "," "%16,%17,%18,%19,%20,%21,%22,%23"
#define NUMBERS_4 NUMBERS_3 "," "%24,%25,%26,%27,%28,%29,%30,%31"
#define NUMBERS_5 NUMBERS_4 "," "%32,%33,%34,%35,%36,%37,%38,%39"
#define NUMBERS_6 NUMBERS_5 "," "%40,%41,%42,%43,%44,%45,%46,%47"
#define NUMBERS_7 NUMBERS_6 "," "%48,%49,%50,%51,%52,%53,%54,%55"
#define NUMBERS_8 NUMBERS_7 "," "%56,%57,%58,%59,%60,%61,%62,%63"
#define NUMBERS_9 NUMBERS_8 "," "%64,%65,%66,%67,%68,%69,%70,%71"
#define NUMBERS_10 NUMBERS_9 "," "%72,%73,%74,%75,%76,%77,%78,%79"
#define NUMBERS_11 NUMBERS_10 "," "%80,%81,%82,%83,%84,%85,%86,%87"
#define NUMBERS_12 NUMBERS_11 "," "%88,%89,%90,%91,%92,%93,%94,%95"
#define NUMBERS_13 NUMBERS_12 "," "%96,%97,%98,%99,%100,%101,%102,%103"
#define NUMBERS_14 NUMBERS_13 "," "%104,%105,%106,%107,%108,%109,%110,%111"
#define NUMBERS_15 NUMBERS_14 "," "%112,%113,%114,%115,%116,%117,%118,%119"
#define NUMBERS_16 NUMBERS_15 "," "%120,%121,%122,%123,%124,%125,%126,%127"
#define FOUR(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define SUMS_1 FOUR(0), FOUR(1)
#define SUMS_2 SUMS_1, FOUR(2), FOUR(3)
#define SUMS_3 SUMS_2, FOUR(4), FOUR(5)
#define SUMS_4 SUMS_3, FOUR(6), FOUR(7)
#define SUMS_5 SUMS_4, FOUR(8), FOUR(9)
#define SUMS_6 SUMS_5, FOUR(10), FOUR(11)
#define SUMS_7 SUMS_6, FOUR(12), FOUR(13)
#define SUMS_8 SUMS_7, FOUR(14), FOUR(15)
#define SUMS_9 SUMS_8, FOUR(16), FOUR(17)
#define SUMS_10 SUMS_9, FOUR(18), FOUR(19)
#define SUMS_11 SUMS_10, FOUR(20), FOUR(21)
#define SUMS_12 SUMS_11, FOUR(22), FOUR(23)
#define SUMS_13 SUMS_12, FOUR(24), FOUR(25)
#define SUMS_14 SUMS_13, FOUR(26), FOUR(27)
#define SUMS_15 SUMS_14, FOUR(28), FOUR(29)
#define SUMS_16 SUMS_15, FOUR(30), FOUR(31)
#define MULTIPLY(n, type, a, b, add, turn_a, turn_b, sixteens)                                                       \
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %" #add ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k16.f32."    \
               type "." type " {" NUMBERS_##sixteens "}, %" #a ", %" #b ", add, 1, 1, %" #turn_a ", %" #turn_b "; }" \
               : SUMS_##sixteens                                                                                     \
               : "l"(left), "l"(right), "r"(adding), "n"(TURN_A), "n"(TURN_B))
#define MULTIPLY_WIDE(sixteens, n, a, b, add, turn_a, turn_b)       \
  if constexpr (EIGHTS == 2 * sixteens && IS_F16<T>)                \
    MULTIPLY(n, "f16", a, b, add, turn_a, turn_b, sixteens);        \
  else if constexpr (EIGHTS == 2 * sixteens)                        \
    MULTIPLY(n, "bf16", a, b, add, turn_a, turn_b, sixteens)

// sums [64, 8 x EIGHTS] = A B, or += where `adding`, 16 of the depth, some time; TURN_ where the depth goes from line
// to line. Of its warp's 16 rows a lane has lane / 4 (sums[i][0] and [1]) and + 8, columns 8 i + lane % 4 * 2 and + 1.
template <typename T, bool TURN_A, bool TURN_B, int EIGHTS>
__device__ void multiply(float (&sums)[EIGHTS][4], unsigned long long left, unsigned long long right, int adding) {
  static_assert(EIGHTS % 2 == 0 && EIGHTS >= 2 && EIGHTS <= 32);
  MULTIPLY_WIDE(1, 16, 8, 9, 10, 11, 12);
  MULTIPLY_WIDE(2, 32, 16, 17, 18, 19, 20);
  MULTIPLY_WIDE(3, 48, 24, 25, 26, 27, 28);
  MULTIPLY_WIDE(4, 64, 32, 33, 34, 35, 36);
  MULTIPLY_WIDE(5, 80, 40, 41, 42, 43, 44);
  MULTIPLY_WIDE(6, 96, 48, 49, 50, 51, 52);
  MULTIPLY_WIDE(7, 112, 56, 57, 58, 59, 60);
  MULTIPLY_WIDE(8, 128, 64, 65, 66, 67, 68);
  MULTIPLY_WIDE(9, 144, 72, 73, 74, 75, 76);
  MULTIPLY_WIDE(10, 160, 80, 81, 82, 83, 84);
  MULTIPLY_WIDE(11, 176, 88, 89, 90, 91, 92);
  MULTIPLY_WIDE(12, 192, 96, 97, 98, 99, 100);
  MULTIPLY_WIDE(13, 208, 104, 105, 106, 107, 108);
  MULTIPLY_WIDE(14, 224, 112, 113, 114, 115, 116);
  MULTIPLY_WIDE(15, 240, 120, 121, 122, 123, 124);
  MULTIPLY_WIDE(16, 256, 128, 129, 130, 131, 132);
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

// The same, each piece of eight by eight turned.
__device__ void store_four_turned(unsigned int to, unsigned int a, unsigned int b, unsigned int c, unsigned int d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}

// What one block hands another through global memory: say that it is there, and wait until that was said, once.
__device__ void say_ready(unsigned int* flag) {
  asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
__device__ void await_ready(unsigned int* flag) {
  unsigned int there;
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(flag) : "memory");
  while (!there);
  asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(flag) : "memory");
}

__device__ void store_one(unsigned int to, float a) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(a) : "memory");
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
