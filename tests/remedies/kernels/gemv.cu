// A product of matrix and vector with a thread a row: the lanes of a warp lie a whole row apart.
//
// sectorwise: launch gemv<<<2, 64>>>(f32[128*100]=uniform(1), f32[100]=uniform(2), f32[128], n=100)

extern "C" __global__ void gemv(const float* matrix, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += matrix[row * n + k] * x[k];
    y[row] = sum;
}
