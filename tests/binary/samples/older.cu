// Compiled by NVRTC 11.8 for sm_75 and by NVRTC 12.1 for sm_90, whose files and code differ from those of 13.0.
__device__ int counts[64];

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void older(int *o, int n) {
    asm volatile("bar.sync 2, 64;");
    o[0] = counts[n] + fibonacci(n);
    if (n > 1000) {
        printf("%d\n", n);
    }
}
