// Matrix products and what feeds them: ldmatrix, stmatrix, mma, wmma, copies in stages.
#include <cuda_fp16.h>
#include <mma.h>

__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void load4(unsigned (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(p)));
}
__device__ void load2t(unsigned (&r)[2], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(address_of(p)));
}
__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <int BYTES> __device__ void copy_async(void* to, const void* from, bool real = true) {
  int size = real ? BYTES : 0;
  if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(address_of(to)), "l"(from), "r"(size) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(address_of(to)), "l"(from), "n"(BYTES), "r"(size) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }

template <int PITCH> __device__ void product_body(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __align__(16) __half as[2][64 * PITCH], bs[2][32 * (PITCH + 32)];
  constexpr int BP = PITCH + 32;
  int t = threadIdx.x, lane = t % 32, warp = t / 32, wy = warp / 2, wx = warp % 2;
  int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  float acc[2][4][4] = {};
  auto fetch = [&](int stage, int k0) {
    for (int i = t; i < 64 * 4; i += 128) copy_async<16>(&as[stage][(i / 4) * PITCH + 8 * (i % 4)], &a[(size_t)(row0 + i / 4) * k + k0 + 8 * (i % 4)]);
    for (int i = t; i < 32 * 8; i += 128) copy_async<16>(&bs[stage][(i / 8) * BP + 8 * (i % 8)], &b[(size_t)(k0 + i / 8) * n + col0 + 8 * (i % 8)]);
    commit();
  };
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 32, stage ^= 1) {
    if (k0 + 32 < k) { fetch(stage ^ 1, k0 + 32); wait<1>(); } else wait<0>();
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned x[2][4], y[4][2];
      for (int i = 0; i < 2; ++i) load4(x[i], &as[stage][(wy * 32 + i * 16 + lane % 16) * PITCH + kk + 8 * (lane / 16)]);
      for (int j = 0; j < 4; ++j) load2t(y[j], &bs[stage][(kk + lane % 16) * BP + wx * 32 + j * 8]);
      for (int i = 0; i < 2; ++i) for (int j = 0; j < 4; ++j) multiply(acc[i][j], x[i], y[j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) for (int j = 0; j < 4; ++j) {
    int r = row0 + wy * 32 + i * 16 + lane / 4, q = col0 + wx * 32 + j * 8 + 2 * (lane % 4);
    *reinterpret_cast<float2*>(&c[(size_t)r * n + q]) = make_float2(acc[i][j][0], acc[i][j][1]);
    *reinterpret_cast<float2*>(&c[(size_t)(r + 8) * n + q]) = make_float2(acc[i][j][2], acc[i][j][3]);
  }
}
extern "C" __global__ void product_plain(const __half* a, const __half* b, float* c, int m, int n, int k) { product_body<32>(a, b, c, m, n, k); }
// sectorwise: launch product_plain<<<(8, 8), 128>>>(f16[512*256]=noise, f16[256*512]=noise, f32[512*512], 512, 512, 256)
// sectorwise: launch product_plain<<<(32, 32), 128>>>(f16[2048*1024]=noise, f16[1024*2048]=noise, f32[2048*2048], 2048, 2048, 1024)
extern "C" __global__ void product_padded(const __half* a, const __half* b, float* c, int m, int n, int k) { product_body<40>(a, b, c, m, n, k); }
// sectorwise: launch product_padded<<<(8, 8), 128>>>(f16[512*256]=noise, f16[256*512]=noise, f32[512*512], 512, 512, 256)
// sectorwise: launch product_padded<<<(32, 32), 128>>>(f16[2048*1024]=noise, f16[1024*2048]=noise, f32[2048*2048], 2048, 2048, 1024)

extern "C" __global__ void wmma_rows(const __half* a, const __half* b, float* c, int n, int k) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  wmma::fill_fragment(z, 0.0f);
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, tiles = n / 16, r = warp / tiles, q = warp % tiles;
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(x, a + (size_t)r * 16 * k + i, k);
    wmma::load_matrix_sync(y, b + (size_t)q * 16 * k + i, k);
    wmma::mma_sync(z, x, y, z);
  }
  wmma::store_matrix_sync(c + (size_t)r * 16 * n + q * 16, z, n, wmma::mem_row_major);
}
// sectorwise: launch wmma_rows<<<128, 256>>>(f16[512*512]=noise, f16[512*512]=noise, f32[512*512], 512, 512)

extern "C" __global__ void matrix_turn(const uint4* __restrict__ in, uint4* __restrict__ out, int shift) {
  __shared__ __align__(128) __half tile[64 * 64];
  int lane = threadIdx.x;
  const uint4* from = in + blockIdx.x * 512;
  for (int i = lane; i < 512; i += 32) { int r = i / 8, q = i % 8; *reinterpret_cast<uint4*>(&tile[r * 64 + 8 * (q ^ (shift ? r % 8 : 0))]) = from[i]; }
  __syncwarp();
  for (int b = 0; b < 16; ++b) {
    unsigned r[4];
    int y = 16 * (b / 4) + lane % 16, q = 2 * (b % 4) + lane / 16;
    load4(r, &tile[y * 64 + 8 * (q ^ (shift ? y % 8 : 0))]);
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(address_of(&tile[y * 64 + 8 * (q ^ (shift ? y % 8 : 0))])), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    if (b % 4 == 3) asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" :: "r"(address_of(&tile[(lane % 16) * 64])), "r"(r[0]), "r"(r[1]) : "memory");
  }
  __syncwarp();
  for (int i = lane; i < 512; i += 32) out[blockIdx.x * 512 + i] = *reinterpret_cast<uint4*>(&tile[i * 8]);
}
// sectorwise: launch matrix_turn<<<64, 32>>>(u32[64*2048]=noise, u32[64*2048], 0)
// sectorwise: launch matrix_turn<<<64, 32>>>(u32[64*2048]=noise, u32[64*2048], 1)

