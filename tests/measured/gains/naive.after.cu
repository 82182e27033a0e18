// A transpose that reads along rows and writes along columns.
//
// sectorwise: launch transpose<<<(4, 4), (32, 8)>>>(f32[128*128]=arange, f32[128*128], n=128)
// sectorwise: launch transpose<<<(128, 128), (32, 8)>>>(f32[4096*4096]=arange, f32[4096*4096], n=4096)

extern "C" __global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][33];  // a word more than 32: columns walk over the banks
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < 4096 && y + j < 4096) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * 4096 + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < 4096 && y + j < 4096) out[(y + j) * 4096 + x] = tile[threadIdx.x][threadIdx.y + j];
}
