// CUB on both sides: collectives in a kernel, a device-wide reduction on the host.
#include <cub/cub.cuh>
#include <iostream>

template <int kThreads>
__global__ void block_sum(const int *in, int *out) {
    using Reduce = cub::BlockReduce<int, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(in[blockIdx.x * kThreads + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

int main() {
    int *in = nullptr, *out = nullptr;
    void *temporary = nullptr;
    size_t bytes = 0;
    cub::DeviceReduce::Sum(temporary, bytes, in, out, 1 << 20);
    cudaMalloc(&temporary, bytes);
    cub::DeviceReduce::Sum(temporary, bytes, in, out, 1 << 20);
    block_sum<128><<<8192, 128>>>(in, out);
    std::cout << cudaGetErrorString(cudaGetLastError()) << '\n';
}
