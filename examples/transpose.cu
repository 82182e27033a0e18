// Three ways to transpose a square matrix of floats: what each of them costs in memory.
//
//   sectorwise check examples/transpose.cu
//
// sectorwise: launch transpose_naive<<<(16, 16), (32, 8)>>>(f32[512*512]=arange, f32[512*512], n=512)
// sectorwise: launch transpose_tile<<<(16, 16), (32, 8)>>>(f32[512*512]=arange, f32[512*512], n=512)
// sectorwise: launch transpose_padded<<<(16, 16), (32, 8)>>>(f32[512*512]=arange, f32[512*512], n=512)

constexpr int kTile = 32;  // a block moves a tile of 32 x 32 elements ...
constexpr int kRows = 8;   // ... with 32 x 8 threads, so each thread moves four

// Reads along rows and writes along columns: the 32 lanes of a warp store to 32 different rows, so that each of them
// touches a sector of 32 bytes for the sake of 4.
extern "C" __global__ void transpose_naive(const float* in, float* out, int n) {
    int x = blockIdx.x * kTile + threadIdx.x;
    int y = blockIdx.y * kTile + threadIdx.y;
    for (int j = 0; j < kTile; j += kRows) {
        float value = in[(y + j) * n + x];
        out[x * n + y + j] = value;
    }
}

// Turns the tile in shared memory, so that reads and writes of global memory both run along rows. But a column of a
// tile that is 32 words wide lies in a single bank: its 32 lanes are served one after the other.
extern "C" __global__ void transpose_tile(const float* in, float* out, int n) {
    __shared__ float tile[kTile][kTile];
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

// One word of padding a row moves each row on by a bank, and the conflict is gone.
extern "C" __global__ void transpose_padded(const float* in, float* out, int n) {
    __shared__ float tile[kTile][kTile + 1];
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
