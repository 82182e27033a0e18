// Streams of copies through a ring of stages in shared memory: one thread fetches, the others read, and so much is in
// flight as the ring holds; and copies for several blocks of a cluster at once.

#define SHARED(pointer) ((unsigned)__cvta_generic_to_shared(pointer))

struct __align__(64) TensorMap {
  unsigned long long words[16];
};

extern __shared__ __align__(1024) unsigned char memory[];

__device__ void begin(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void wait(unsigned barrier, int parity) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

// Sixteen bytes a thread of each stage; the sums keep the reads alive.
template <typename Fetch>
__device__ void stream(int steps, int bytes, int stages, unsigned* out, Fetch fetch) {
  __shared__ unsigned long long full[32], empty[32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) begin(SHARED(full + i), 1), begin(SHARED(empty + i), 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
      for (int step = 0; step < steps; ++step) {
        int stage = step % stages;
        wait(SHARED(empty + stage), step / stages % 2 ^ 1);
        expect(SHARED(full + stage), bytes);
        fetch(SHARED(memory) + stage * bytes, step, SHARED(full + stage));
      }
    return;
  }
  unsigned sum = 0;
  for (int step = 0; step < steps; ++step) {
    int stage = step % stages;
    wait(SHARED(full + stage), step / stages % 2);
    const uint4* held = (const uint4*)(memory + stage * bytes);
    for (int i = threadIdx.x; i < bytes / 16; i += 128) sum += held[i].x ^ held[i].y ^ held[i].z ^ held[i].w;
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(SHARED(empty + stage));
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}

extern "C" __global__ void ring(const char* in, unsigned* out, int steps, int bytes, int stages) {
  stream(steps, bytes, stages, out, [&](unsigned to, int step, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(in + ((long long)step * gridDim.x + blockIdx.x) * bytes), "r"(bytes), "r"(barrier)
                 : "memory");
  });
}

// Tiles of `rows` rows: block after block along the rows first, then the next columns.
extern "C" __global__ void ring_of_tiles(const __grid_constant__ TensorMap map, unsigned* out, int steps, int bytes,
                                         int stages, int columns, int rows, int down) {
  stream(steps, bytes, stages, out, [&](unsigned to, int step, unsigned barrier) {
    int tile = step * gridDim.x + blockIdx.x;
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(tile / down * columns), "r"(tile % down * rows), "r"(barrier)
        : "memory");
  });
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) spread_range(const char* in, unsigned* out, int bytes, int step) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    begin(SHARED(&barrier), 1);
    expect(SHARED(&barrier), bytes);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0 && blockIdx.x % 2 == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
            SHARED(memory)),
        "l"(in + (long long)(blockIdx.x / 2) * step), "r"(bytes), "r"(SHARED(&barrier)), "h"((unsigned short)3)
        : "memory");
  wait(SHARED(&barrier), 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[blockIdx.x * (bytes / 4) + i] = ((unsigned*)memory)[i];
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    spread_tile(const __grid_constant__ TensorMap map, unsigned* out, int bytes, int column, int row, int mask) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    begin(SHARED(&barrier), 1);
    expect(SHARED(&barrier), bytes);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0 && blockIdx.x % 2 == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], "
        "[%4], %5;" ::"r"(SHARED(memory)),
        "l"(&map), "r"(column), "r"(row + (int)blockIdx.x / 2), "r"(SHARED(&barrier)), "h"((unsigned short)mask)
        : "memory");
  if (mask >> blockIdx.x % 2 & 1) wait(SHARED(&barrier), 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[blockIdx.x * (bytes / 4) + i] = ((unsigned*)memory)[i];
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// To the shared memory of the other block of the cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1) exchange(unsigned* out, int bytes) {
  __shared__ unsigned long long barrier;
  unsigned char *from = memory, *to = memory + bytes;
  if (threadIdx.x == 0) {
    begin(SHARED(&barrier), 1);
    expect(SHARED(&barrier), bytes);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) ((unsigned*)from)[i] = blockIdx.x * bytes + i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    unsigned there, told, peer = blockIdx.x % 2 ^ 1;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(SHARED(to)), "r"(peer));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(told) : "r"(SHARED(&barrier)), "r"(peer));
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(there),
                 "r"(SHARED(from)), "r"(bytes), "r"(told)
                 : "memory");
  }
  wait(SHARED(&barrier), 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[blockIdx.x * (bytes / 4) + i] = ((unsigned*)to)[i];
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
