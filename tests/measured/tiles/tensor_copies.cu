// Copies of tiles that a tensor map names, and of whole ranges: one thread of each block issues them.

#define SHARED(pointer) ((unsigned)__cvta_generic_to_shared(pointer))

struct __align__(64) TensorMap {
  unsigned long long words[16];
};

__device__ void begin(unsigned barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void wait(unsigned barrier) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
}

__device__ void fill(unsigned* tile, int bytes, unsigned first) {
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) tile[i] = first + i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
}

__device__ void give(const unsigned* tile, int bytes, unsigned* out) {
  int block = blockIdx.x + blockIdx.y * gridDim.x;
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[block * (bytes / 4) + i] = tile[i];
}

__device__ void finish() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern __shared__ __align__(1024) unsigned tile[];

#define PLACE a + (int)blockIdx.x * dx, b + (int)blockIdx.y * dy, c, d, e
#define AT1 "{%2}"
#define AT2 "{%2, %3}"
#define AT3 "{%2, %3, %4}"
#define AT4 "{%2, %3, %4, %5}"
#define AT5 "{%2, %3, %4, %5, %6}"
#define INPUTS "r"(SHARED(tile)), "l"(&map), "r"(a + (int)blockIdx.x * dx), "r"(b + (int)blockIdx.y * dy), "r"(c), "r"(d), "r"(e)
#define PARAMETERS const __grid_constant__ TensorMap map, int bytes, int a, int b, int c, int d, int e, int dx, int dy

#define KERNELS(rank)                                                                                                  \
  extern "C" __global__ void load_##rank(PARAMETERS, unsigned* out) {                                                  \
    __shared__ unsigned long long barrier;                                                                             \
    fill(tile, bytes, 0xa0000000u);                                                                                    \
    if (threadIdx.x == 0) {                                                                                            \
      begin(SHARED(&barrier));                                                                                         \
      expect(SHARED(&barrier), bytes);                                                                                 \
      asm volatile("cp.async.bulk.tensor." #rank                                                                       \
                   "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " AT##rank "], [%7];" ::     \
                       INPUTS,                                                                                         \
                   "r"(SHARED(&barrier))                                                                               \
                   : "memory");                                                                                        \
    }                                                                                                                  \
    __syncthreads();                                                                                                   \
    wait(SHARED(&barrier));                                                                                            \
    give(tile, bytes, out);                                                                                            \
  }                                                                                                                    \
  extern "C" __global__ void store_##rank(PARAMETERS) {                                                                \
    fill(tile, bytes, (blockIdx.x + blockIdx.y * gridDim.x) * (bytes / 4) + 1);                                        \
    if (threadIdx.x == 0) {                                                                                            \
      asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta.tile.bulk_group [%1, " AT##rank "], [%0];" ::   \
                       INPUTS                                                                                          \
                   : "memory");                                                                                        \
      finish();                                                                                                        \
    }                                                                                                                  \
  }

KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)

extern "C" __global__ void add_2(PARAMETERS) {
  fill(tile, bytes, (blockIdx.x + blockIdx.y * gridDim.x) * (bytes / 4) + 1);
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%1, " AT2 "], [%0];" ::INPUTS
                 : "memory");
    finish();
  }
}

extern "C" __global__ void prefetch_2(PARAMETERS) {
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%1, " AT2 "];" ::INPUTS : "memory");
  }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) spread_2(PARAMETERS, unsigned* out) {
  __shared__ unsigned long long barrier;
  fill(tile, bytes, 0xa0000000u);
  if (threadIdx.x == 0) {
    begin(SHARED(&barrier));
    expect(SHARED(&barrier), bytes);
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0 && blockIdx.x % 2 == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, " AT2
        "], [%7], %8;" ::INPUTS,
        "r"(SHARED(&barrier)), "h"((unsigned short)3)
        : "memory");
  wait(SHARED(&barrier));
  give(tile, bytes, out);
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void load_range(const char* in, unsigned* out, int bytes, int step) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    begin(SHARED(&barrier));
    expect(SHARED(&barrier), bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     SHARED(tile)),
                 "l"(in + (long long)blockIdx.x * step), "r"(bytes), "r"(SHARED(&barrier))
                 : "memory");
  }
  __syncthreads();
  wait(SHARED(&barrier));
  give(tile, bytes, out);
}

extern "C" __global__ void store_range(char* out, int bytes, int step) {
  fill(tile, bytes, blockIdx.x * (bytes / 4) + 1);
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + (long long)blockIdx.x * step),
                 "r"(SHARED(tile)), "r"(bytes)
                 : "memory");
    finish();
  }
}

extern "C" __global__ void add_range(char* out, int bytes, int step) {
  fill(tile, bytes, blockIdx.x * (bytes / 4) + 1);
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(
                     out + (long long)blockIdx.x * step),
                 "r"(SHARED(tile)), "r"(bytes)
                 : "memory");
    finish();
  }
}

extern "C" __global__ void prefetch_range(const char* in, int bytes, int step) {
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in + (long long)blockIdx.x * step), "r"(bytes)
                 : "memory");
}
