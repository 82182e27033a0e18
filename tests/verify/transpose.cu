// What tests/verify/transpose.ncu-rep counted: a transpose through a tile of shared memory, with and without padding.

constexpr int kTile = 32;
constexpr int kRows = 8;

template <int kPitch>
__device__ void transpose_through(float (&tile)[kTile][kPitch], const float* in, float* out, int n) {
    int x = blockIdx.x * kTile + threadIdx.x;
    int y = blockIdx.y * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    }
    __syncthreads();
    int column = blockIdx.y * kTile + threadIdx.x;
    int row = blockIdx.x * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        out[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
    }
}

extern "C" __global__ void transpose_tile(const float* in, float* out, int n) {
    __shared__ float tile[kTile][kTile];
    transpose_through(tile, in, out, n);
}

extern "C" __global__ void transpose_padded(const float* in, float* out, int n) {
    __shared__ float tile[kTile][kTile + 1];
    transpose_through(tile, in, out, n);
}
