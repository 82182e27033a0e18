// Kernels that measure a GPU: latencies, memory under load, ceilings, what blocks, stores and atomics take, and pipes.
typedef unsigned long long Count;

struct Result {
  Count cycles, ns, streamed_warps, stream_ns;
};

__device__ inline Count read_ns() {
  Count now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Every word of a unit holds the number of the next unit: a permutation of one cycle.
extern "C" __global__ void fill_chain(unsigned* words, unsigned units, unsigned unit_words) {
  for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i < (Count)units * unit_words; i += (Count)gridDim.x * blockDim.x)
    words[i] = ((unsigned)(i / unit_words) * 1664525u + 12345u) & (units - 1);
}

// Units one after the other in a ring, each so many further on: of any number that has no divisor in common with `step`.
extern "C" __global__ void fill_ring(unsigned* words, unsigned units, unsigned unit_words, unsigned step) {
  for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i < (Count)units * unit_words; i += (Count)gridDim.x * blockDim.x)
    words[i] = ((unsigned)(i / unit_words) + step) % units;
}

template <class Word>
__device__ inline unsigned first_word(Word v) { return *(unsigned*)&v; }

// One warp chases pointers, each step a request of 32 neighbouring words; the loads of other blocks are its background.
template <class Word>
__device__ void chase(const char* units, unsigned mask, unsigned unit_bytes, int steps, unsigned seed, Result* result, int* stop) {
  unsigned unit = seed & mask;
  for (long begin = clock64(); clock64() - begin < 200000;) {
  }
  Count begin_ns = read_ns();
  long begin = clock64();
  for (int step = 0; step < steps; ++step)
    unit = first_word(*(const volatile Word*)(units + (Count)unit * unit_bytes + threadIdx.x * sizeof(Word)));
  long end = clock64();
  if (threadIdx.x == 0) {
    result->cycles = end - begin;
    result->ns = read_ns() - begin_ns;
    *(volatile int*)stop = 1;
  }
  if (unit == ~0u) result->stream_ns = 1;
}

template <class Word>
__device__ void load_memory(const char* units, unsigned mask, unsigned unit_bytes, int steps, unsigned seed, const float4* stream, Count words, int pause_cycles, Result* result, int* stop) {
  extern __shared__ int only_block_of_the_sm[];
  if (blockIdx.x == 0) {
    if (threadIdx.x < 32) chase<Word>(units, mask, unit_bytes, steps, seed, result, stop);
    return;
  }
  Count step = (Count)gridDim.x * blockDim.x, loads = 0, i = blockIdx.x * (Count)blockDim.x + threadIdx.x;
  float sum = 0;
  Count begin_ns = read_ns();
  while (!(loads % 16 == 0 && *(volatile int*)stop)) {
    float4 v = __ldcg(stream + i);
    sum += v.x + v.y + v.z + v.w;
    ++loads;
    i += step;
    if (i >= words) i -= words;
    if (pause_cycles)
      for (long start = clock64(); clock64() - start < pause_cycles;) {
      }
  }
  if (sum == 1) result->stream_ns = 1;
  if (threadIdx.x % 32 == 0) atomicAdd(&result->streamed_warps, loads);
  if (threadIdx.x == 0 && blockIdx.x == 1) result->stream_ns = read_ns() - begin_ns;
}

extern "C" __global__ void chase_128(const char* units, unsigned mask, unsigned unit_bytes, int steps, unsigned seed, const float4* stream, Count words, int pause_cycles, Result* result, int* stop) {
  extern __shared__ int only_block_of_the_sm[];
  load_memory<unsigned>(units, mask, unit_bytes, steps, seed, stream, words, pause_cycles, result, stop);
}

// The same for 512 bytes a request.
extern "C" __global__ void chase_512(const char* units, unsigned mask, unsigned unit_bytes, int steps, unsigned seed, const float4* stream, Count words, int pause_cycles, Result* result, int* stop) {
  unsigned unit = seed & mask;
  for (long begin = clock64(); clock64() - begin < 200000;) {
  }
  long begin = clock64();
  for (int step = 0; step < steps; ++step) {
    unsigned x, y, z, w;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(units + (Count)unit * unit_bytes + threadIdx.x * 16));
    unit = x;
  }
  if (threadIdx.x == 0) result->cycles = clock64() - begin;
  if (unit == ~0u) result->stream_ns = 1;
}

