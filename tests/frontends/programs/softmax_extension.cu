// An extension for PyTorch: wrappers around tensors, dispatch by type, a module of pybind11.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

#include <limits>
#include <type_traits>

#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda() && x.is_contiguous(), #x " must be a contiguous CUDA tensor")

template <typename scalar_t>
__device__ __forceinline__ scalar_t warp_max(scalar_t value) {
    static_assert(std::is_same<scalar_t, float>::value, "floats only");
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, mask));
    return value;
}

template <typename scalar_t, int kWarps>
__global__ void softmax_kernel(const scalar_t *__restrict__ in, scalar_t *__restrict__ out, int columns) {
    const int row = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
    scalar_t largest = -std::numeric_limits<scalar_t>::infinity(), sum = 0;
    for (int i = lane; i < columns; i += 32) largest = max(largest, in[row * columns + i]);
    largest = warp_max(largest);
    for (int i = lane; i < columns; i += 32) sum += __expf(in[row * columns + i] - largest);
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, mask);
    for (int i = lane; i < columns; i += 32) out[row * columns + i] = __expf(in[row * columns + i] - largest) / sum;
}

torch::Tensor softmax(torch::Tensor in) {
    CHECK_INPUT(in);
    auto out = torch::empty_like(in);
    AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "softmax", ([&] {
        softmax_kernel<scalar_t, 4><<<in.size(0) / 4, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
            in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.size(1));
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("softmax", &softmax, "softmax of rows");
}
