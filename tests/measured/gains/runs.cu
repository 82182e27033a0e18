// Each thread takes four neighbouring floats, one by one: the compiler may not assume that they begin at a vector.
//
// sectorwise: launch runs<<<4, 128>>>(f32[4*512]=uniform(1), f32[4*512])
// sectorwise: launch runs<<<65536, 128>>>(f32[4*8388608]=uniform(1), f32[4*8388608])

extern "C" __global__ void runs(const float* in, float* __restrict__ out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float part[4];
    for (int k = 0; k < 4; ++k) part[k] = in[4 * i + k];
    for (int k = 0; k < 4; ++k) out[4 * i + k] = part[k] * part[3 - k];
}
