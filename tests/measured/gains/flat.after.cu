// Sums over the columns of tiles that are declared flat, and walked by 32 lanes in 32 rows.
//
// sectorwise: launch rows<<<2, 256>>>(f32[2*8192]=uniform(1), f32[2*256])
// sectorwise: launch rows<<<4096, 256>>>(f32[4096*8192]=uniform(1), f32[4096*256])

constexpr int kPitch = 32;

extern "C" __global__ void rows(const float* in, float* out) {
    __shared__ float tile[(256 * kPitch) / kPitch * (kPitch + 1)];
    const float* from = in + blockIdx.x * 8192;
    for (int k = 0; k < 32; ++k) {
        int at = k * 256 + threadIdx.x;
        tile[at / 32 * (kPitch + 1) + at % 32] = from[at];
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum = sum * 0.5f + tile[threadIdx.x * (kPitch + 1) + k];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
