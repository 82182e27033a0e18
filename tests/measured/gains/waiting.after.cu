// Few warps, each of which waits for every load before it begins the next.
//
// sectorwise: launch waiting<<<132, 64>>>(f32[132*64*128]=uniform(1), f32[132*64], rounds=128)
// sectorwise: launch waiting<<<132, 64>>>(f32[132*64*2048]=uniform(1), f32[132*64], rounds=2048)

extern "C" __global__ void waiting(const float* __restrict__ in, float* out, int rounds) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < rounds; ++k) sum = sum * 0.5f + in[k * 132 * 64 + i];
    out[i] = sum;
}