extern "C" __global__ void staged_sum(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ __align__(16) float ring[4][256];
  int tiles = n / 256, t = threadIdx.x;
  float sum = 0;
  auto fetch = [&](int tile) { if (tile < tiles) copy_async<4>(&ring[tile / gridDim.x % 4][t], &in[(size_t)tile * 256 + t]); commit(); };
  int tile = blockIdx.x;
  for (int k = 0; k < 3; ++k) fetch(tile + k * gridDim.x);
  for (; tile < tiles; tile += gridDim.x) {
    fetch(tile + 3 * gridDim.x);
    wait<3>();
    __syncthreads();
    sum += ring[tile / gridDim.x % 4][255 - t];
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = sum;
}
// sectorwise: launch staged_sum<<<132, 256>>>(f32[1<<20]=noise, f32[132*256], 1048576)
// sectorwise: launch staged_sum<<<7, 256>>>(f32[20480]=noise, f32[7*256], 20480)

extern "C" __global__ void halo_async(const float* __restrict__ in, float* __restrict__ out, int width, int height) {
  __shared__ __align__(16) float tile[10][36];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, t = threadIdx.y * 32 + threadIdx.x;
  for (int i = t; i < 10 * 34; i += 256) {
    int ly = i / 34, lx = i % 34, x = x0 + lx - 1, y = y0 + ly - 1;
    bool inside = x >= 0 && y >= 0 && x < width && y < height;
    copy_async<4>(&tile[ly][lx], inside ? &in[y * width + x] : in, inside);
  }
  commit();
  wait<0>();
  __syncthreads();
  int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
  float sum = 0;
  for (int dy = 0; dy < 3; ++dy) for (int dx = 0; dx < 3; ++dx) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
  if (x < width && y < height) out[y * width + x] = sum / 9;
}
// sectorwise: launch halo_async<<<(20, 60), (32, 8)>>>(f32[640*480]=noise, f32[640*480], 640, 480)
// sectorwise: launch halo_async<<<(4, 13), (32, 8)>>>(f32[101*99]=noise, f32[101*99], 101, 99)

extern "C" __global__ void copy_pairs(const float2* __restrict__ in, const int* __restrict__ index, float2* __restrict__ out) {
  __shared__ float2 rows[128];
  int t = threadIdx.x, at = blockIdx.x * 128 + t;
  copy_async<8>(&rows[(t * 5) % 128], &in[index[at]]);
  commit();
  wait<0>();
  __syncthreads();
  out[at] = rows[t];
}
// sectorwise: launch copy_pairs<<<256, 128>>>(f32[65536]=noise, i32[32768]=perm(1), f32[65536])

extern "C" __global__ void tiled_bounds(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][16];
  int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    as[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0;
    bs[y][x] = col < n && k0 + y < k ? b[(k0 + y) * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
// sectorwise: launch tiled_bounds<<<(19, 7), (16, 16)>>>(f32[100*77]=noise, f32[77*300]=noise, f32[100*300], 100, 300, 77)
// sectorwise: launch tiled_bounds<<<(64, 64), (16, 16)>>>(f32[1024*1024]=noise, f32[1024*1024]=noise, f32[1024*1024], 1024, 1024, 1024)

extern "C" __global__ void register_tiles(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n, int k) {
  __shared__ float as[8][128], bs[8][128];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 128, col0 = blockIdx.x * 128;
  float acc[8][8] = {};
  for (int k0 = 0; k0 < k; k0 += 8) {
    float4 v = *reinterpret_cast<const float4*>(&a[(size_t)(row0 + t / 2) * k + k0 + 4 * (t % 2)]);
    as[4 * (t % 2)][t / 2] = v.x; as[4 * (t % 2) + 1][t / 2] = v.y; as[4 * (t % 2) + 2][t / 2] = v.z; as[4 * (t % 2) + 3][t / 2] = v.w;
    *reinterpret_cast<float4*>(&bs[t / 32][4 * (t % 32)]) = *reinterpret_cast<const float4*>(&b[(size_t)(k0 + t / 32) * n + col0 + 4 * (t % 32)]);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float x[8], y[8];
      for (int j = 0; j < 8; ++j) { x[j] = as[i][ty * 8 + j]; y[j] = bs[i][tx * 8 + j]; }
      for (int p = 0; p < 8; ++p) for (int q = 0; q < 8; ++q) acc[p][q] += x[p] * y[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 8; ++p) for (int q = 0; q < 8; q += 4)
    *reinterpret_cast<float4*>(&c[(size_t)(row0 + ty * 8 + p) * n + col0 + tx * 8 + q]) = make_float4(acc[p][q], acc[p][q + 1], acc[p][q + 2], acc[p][q + 3]);
}
// sectorwise: launch register_tiles<<<(4, 4), 256>>>(f32[512*128]=noise, f32[128*512]=noise, f32[512*512], 512, 128)
// sectorwise: launch register_tiles<<<(16, 16), 256>>>(f32[2048*512]=noise, f32[512*2048]=noise, f32[2048*2048], 2048, 512)
