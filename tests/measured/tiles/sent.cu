// Stores to shared memory, the block's own or a peer's, that an mbarrier waits for (st.async).

#define SHARED(pointer) ((unsigned)__cvta_generic_to_shared(pointer))

__device__ unsigned at_rank(unsigned place, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(rank));
  return there;
}

template <typename Send>
__device__ void exchange(unsigned* out, int bytes, int words, Send send) {
  extern __shared__ __align__(1024) unsigned held[];
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SHARED(&barrier)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED(&barrier)), "r"(bytes) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  send(SHARED(held), SHARED(&barrier));
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }" ::"r"(
                   SHARED(&barrier))
               : "memory");
  for (int i = threadIdx.x; i < words; i += blockDim.x) out[blockIdx.x * words + i] = held[i];
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

#define RANK ((blockIdx.x + away) % 2)
#define KERNEL(name, type, value)                                                                                     \
  extern "C" __global__ void __cluster_dims__(2, 1, 1) name(unsigned* out, int bytes, int words, int step, int lanes, \
                                                            int away) {                                              \
    exchange(out, bytes, words, [&](unsigned held, unsigned barrier) {                                                \
      if (threadIdx.x % 32 < lanes)                                                                                   \
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes." type " [%0], " value ", [%1];" ::"r"(    \
                         at_rank(held + threadIdx.x * step, RANK)),                                                   \
                     "r"(at_rank(barrier, RANK)), "r"(threadIdx.x), "r"(threadIdx.x + 7)                               \
                     : "memory");                                                                                     \
    });                                                                                                               \
  }
KERNEL(sent4, "u32", "%2")
KERNEL(sent8, "v2.u32", "{%2, %3}")
KERNEL(sent16, "v4.u32", "{%2, %3, %2, %3}")
