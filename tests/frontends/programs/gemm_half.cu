// Halves, tensor cores through wmma, and a library for the host that is not installed.
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

using namespace nvcuda;

#define M_TILE 16
typedef struct {
    int m, n, k;
    cublasHandle_t handle;
} Problem;

static __inline__ double seconds() {
    struct timeval now;
    gettimeofday(&now, NULL);
    return now.tv_sec + 1e-6 * now.tv_usec;
}

__global__ void gemm(const half *a, const half *b, float *c, int n, int k) {
    int row = blockIdx.y * M_TILE, column = blockIdx.x * M_TILE;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += M_TILE) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

__global__ void to_half(half *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(in[i]);
}

void run(Problem *p, half *a, half *b, float *c) {
    float alpha = 1.0f, beta = 0.0f;
    cublasGemmEx(p->handle, CUBLAS_OP_N, CUBLAS_OP_N, p->n, p->m, p->k, &alpha, b, CUDA_R_16F, p->n, a, CUDA_R_16F, p->k,
                 &beta, c, CUDA_R_32F, p->n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP);
    gemm<<<dim3(p->n / 16, p->m / 16), 32>>>(a, b, c, p->n, p->k);
}

int main() {
    Problem p = {512, 512, 512, 0};
    cublasCreate(&p.handle);
    half *a = 0, *b = 0;
    float *c = 0;
    double start = seconds();
    run(&p, a, b, c);
    printf("%f s\n", seconds() - start);
    return EXIT_SUCCESS;
}