// Chases within what the L1 may keep.
extern "C" __global__ void chase_cached(const unsigned* words, unsigned mask, unsigned unit_words, int steps, Result* result) {
  unsigned unit = 0;
  for (unsigned warm = 0; warm <= mask; ++warm) unit = __ldca(words + (Count)unit * unit_words + threadIdx.x);
  long begin = clock64();
  for (int step = 0; step < steps; ++step) unit = __ldca(words + (Count)unit * unit_words + threadIdx.x);
  long end = clock64();
  if (threadIdx.x == 0) result->cycles = end - begin;
  if (unit == ~0u) result->stream_ns = 1;
}

extern "C" __global__ void time_steps(const unsigned* words, unsigned mask, unsigned unit_words, int steps, unsigned* cycles) {
  unsigned unit = 4242 & mask;
  for (int step = 0; step < steps; ++step) {
    unsigned begin = clock();
    unit = words[(Count)unit * unit_words + threadIdx.x];
    if (unit == ~0u) break;
    if (threadIdx.x == 0) cycles[step] = clock() - begin;
  }
}

// What a taken branch costs beyond the stalls that the code states.
template <int Adds>
__device__ void time_loop(int rounds, Result* result) {
  float sum = threadIdx.x;
  long begin = clock64();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int k = 0; k < Adds; ++k) sum += 1.5f;
  }
  long end = clock64();
  if (threadIdx.x == 0) result->cycles = end - begin;
  if (sum == 1) result->ns = 1;
}
extern "C" __global__ void loop_4(int rounds, Result* result) { time_loop<4>(rounds, result); }
extern "C" __global__ void loop_16(int rounds, Result* result) { time_loop<16>(rounds, result); }

// Reads `words` over and over past L1: from the L2 where they fit, else from DRAM.
extern "C" __global__ void read_all(const float4* __restrict__ in, Count words, int rounds, Result* result) {
  Count step = (Count)gridDim.x * blockDim.x;
  float sum = 0;
  for (int round = 0; round < rounds; ++round)
    for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i + 3 * step < words; i += 4 * step) {
      float4 v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = __ldcg(in + i + k * step);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
  if (sum == 1) result->ns = 1;
}

extern "C" __global__ void copy_all(const float4* __restrict__ in, float4* __restrict__ to, Count words) {
  Count step = (Count)gridDim.x * blockDim.x;
  for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i + 3 * step < words; i += 4 * step) {
    float4 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = in[i + k * step];
#pragma unroll
    for (int k = 0; k < 4; ++k) to[i + k * step] = v[k];
  }
}

extern "C" __global__ void write_all(float4* __restrict__ to, Count words) {
  Count step = (Count)gridDim.x * blockDim.x;
  for (Count i = blockIdx.x * (Count)blockDim.x + threadIdx.x; i < words; i += step) to[i] = make_float4(1, 2, 3, 4);
}

// Each lane reads, or writes, one word of a place of its own, `pitch` words from its neighbour's.
extern "C" __global__ void read_strided(const float* __restrict__ in, Count words, unsigned pitch, Result* result) {
  Count step = (Count)gridDim.x * blockDim.x * pitch;
  float sum = 0;
  for (Count i = (blockIdx.x * (Count)blockDim.x + threadIdx.x) * pitch; i + 3 * step < words; i += 4 * step) {
    float v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = __ldcg(in + i + k * step);
    sum += v[0] + v[1] + v[2] + v[3];
  }
  if (sum == 1) result->ns = 1;
}
extern "C" __global__ void write_strided(float* __restrict__ to, Count words, unsigned pitch, int rounds) {
  Count step = (Count)gridDim.x * blockDim.x * pitch;
  for (int round = 0; round < rounds; ++round)
    for (Count i = (blockIdx.x * (Count)blockDim.x + threadIdx.x) * pitch; i < words; i += step) to[i] = 1;
}

// Adds to one of `mask` + 1 words, `pitch` apart from lane to lane.
extern "C" __global__ void add_all(int* to, unsigned pitch, unsigned mask, int rounds) {
  unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * pitch;
  for (int round = 0; round < rounds; ++round) {
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(to + (i & mask)), "r"(threadIdx.x) : "memory");
    i += gridDim.x * blockDim.x * pitch;
  }
}

