// A transpose whose tile lies in dynamic shared memory.
//
// sectorwise: launch turn<<<(4, 4), (32, 8), 4096>>>(f32[128*128]=arange, f32[128*128], n=128)

extern "C" __global__ void turn(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[(threadIdx.y + j) * 32 + threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x * 32 + threadIdx.y + j];
}
