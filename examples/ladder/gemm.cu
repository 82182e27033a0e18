// Eight ways to multiply matrices, C [m, n] = A [m, k] B [k, n], rows one after the other; sizes are multiples of the
// tiles. Rungs 1 to 6 are in float; 7 and 8 in bfloat16 on tensor cores.

// sectorwise: launch naive<<<(64, 64), (16, 16)>>>(f32[1024*512]=noise, f32[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512)
// Rung 1. A thread an element, and threadIdx.x counts rows: a warp reads two columns of A, and writes such of C.
extern "C" __global__ void naive(const float* a, const float* b, float* c, int n, int k) {
  int row = blockIdx.x * 16 + threadIdx.x, column = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

// sectorwise: launch swapped<<<(64, 64), (16, 16)>>>(f32[1024*512]=noise, f32[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512)
// Rung 2. threadIdx.x counts columns: B and C in runs of 64 bytes, A the same for half a warp. Only two names changed.
extern "C" __global__ void swapped(const float* a, const float* b, float* c, int n, int k) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

// sectorwise: launch shared_tile<<<(32, 32), (32, 32)>>>(f32[1024*512]=noise, f32[512*1024]=noise, f32[1024*1024], n=1024,
//   k=512)
// Rung 3. Tiles of 32 x 32 in shared memory: each element is loaded once for 32 uses. Now two shared loads feed each
// multiply-add.
extern "C" __global__ void shared_tile(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float left[32][32], right[32][32];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
  float sum = 0;
  for (int t = 0; t < k; t += 32) {
    left[y][x] = a[row * k + t + x];
    right[y][x] = b[(t + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// sectorwise: launch register_tile<<<(16, 16), 256>>>(f32[1024*512]=noise, f32[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512)
// Rung 4. Each thread has 4 x 4 elements, 16 apart, of a tile of 64 x 64: eight shared loads feed 16 multiply-adds. The
// pitch of 80 keeps the two rows that a warp writes in different banks.
extern "C" __global__ void register_tile(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float left[64][16], right[16][80];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sums[4][4] = {};
  for (int t = 0; t < k; t += 16) {
    for (int j = 0; j < 4; ++j) left[y + 16 * j][x] = a[(row + y + 16 * j) * k + t + x];
    for (int j = 0; j < 4; ++j) right[y][x + 16 * j] = b[(t + y) * n + column + x + 16 * j];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sums[p][q] += left[y + 16 * p][i] * right[i][x + 16 * q];
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + y + 16 * p) * n + column + x + 16 * q] = sums[p][q];
}

// sectorwise: launch vectorised<<<(16, 16), 256>>>(f32[1024*512]=noise, f32[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512)
// Rung 5. 16 bytes a lane, from memory and from shared memory; the tile of A is stored turned, so that a thread's four
// rows lie side by side. Turning it costs conflicts, but of the stores only.
extern "C" __global__ void vectorised(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float left[16][68], right[16][64];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
  int r = threadIdx.x / 4, s = threadIdx.x % 4 * 4;
  float sums[4][4] = {};
  for (int t = 0; t < k; t += 16) {
    float4 held = *(const float4*)(a + (row + r) * k + t + s);
    left[s][r] = held.x, left[s + 1][r] = held.y, left[s + 2][r] = held.z, left[s + 3][r] = held.w;
    *(float4*)&right[y][4 * x] = *(const float4*)(b + (t + y) * n + column + 4 * x);
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      float4 p = *(const float4*)&left[i][4 * y], q = *(const float4*)&right[i][4 * x];
      float rows[4] = {p.x, p.y, p.z, p.w}, columns[4] = {q.x, q.y, q.z, q.w};
      for (int u = 0; u < 4; ++u)
        for (int v = 0; v < 4; ++v) sums[u][v] += rows[u] * columns[v];
    }
    __syncthreads();
  }
  for (int u = 0; u < 4; ++u)
    *(float4*)(c + (row + 4 * y + u) * n + column + 4 * x) =
        make_float4(sums[u][0], sums[u][1], sums[u][2], sums[u][3]);
}

__device__ void copy_async(void* to, const void* from) {
  unsigned int address = (unsigned int)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
}

// sectorwise: launch stages<<<(16, 16), 256>>>(f32[1024*512]=noise, f32[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512)
// Rung 6. Three stages of tiles, filled by asynchronous copies while others are multiplied: no register waits for
// memory. Rows of the tiles are 128 bytes or more, whole lines for each copy. A tile of A stays as it is; its pieces of
// 16 bytes stand at swizzled columns, so that the two rows that a warp reads are in different banks.
extern "C" __global__ void stages(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float left[3][64][32], right[3][32][64];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sums[4][4] = {};
  auto fetch = [&](int stage, int t) {
    for (int i = threadIdx.x; t < k && i < 512; i += 256) {
      copy_async(&left[stage][i / 8][(i % 8 ^ i / 32 % 8) * 4], a + (row + i / 8) * k + t + i % 8 * 4);
      copy_async(&right[stage][i / 16][i % 16 * 4], b + (t + i / 16) * n + column + i % 16 * 4);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0), fetch(1, 32);
  for (int t = 0, stage = 0; t < k; t += 32, stage = (stage + 1) % 3) {
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    fetch((stage + 2) % 3, t + 64);
#pragma unroll 8
    for (int i = 0; i < 32; ++i) {
      float4 q = *(const float4*)&right[stage][i][4 * x];
      float columns[4] = {q.x, q.y, q.z, q.w};
      for (int u = 0; u < 4; ++u)
        for (int v = 0; v < 4; ++v) sums[u][v] += left[stage][4 * y + u][i ^ y % 8 * 4] * columns[v];
    }
  }
  for (int u = 0; u < 4; ++u)
    *(float4*)(c + (row + 4 * y + u) * n + column + 4 * x) =
        make_float4(sums[u][0], sums[u][1], sums[u][2], sums[u][3]);
}

__device__ void load_four(unsigned int (&words)[4], const void* from) {
  unsigned int address = (unsigned int)__cvta_generic_to_shared(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address));
}
__device__ void load_four_turned(unsigned int (&words)[4], const void* from) {
  unsigned int address = (unsigned int)__cvta_generic_to_shared(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address));
}
__device__ void multiply_add(float (&sums)[4], const unsigned int (&a)[4], unsigned int b0, unsigned int b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A tile of 64 x 64 of C by four warps, 32 x 32 each; three stages of 64 of the depth. Pieces of 16 bytes stand at
// swizzled columns, so that the eight rows of each matrix that ldmatrix reads are in different banks.
__device__ void multiply_tile(const unsigned short* a, const unsigned short* b, float* c, int n, int k, int row,
                              int column) {
  __shared__ uint4 left[3][64][8], right[3][64][8];
  int lane = threadIdx.x % 32, down = threadIdx.x / 64 * 32, across = threadIdx.x / 32 % 2 * 32;
  float sums[2][4][4] = {};
  auto fetch = [&](int stage, int t) {
    for (int i = threadIdx.x; t < k && i < 512; i += 128) {
      copy_async(&left[stage][i / 8][i % 8 ^ i / 8 % 8], a + (row + i / 8) * k + t + i % 8 * 8);
      copy_async(&right[stage][i / 8][i % 8 ^ i / 8 % 8], b + (t + i / 8) * n + column + i % 8 * 8);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0), fetch(1, 64);
  for (int t = 0, stage = 0; t < k; t += 64, stage = (stage + 1) % 3) {
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    fetch((stage + 2) % 3, t + 128);
    for (int i = 0; i < 4; ++i) {
      unsigned int rows[2][4], columns[2][4];
      for (int u = 0; u < 2; ++u) {
        int r = down + 16 * u + lane % 16, d = 16 * i + lane % 16, q = across / 8 + 2 * u + lane / 16;
        load_four(rows[u], &left[stage][r][(2 * i + lane / 16) ^ r % 8]);
        load_four_turned(columns[u], &right[stage][d][q ^ d % 8]);
      }
      for (int u = 0; u < 2; ++u)
        for (int v = 0; v < 4; ++v)
          multiply_add(sums[u][v], rows[u], columns[v / 2][v % 2 * 2], columns[v / 2][v % 2 * 2 + 1]);
    }
  }
  for (int u = 0; u < 2; ++u)
    for (int v = 0; v < 4; ++v)
      for (int h = 0; h < 2; ++h) {
        int to = (row + down + 16 * u + 8 * h + lane / 4) * n + column + across + 8 * v + lane % 4 * 2;
        *(float2*)(c + to) = make_float2(sums[u][v][2 * h], sums[u][v][2 * h + 1]);
      }
}

// sectorwise: launch tensor_cores<<<(16, 16), 128>>>(u16[1024*512]=noise, u16[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512)
// Rung 7. Tensor cores: ldmatrix brings what mma wants, 16 bytes a row, and one instruction multiplies 16 x 8 x 16.
extern "C" __global__ void tensor_cores(const unsigned short* a, const unsigned short* b, float* c, int n, int k) {
  multiply_tile(a, b, c, n, k, blockIdx.y * 64, blockIdx.x * 64);
}

// sectorwise: launch block_order<<<256, 128>>>(u16[1024*512]=noise, u16[512*1024]=noise, f32[1024*1024],
//   n=1024, k=512, down=4)
// Rung 8. Blocks that run together should read the same rows and columns: they go down `down` tiles before they go
// across. Here all of it is in L2 anyway, and the counts are the same; at 4096
// cubed, groups of eight rows left a third of the DRAM traffic on an H200.
extern "C" __global__ void block_order(const unsigned short* a, const unsigned short* b, float* c, int n, int k,
                                       int down) {
  int tiles = n / 64, band = blockIdx.x / (tiles * down), rest = blockIdx.x % (tiles * down);
  multiply_tile(a, b, c, n, k, (band * down + rest % down) * 64, rest / down * 64);
}
