// A product of matrices whose lanes run along the rows of C: each loads and stores a row of its own.
//
// sectorwise: launch product<<<(4, 2), (16, 32)>>>(f32[64*64]=uniform(1), f32[64*64]=uniform(2), f32[64*64], n=64)
// sectorwise: launch product<<<(32, 16), (16, 32)>>>(f32[512*512]=uniform(1), f32[512*512]=uniform(2), f32[512*512], n=512)

extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
