// Reads a buffer that is larger than all caches, so that nothing else is left in them.

extern "C" __global__ void flush(const float4* in, float* out) {
    float sum = 0;
    for (int i = 0; i < 16; ++i) {
        float4 value = in[(i * gridDim.x + blockIdx.x) * 256 + threadIdx.x];
        sum += value.x + value.y + value.z + value.w;
    }
    if (sum == 12345.0f) out[0] = sum;
}
