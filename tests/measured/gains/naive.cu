// A transpose that reads along rows and writes along columns.
//
// sectorwise: launch transpose<<<(4, 4), (32, 8)>>>(f32[128*128]=arange, f32[128*128], n=128)
// sectorwise: launch transpose<<<(128, 128), (32, 8)>>>(f32[4096*4096]=arange, f32[4096*4096], n=4096)

extern "C" __global__ void transpose(const float* in, float* out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        float value = in[(y + j) * n + x];
        out[x * n + y + j] = value;
    }
}
