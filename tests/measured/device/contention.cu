// How fast atomics are that meet at the L2, how long SMs that ask for one line share its request, and what the L2 does
// with sectors of which a part is stored. contention.json has the output. To repeat:
//
//   nvcc -O2 -std=c++17 -arch=sm_90 -o contention contention.cu && ./contention atomics
//   ncu --clock-control none --metrics lts__t_sectors_srcunit_tex_op_read.sum,l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum \
//       --kernel-name share ./contention share            (again with --cache-control none: every line in the L2)
//   ncu --clock-control none --metrics dram__bytes_read.sum,dram__bytes_write.sum --kernel-name store_parts ./contention parts
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

typedef unsigned long long Count;
__device__ inline Count read_ns() { Count now; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); return now; }
__device__ inline unsigned scramble(unsigned i) {
  i = (i ^ i >> 16) * 0x7feb352du;
  i = (i ^ i >> 15) * 0x846ca68bu;
  return i ^ i >> 16;
}

// Lane l of every warp works on word l % distinct * pitch of a spot, `step` words from the next; lanes >= `lanes` rest.
// With `random` it works on any of so many words instead.
struct Pattern { int lanes, distinct, pitch, spots, step, random; };
enum Form { RED, ATOM };

template <class T, Form form>
__global__ void add_all(T* to, Pattern p, int rounds, T* out) {
  unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
  if (lane >= p.lanes) return;
  T got = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    unsigned request = warp + round * warps;
    unsigned word = p.random ? scramble(request * 32 + lane) % p.random : lane % p.distinct * p.pitch + request % p.spots * p.step;
    if (form == ATOM) got += atomicAdd(to + word, (T)1); else atomicAdd(to + word, (T)1);
  }
  if (got == (T)12345) *out = got;
}

// The other things that atomics do, each to a word of four bytes, or to as many as it is wide.
#define UPDATE(name, bytes, code)                                                                                     \
  __global__ void name(char* to, Pattern p, int rounds) {                                                             \
    unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;                            \
    unsigned warps = gridDim.x * blockDim.x / 32, got = 0;                                                            \
    if (lane >= p.lanes) return;                                                                                      \
    for (unsigned round = 0; round < rounds; ++round) {                                                               \
      unsigned request = warp + round * warps;                                                                        \
      unsigned word = p.random ? scramble(request * 32 + lane) % p.random                                             \
                               : lane % p.distinct * p.pitch + request % p.spots * p.step;                            \
      char* at = to + (Count)word * bytes;                                                                            \
      asm volatile(code : "+r"(got) : "l"(at), "r"(round & 7), "f"(1.0f) : "memory");                                 \
    }                                                                                                                 \
    if (got == 12345) *to = 1;                                                                                        \
  }
UPDATE(update_min, 4, "red.global.min.s32 [%1], %2;")
UPDATE(update_max, 4, "red.global.max.s32 [%1], %2;")
UPDATE(update_and, 4, "red.global.and.b32 [%1], %2;")
UPDATE(update_or, 4, "red.global.or.b32 [%1], %2;")
UPDATE(update_xor, 4, "red.global.xor.b32 [%1], %2;")
UPDATE(update_inc, 4, "red.global.inc.u32 [%1], %2;")
UPDATE(update_dec, 4, "red.global.dec.u32 [%1], %2;")
UPDATE(fetch_exch, 4, "atom.global.exch.b32 %0, [%1], %2;")
UPDATE(fetch_cas, 4, "atom.global.cas.b32 %0, [%1], %2, %2;")
UPDATE(fetch_max, 4, "atom.global.max.s32 %0, [%1], %2;")
UPDATE(fetch_inc, 4, "atom.global.inc.u32 %0, [%1], %2;")
UPDATE(update_add_f16x2, 4, "red.global.add.noftz.f16x2 [%1], %2;")
UPDATE(update_add_bf16x2, 4, "red.global.add.noftz.bf16x2 [%1], %2;")
UPDATE(update_add_v2_f32, 8, "red.global.v2.f32.add [%1], {%3, %3};")
UPDATE(update_add_v4_f32, 16, "red.global.v4.f32.add [%1], {%3, %3, %3, %3};")
UPDATE(update_max_u64, 8, "{ .reg .b64 w; cvt.u64.u32 w, %2; red.global.max.u64 [%1], w; }")
UPDATE(fetch_exch_b64, 8, "{ .reg .b64 w; cvt.u64.u32 w, %2; atom.global.exch.b64 w, [%1], w; cvt.u32.u64 %0, w; }")
UPDATE(fetch_cas_b64, 8, "{ .reg .b64 w; cvt.u64.u32 w, %2; atom.global.cas.b64 w, [%1], w, w; cvt.u32.u64 %0, w; }")

// Each step waits for what the atomic before it gave.
template <class T>
__global__ void chase(T* to, Pattern p, int rounds, long* cycles) {
  unsigned lane = threadIdx.x % 32;
  if (lane >= p.lanes) return;
  unsigned word = lane % p.distinct * p.pitch;
  long begin = clock64();
  for (int round = 0; round < rounds; ++round) {
    T got = atomicAdd(to + word, (T)0);
    word += got == (T)12345;
  }
  if (lane == 0) *cycles = clock64() - begin;
}

