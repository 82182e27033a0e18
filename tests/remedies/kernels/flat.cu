// A transpose whose tile is declared flat, and indexed by a pitch.
//
// sectorwise: launch flat<<<(2, 2), (32, 8)>>>(f32[64*64]=arange, f32[64*64], n=64)

constexpr int kPitch = 32;

extern "C" __global__ void flat(const float* in, float* out, int n) {
    __shared__ float tile[32 * kPitch];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[(threadIdx.y + j) * kPitch + threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x * kPitch + threadIdx.y + j];
}
