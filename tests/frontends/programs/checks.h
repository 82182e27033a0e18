// A header of one's own, with code for both sides.
#pragma once
#include <chrono>
#include <stdexcept>
#include <string>
#include "not_installed_here.h"

inline void check(cudaError_t error, const std::string &what) {
    if (error != cudaSuccess) throw std::runtime_error(what + ": " + cudaGetErrorString(error));
}

class Timer {
    std::chrono::steady_clock::time_point start_;

  public:
    Timer() : start_{std::chrono::steady_clock::now()} {}
    double ms() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }
};

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}