// One warp an SM; block b < blocks loads `lines` lines in order, one each `pace` cycles, `skew` * (b % of) cycles late.
__global__ void share(const float* from, int lines, int pace, int skew, int of, int blocks, float* out) {
  extern __shared__ float only_block[];
  if (blockIdx.x >= blocks) return;
  unsigned last = read_ns() & 0x7fff;
  for (unsigned now = last; now >= last; now = read_ns() & 0x7fff) last = now;
  long begin = clock64() + skew * (blockIdx.x % of);
  float sum = 0, v[16];
  for (int i = 0; i < lines; i += 16) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      while (clock64() - begin < (long)(i + k) * pace) {}
      asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v[k]) : "l"(from + (i + k) * 32 + threadIdx.x));
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) sum += v[k];
  }
  if (sum == 1) *out = sum;
}

// Another order of the numbers up to `mask`.
__device__ inline unsigned mix(unsigned i, unsigned mask) {
  for (int k = 0; k < 3; ++k) {
    i = i * 0x9E3779B1u & mask;
    i ^= i >> 7;
  }
  return i;
}

// Stores word (place * stride) of `to`, each place once, in order or at random; `count` a power of two.
__global__ void store_parts(float* to, unsigned count, unsigned stride, int random) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    unsigned place = random ? mix(i, count - 1) : i;
    to[(Count)place * stride] = 1;
  }
}

const int SMS = 132, THREADS = 512;
char* memory;
long* cycles;

// Prints the ns that a warp's request takes, from launches of some rounds and of twice as many.
template <class Launch>
void print_request(const char* name, Pattern p, Launch launch) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  auto run = [&](int rounds) {
    float best = 1e9f, ms;
    for (int k = 0; k < 3; ++k) {
      cudaEventRecord(begin);
      launch(rounds);
      cudaEventRecord(end);
      cudaEventSynchronize(end);
      cudaEventElapsedTime(&ms, begin, end);
      best = std::min(best, ms);
    }
    return best * 1e6;
  };
  run(1);
  int rounds = 4;
  while (rounds < 4096 && run(rounds) < 200000) rounds *= 2;
  double ns = (run(2 * rounds) - run(rounds)) / rounds / (SMS * THREADS / 32);
  std::printf("[\"%s\", %d, %d, %d, %d, %d, %d, %.4f],\n", name, p.lanes, p.distinct, p.pitch, p.spots, p.step, p.random, ns);
  std::fflush(stdout);
}

template <class T, Form form>
void time_adds(const char* name, Pattern p) {
  print_request(name, p, [&](int rounds) { add_all<T, form><<<SMS, THREADS>>>((T*)memory, p, rounds, (T*)(memory + (1 << 28))); });
}

void time_updates(const char* name, void (*kernel)(char*, Pattern, int)) {
  const Pattern met[] = {{1, 1, 1, 1, 0, 0}, {32, 1, 1, 1, 0, 0}, {8, 8, 1, 1, 0, 0}, {32, 8, 1, 1, 0, 0}, {16, 16, 1, 1, 0, 0},
    {32, 32, 1, 1, 0, 0}, {4, 4, 8, 1, 0, 0}, {32, 1, 1, 1, 0, 16}, {32, 1, 1, 1, 0, 64}, {32, 32, 1, 4096, 32, 0}};
  for (const Pattern& p : met) print_request(name, p, [&](int rounds) { kernel<<<SMS, THREADS>>>(memory, p, rounds); });
}

template <class T>
void time_chase(const char* name, Pattern p) {
  long found = 0;
  cudaMemset(memory, 0, 1 << 20);
  for (int k = 0; k < 2; ++k) chase<T><<<1, 32>>>((T*)memory, p, 500, cycles);
  cudaMemcpy(&found, cycles, 8, cudaMemcpyDeviceToHost);
  std::printf("[\"%s chase\", %d, %d, %d, %d, %d, %d, %.1f],\n", name, p.lanes, p.distinct, p.pitch, p.spots, p.step, p.random, found / 500.0);
  std::fflush(stdout);
}

