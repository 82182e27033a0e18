// C [n, n] = A [n, k] B [k, n] for compute capability 9.0, A and B in bfloat16 by rows. What was four warps' work is one
// instruction's: wgmma multiplies 64 x 128 x 16, and reads both tiles from shared memory by itself. Another unit (TMA)
// fetches tiles, told by a tensor map where a matrix lies; the driver makes it (cuTensorMapEncodeTiled): boxes of 64
// elements a line, lines swizzled by 128 bytes, so that wgmma meets all banks. Blocks: 128 x 128 of C, two groups of four
// warps that multiply 64 rows each, and a warp that fetches.

struct alignas(64) TensorMap {
  unsigned long long words[16];
};

__device__ unsigned int address_of(const void* shared) { return (unsigned int)__cvta_generic_to_shared(shared); }

// A barrier in shared memory: its phase ends when so many have arrived, and all bytes that were announced are there.
__device__ void make_barrier(unsigned int barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ void arrive(unsigned int barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void announce(unsigned int barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait_for(unsigned int barrier, int parity) {
  asm volatile(
      "{ .reg .pred over; again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1; @!over bra again; }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// The box of 64 elements a line from element x of line y.
__device__ void fetch(unsigned int to, const TensorMap* map, int x, int y, unsigned int barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

// Where wgmma finds a tile: its address; bytes to the next 64 of n, where the depth goes from line to line; 1,024 bytes to
// the next eight lines; swizzled by 128 bytes. All in units of 16 bytes.
__device__ unsigned long long describe(unsigned int tile, int apart) {
  return tile >> 4 | (unsigned long long)(apart >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define FOUR(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 1), FOUR(i + 2), FOUR(i + 3)

// sums [64, 128] += A [64, 16] B [16, 128], some time; B's depth goes from line to line.
__device__ void multiply(float (&sums)[16][4], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
               "%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 1;"
               : SIXTEEN(0), SIXTEEN(4), SIXTEEN(8), SIXTEEN(12)
               : "l"(a), "l"(b));
}

constexpr int STAGES = 4, BOX = 8192, STAGE = 4 * BOX;  // 64 of the depth: two boxes of 64 rows, two of 64 columns

__device__ void multiply_tile(const TensorMap* a, const TensorMap* b, float* c, int n, int k, int row, int column) {
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned int base = address_of(memory), full = base + STAGES * STAGE, empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) make_barrier(full + 8 * stage, 1), make_barrier(empty + 8 * stage, 8);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 256) {
    for (int t = 0; t < k / 64; ++t) {
      int stage = t % STAGES;
      unsigned int to = base + stage * STAGE, barrier = full + 8 * stage;
      wait_for(empty + 8 * stage, t / STAGES % 2 ^ 1);
      announce(barrier, STAGE);
      for (int i = 0; i < 2; ++i) {
        fetch(to + i * BOX, a, t * 64, row + 64 * i, barrier);
        fetch(to + (2 + i) * BOX, b, column + 64 * i, t * 64, barrier);
      }
    }
  } else if (threadIdx.x < 256) {
    int group = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    float sums[16][4] = {};
    for (int t = 0; t < k / 64; ++t) {
      int stage = t % STAGES;
      unsigned int from = base + stage * STAGE;
      wait_for(full + 8 * stage, t / STAGES % 2);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int i = 0; i < 4; ++i)
        multiply(sums, describe(from + group * BOX + 32 * i, 16), describe(from + 2 * BOX + 2048 * i, BOX));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (lane == 0) arrive(empty + 8 * stage);
    }
    for (int i = 0; i < 16; ++i)
      for (int h = 0; h < 2; ++h) {
        int to = (row + group * 64 + warp * 16 + 8 * h + lane / 4) * n + column + 8 * i + lane % 4 * 2;
        *(float2*)(c + to) = make_float2(sums[i][2 * h], sums[i][2 * h + 1]);
      }
  }
}

// sectorwise: launch warpgroups<<<(8, 8), 288, 129K>>>(tensor_map(bf16[1024, 512]=uniform(1), box=(64, 64), swizzle=128),
//   tensor_map(bf16[512, 1024]=uniform(2), box=(64, 64), swizzle=128), f32[1024*1024], n=1024, k=512)
// Rung 1. wgmma fed by TMA: no thread computes an address of A or B, and no register holds their elements. The tile is as
// large as four of those that mma.sync multiplied: half the bytes from L2 for each operation. At 4096 cubed it took 257
// microseconds on an H200, where the tensor cores' rung above took 559.
extern "C" __global__ void __launch_bounds__(288)
    warpgroups(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int n, int k) {
  multiply_tile(&a, &b, c, n, k, blockIdx.y * 128, blockIdx.x * 128);
}

// sectorwise: launch l2_order<<<64, 288, 129K>>>(tensor_map(bf16[1024, 512]=uniform(1), box=(64, 64), swizzle=128),
//   tensor_map(bf16[512, 1024]=uniform(2), box=(64, 64), swizzle=128), f32[1024*1024], n=1024, k=512, down=4)
// Rung 2. Blocks go down `down` tiles before they go across, so that those that run together find in the L2 what others
// of them fetched: 243 microseconds at 4096 cubed, and 1,723 instead of 1,808 at 8192 cubed.
extern "C" __global__ void __launch_bounds__(288)
    l2_order(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int n, int k, int down) {
  int across = n / 128, band = blockIdx.x / (across * down), rest = blockIdx.x % (across * down);
  multiply_tile(&a, &b, c, n, k, (band * down + rest % down) * 128, rest / down * 128);
}
