// Unified memory and a check on the host, as in a first lesson.
#include <cmath>
#include <iostream>

using namespace std;

const int kElements = 1 << 20;

__global__ void add(int n, const float *x, float *y) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = blockDim.x * gridDim.x;
    for (int i = index; i < n; i += stride) y[i] = x[i] + y[i];
}

float largest_error(const float *y, int n) {
    float worst = 0.0f;
    for (int i = 0; i < n; i++) worst = fmax(worst, fabs(y[i] - 3.0f));
    return worst;
}

int main(void) {
    float *x, *y;
    cudaMallocManaged(&x, kElements * sizeof(float));
    cudaMallocManaged(&y, kElements * sizeof(float));
    for (int i = 0; i < kElements; i++) {
        x[i] = 1.0f;
        y[i] = 2.0f;
    }
    int blocks = (kElements + 255) / 256;
    add<<<blocks, 256>>>(kElements, x, y);
    cudaDeviceSynchronize();
    cout << "largest error: " << largest_error(y, kElements) << endl;
    cudaFree(x);
    cudaFree(y);
    return 0;
}