template <class T>
void time_type(const char* name, const char* returning) {
  const Pattern met[] = {{1, 1, 1, 1, 0, 0}, {2, 1, 1, 1, 0, 0}, {4, 1, 1, 1, 0, 0}, {8, 1, 1, 1, 0, 0}, {32, 1, 1, 1, 0, 0},
    {2, 2, 1, 1, 0, 0}, {8, 8, 1, 1, 0, 0}, {16, 8, 1, 1, 0, 0}, {32, 8, 1, 1, 0, 0}, {32, 4, 1, 1, 0, 0}, {16, 16, 1, 1, 0, 0}, {32, 16, 1, 1, 0, 0},
    {32, 32, 1, 1, 0, 0}, {4, 4, 8, 1, 0, 0}, {32, 4, 8, 1, 0, 0}, {4, 4, 32, 1, 0, 0}, {8, 8, 32, 1, 0, 0}, {32, 32, 8, 1, 0, 0}, {32, 32, 32, 1, 0, 0},
    {32, 1, 1, 1, 0, 8}, {32, 1, 1, 1, 0, 16}, {32, 1, 1, 1, 0, 64}, {32, 1, 1, 1, 0, 256}, {32, 1, 1, 1, 0, 4096}, {32, 1, 1, 1, 0, 1 << 20},
    {32, 32, 1, 4096, 32, 0}, {1, 1, 1, 4096, 32, 0}, {32, 32, 32, 4096, 32, 0}};
  for (const Pattern& p : met) time_adds<T, RED>(name, p);
  for (const Pattern& p : met) time_adds<T, ATOM>(returning, p);
  for (Pattern p : {Pattern{1, 1, 1, 1, 0, 0}, {32, 32, 1, 1, 0, 0}, {32, 1, 1, 1, 0, 0}, {32, 32, 32, 1, 0, 0}}) time_chase<T>(returning, p);
}

int main(int count, char** arguments) {
  const char* part = count > 1 ? arguments[1] : "";
  cudaMalloc(&memory, (size_t)1 << 29);
  cudaMalloc(&cycles, 64);
  cudaMemset(memory, 0, (size_t)1 << 29);
  if (!std::strcmp(part, "atomics")) {
    for (int step : {32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 1 << 18})
      for (int spots : {2, 8}) time_adds<unsigned, RED>("add u32", {32, 32, 1, spots, step, 0});
    for (int spots : {4, 16, 32, 64, 128, 512, 1024}) time_adds<unsigned, RED>("add u32", {32, 32, 1, spots, 32, 0});
    for (int spots : {2, 4, 8, 16, 32, 64, 128, 256, 1024}) time_adds<unsigned, RED>("add u32", {1, 1, 1, spots, 32, 0});
    for (int spots : {2, 4, 8}) time_adds<unsigned, RED>("add u32", {1, 1, 1, spots, 1, 0});
    for (int spots : {2, 4, 8}) time_adds<unsigned, RED>("add u32", {1, 1, 1, spots, 8, 0});
    time_type<unsigned>("add u32", "fetch u32");
    time_type<float>("add f32", "fetch f32");
    time_type<Count>("add u64", "fetch u64");
    time_type<double>("add f64", "fetch f64");
  }
  if (!std::strcmp(part, "updates")) {
    const struct { const char* name; void (*kernel)(char*, Pattern, int); } all[] = {{"min s32", update_min}, {"max s32", update_max},
      {"and b32", update_and}, {"or b32", update_or}, {"xor b32", update_xor}, {"inc u32", update_inc}, {"dec u32", update_dec},
      {"fetch exch b32", fetch_exch}, {"fetch cas b32", fetch_cas}, {"fetch max s32", fetch_max}, {"fetch inc u32", fetch_inc},
      {"add f16x2", update_add_f16x2}, {"add bf16x2", update_add_bf16x2}, {"add v2 f32", update_add_v2_f32},
      {"add v4 f32", update_add_v4_f32}, {"max u64", update_max_u64}, {"fetch exch b64", fetch_exch_b64}, {"fetch cas b64", fetch_cas_b64}};
    for (auto& each : all) time_updates(each.name, each.kernel);
  }
  if (!std::strcmp(part, "share")) {
    cudaFuncSetAttribute(share, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 * 1024);
    auto run = [](int pace, int skew, int of, int blocks) {
      for (int k = 0; k < 3; ++k) share<<<SMS, 32, 160 * 1024>>>((float*)memory, 512, pace, skew, of, blocks, (float*)cycles);
      std::fprintf(stderr, "%d,%d,%d,%d\n", pace, skew, of, blocks);
    };
    for (int blocks : {2, 3, 4, 5, 6, 8, 16, 26, 64, 132}) run(64, 0, 1, blocks);
    for (int skew : {8, 16, 32, 64, 128, 256, 512, 1024, 2048}) run(64, skew, 16, 132);
    for (int skew : {32, 64, 128, 256, 512, 1024}) run(64, skew, 2, 132);
    for (int pace : {2, 8, 16, 32}) run(pace, 0, 1, 132);
    cudaDeviceSynchronize();
  }
  if (!std::strcmp(part, "parts")) {
    auto run = [](unsigned count, unsigned stride, int random) {
      store_parts<<<1056, 256>>>((float*)memory, count, stride, random);
      std::fprintf(stderr, "%u,%u,%d\n", count, stride, random);
    };
    for (unsigned mb : {1, 2, 4, 8, 16, 32, 64})
      for (int random : {0, 1}) run(mb << 15, 8, random);
    for (unsigned mb : {2, 4, 8, 16, 32, 64})
      for (int random : {0, 1}) run(mb << 17, 2, random);
    for (unsigned mb : {4, 16, 32, 64}) run(mb << 18, 1, 1);
    for (unsigned mb : {16, 64}) run(mb << 14, 16, 0);
    cudaDeviceSynchronize();
  }
  std::fprintf(stderr, "# %s\n", cudaGetErrorString(cudaGetLastError()));
}