// Places that have nothing to do with each other: a bijection of 32 bits, with the constants that Chris Wellons found
// (lowbias32 of his hash-prospector, in the public domain).
__device__ inline unsigned scramble(unsigned i) {
  i = (i ^ i >> 16) * 0x7feb352du;
  i = (i ^ i >> 15) * 0x846ca68bu;
  return i ^ i >> 16;
}
extern "C" __global__ void add_random(int* to, unsigned mask, int rounds) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round, i += gridDim.x * blockDim.x)
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(to + (scramble(i) & mask)), "r"(threadIdx.x) : "memory");
}
extern "C" __global__ void read_random(const float* __restrict__ in, unsigned mask, int rounds, Result* result) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    float v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k, i += gridDim.x * blockDim.x) v[k] = __ldcg(in + (scramble(i) & mask));
    sum += v[0] + v[1] + v[2] + v[3];
  }
  if (sum == 1) result->ns = 1;
}

extern "C" __global__ void do_nothing(Result* result) {
  if (!result) asm volatile("trap;");
}

// Where and when blocks ran.
extern "C" __global__ void place_blocks(unsigned* sm, Count* begin_ns, Count* end_ns, int cycles) {
  extern __shared__ int shared[];
  Count begin = read_ns();
  unsigned id;
  asm volatile("mov.u32 %0, %smid;" : "=r"(id));
  for (long start = clock64(); clock64() - start < cycles;) {
  }
  if (threadIdx.x == 0) {
    sm[blockIdx.x] = id;
    begin_ns[blockIdx.x] = begin;
    end_ns[blockIdx.x] = read_ns();
  }
}

// Pipes: eight independent chains of one instruction.
#define PIPE(name, type, text, constraint, ...)                                                     \
  extern "C" __global__ void pipe_##name(int rounds, Result* result, type a, type b) {              \
    type v[8];                                                                                      \
    for (int k = 0; k < 8; ++k) v[k] = (type)(threadIdx.x + k);                                     \
    __syncthreads();                                                                                \
    long begin = clock64();                                                                         \
    for (int round = 0; round < rounds; ++round) {                                                  \
      _Pragma("unroll") for (int j = 0; j < 8; ++j)                                                 \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) asm volatile(text : "+" constraint(v[k]) : __VA_ARGS__); \
    }                                                                                               \
    __syncthreads();                                                                                \
    long end = clock64();                                                                           \
    if (threadIdx.x == 0 && blockIdx.x == 0) result->cycles = end - begin;                          \
    type sum = 0;                                                                                   \
    for (int k = 0; k < 8; ++k) sum += v[k];                                                        \
    if (sum == (type)12345) result->ns = 1;                                                         \
  }
PIPE(ffma, float, "fma.rn.f32 %0, %0, %1, %2;", "f", "f"(a), "f"(b))
PIPE(fadd, float, "add.rn.f32 %0, %0, %1;", "f", "f"(a))
PIPE(fmnmx, float, "min.f32 %0, %0, %1;", "f", "f"(a))
PIPE(imad, int, "mad.lo.s32 %0, %0, %1, %2;", "r", "r"(a), "r"(b))
PIPE(iadd, int, "add.s32 %0, %0, %1;", "r", "r"(a))
PIPE(lop3, int, "lop3.b32 %0, %0, %1, %2, 0x96;", "r", "r"(a), "r"(b))
PIPE(shf, int, "shf.l.wrap.b32 %0, %0, %1, %2;", "r", "r"(a), "r"(b))
PIPE(prmt, int, "prmt.b32 %0, %0, %1, %2;", "r", "r"(a), "r"(b))
PIPE(imnmx, int, "min.s32 %0, %0, %1;", "r", "r"(a))
PIPE(popc, int, "popc.b32 %0, %0;", "r", "r"(a))
PIPE(mufu, float, "ex2.approx.ftz.f32 %0, %0;", "f", "f"(a))
PIPE(f2i, int, "{ .reg .f32 t; mov.b32 t, %0; cvt.rni.s32.f32 %0, t; }", "r", "r"(a))
PIPE(i2f, int, "{ .reg .f32 t; cvt.rn.f32.s32 t, %0; mov.b32 %0, t; }", "r", "r"(a))
PIPE(hfma2, unsigned, "fma.rn.f16x2 %0, %0, %1, %2;", "r", "r"(a), "r"(b))
PIPE(dfma, double, "fma.rn.f64 %0, %0, %1, %2;", "d", "d"(a), "d"(b))
PIPE(shfl, int, "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;", "r", "r"(a))
PIPE(sel, int, "{ .reg .pred p; setp.lt.s32 p, %0, %1; selp.s32 %0, %1, %2, p; }", "r", "r"(a), "r"(b))
