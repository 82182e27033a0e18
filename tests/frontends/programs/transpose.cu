// Templates, events, a macro that checks errors, and branches of the preprocessor that open the same brace.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t status = (call);                                                         \
        if (status != cudaSuccess) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));  \
            exit(EXIT_FAILURE);                                                              \
        }                                                                                    \
    } while (0)

constexpr int kRows = 8;
static int repetitions = 100;

template <int TILE, typename T = float>
__global__ void transpose(T *__restrict__ out, const T *__restrict__ in, uint width, uint height) {
    __shared__ T tile[TILE][TILE + 1];
    uint x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += kRows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += kRows) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

template <int TILE>
float measure(const std::vector<float> &host, int n) {
    cudaEvent_t begin, end;
    float *in, *out, ms;
    CHECK(cudaMalloc(&in, n * n * sizeof(float)));
    CHECK(cudaMalloc(&out, n * n * sizeof(float)));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
#ifdef WARM_UP
    for (int i = 0; i < 2 * repetitions; i++) {
#else
    for (int i = 0; i < repetitions; i++) {
#endif
        transpose<TILE><<<dim3(n / TILE, n / TILE), dim3(TILE, kRows)>>>(out, in, n, n);
    }
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms / repetitions;
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1024;
    std::vector<float> host(n * n);
    auto fill = [&host](float value) { for (auto &each : host) { each = value; } };
    fill(1.0f);
    printf("16: %.3f ms, 32: %.3f ms }\n", measure<16>(host, n), measure<32>(host, n));
}
