// Compiled by NVRTC 13.0 as a relocatable object for sm_90 and linked by nvJitLink 13.0: functions in sections of their
// own, called and returned from by absolute addresses.
__device__ int factors[4] = {1, 2, 3, 4};

__device__ __noinline__ int scale(int x) {
    return x * 3 + factors[x & 3];
}

__device__ __noinline__ int climb(int x) {
    return x < 2 ? x : climb(x - 1) + scale(x - 2);
}

extern "C" __global__ void both(int *o, double *d) {
    o[0] = climb(o[1]);
    d[0] = d[1] / d[2];
}

extern "C" __global__ void one(int *o) {
    o[0] = scale(o[1]);
}
