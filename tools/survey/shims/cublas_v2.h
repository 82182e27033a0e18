// Enough of a library's interface for files to compile; none of it is called.
#pragma once
#include <cuda_runtime.h>
#include <library_types.h>
typedef struct cublasContext *cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED } cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C } cublasOperation_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_TF32_TENSOR_OP_MATH } cublasMath_t;
typedef enum { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_TF32 } cublasComputeType_t;
template <class... T> cublasStatus_t cublasCreate(T...);
template <class... T> cublasStatus_t cublasDestroy(T...);
template <class... T> cublasStatus_t cublasSetMathMode(T...);
template <class... T> cublasStatus_t cublasSetStream(T...);
template <class... T> cublasStatus_t cublasGemmEx(T...);
template <class... T> cublasStatus_t cublasSgemm(T...);
template <class... T> cublasStatus_t cublasDgemm(T...);
template <class... T> cublasStatus_t cublasHgemm(T...);
template <class... T> cublasStatus_t cublasSgemv(T...);
template <class... T> cublasStatus_t cublasSaxpy(T...);
template <class... T> cublasStatus_t cublasSdot(T...);
