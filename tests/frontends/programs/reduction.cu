// Cooperative groups, dynamic shared memory, and a header that has host code too.
#include <algorithm>
#include <cooperative_groups.h>
#include <iomanip>
#include <iostream>
#include <numeric>

#include "checks.h"

namespace cg = cooperative_groups;

namespace {
__global__ void reduce(const float *__restrict__ in, float *out, int n) {
    extern __shared__ float partial[];
    cg::thread_block block = cg::this_thread_block();
    int i = block.group_index().x * block.size() + block.thread_rank();
    float sum = warp_sum(i < n ? in[i] : 0.0f);
    if (block.thread_rank() % 32 == 0) partial[block.thread_rank() / 32] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < block.size() / 32; warp++) total += partial[warp];
        out[blockIdx.x] = total;
    }
}

double expected(const std::vector<float> &values) { return std::accumulate(values.begin(), values.end(), 0.0); }
}  // namespace

int main() {
    std::vector<float> values(4096, 0.5f);
    float *in, *out;
    check(cudaMalloc((void **)&in, 4096 * 4), "cudaMalloc");
    check(cudaMalloc((void **)&out, 64), "cudaMalloc");
    Timer timer;
    reduce<<<16, 256, 8 * sizeof(float)>>>(in, out, 4096);
    check(cudaGetLastError(), "reduce");
    std::cout << std::setprecision(3) << timer.ms() << " ms, " << expected(values) << "\n";
}
