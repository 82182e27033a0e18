// A transpose through a tile whose columns lie in one bank each.
//
// sectorwise: launch transpose<<<(4, 4), (32, 8)>>>(f32[128*128]=arange, f32[128*128], n=128)
// sectorwise: launch transpose<<<(128, 128), (32, 8)>>>(f32[4096*4096]=arange, f32[4096*4096], n=4096)

extern "C" __global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][(threadIdx.x) ^ ((threadIdx.y + j) % 32)] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][(threadIdx.y + j) ^ ((threadIdx.x) % 32)];
}
