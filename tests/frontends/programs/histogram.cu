// A class that owns memory, constant memory, an enumeration, and options that are parsed.
#include <cstdint>
#include <getopt.h>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>

enum class Mode : int { kShared = 0, kGlobal };
enum { kBins = 64, kThreads = 128 };

__constant__ uint8_t shifts[4];
__device__ unsigned int launches = 0;

template <typename T>
class DeviceBuffer {
  public:
    explicit DeviceBuffer(size_t count) : count_(count) { cudaMalloc(&data_, count * sizeof(T)); }
    ~DeviceBuffer() { cudaFree(data_); }
    DeviceBuffer(const DeviceBuffer &) = delete;
    T *get() const { return data_; }

  private:
    T *data_ = nullptr;
    size_t count_;
};

static inline int bin_of(uint8_t value) { return value >> 2; }

template <Mode MODE>
__global__ __launch_bounds__(kThreads) void histogram(const uint8_t *values, unsigned int *bins, int n) {
    __shared__ unsigned int local[kBins];
    if (threadIdx.x < kBins) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
        int bin = bin_of(values[i]) >> shifts[0];
        if (MODE == Mode::kShared) atomicAdd(&local[bin], 1u);
        else atomicAdd(&bins[bin], 1u);
    }
    __syncthreads();
    if (MODE == Mode::kShared && threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

Mode parse(int argc, char **argv) {
    static const std::unordered_map<std::string, Mode> modes = {{"shared", Mode::kShared}, {"global", Mode::kGlobal}};
    int option;
    while ((option = getopt(argc, argv, "m:")) != -1) {
        if (option == 'm') return modes.at(optarg);
    }
    return Mode::kShared;
}

int main(int argc, char *argv[]) {
    std::mt19937 generator{42};
    auto values = std::make_unique<uint8_t[]>(1 << 16);
    for (int i = 0; i < (1 << 16); ++i) values[i] = generator() & 0xff;
    DeviceBuffer<uint8_t> in(1 << 16);
    DeviceBuffer<unsigned int> bins(kBins);
    uint8_t none[4] = {0, 0, 0, 0};
    cudaMemcpyToSymbol(shifts, none, sizeof(none));
    switch (parse(argc, argv)) {
        case Mode::kShared: histogram<Mode::kShared><<<32, kThreads>>>(in.get(), bins.get(), 1 << 16); break;
        case Mode::kGlobal: histogram<Mode::kGlobal><<<32, kThreads>>>(in.get(), bins.get(), 1 << 16); break;
    }
}
