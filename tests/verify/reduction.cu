// What tests/verify/reduction.ncu-rep counted: sums in shared memory, by a tree that meets bank conflicts and by one
// that does not, each added up with an atomic.

template <bool kInterleaved>
__device__ void sum(const int* in, int* out, int n) {
    __shared__ int partial[256];
    int lane = threadIdx.x;
    int i = blockIdx.x * 256 + lane;
    partial[lane] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        int place = kInterleaved ? 2 * step * lane : lane;
        int other = kInterleaved ? place + step : lane + 128 / step;
        bool adds = kInterleaved ? place < 256 : lane < 128 / step;
        if (adds) {
            partial[place] += partial[other];
        }
        __syncthreads();
    }
    if (lane == 0) {
        atomicAdd(out, partial[0]);
    }
}

extern "C" __global__ void sum_interleaved(const int* in, int* out, int n) { sum<true>(in, out, n); }

extern "C" __global__ void sum_halving(const int* in, int* out, int n) { sum<false>(in, out, n); }
