// A transpose whose tile is a class that works out its own indices.
//
// sectorwise: launch turn<<<(4, 4), (32, 8)>>>(f32[128*128]=arange, f32[128*128], n=128)

struct Tile {
    float v[1024];
    __device__ float& at(int r, int c) { return v[(r << 5) | c]; }
};

extern "C" __global__ void turn(const float* in, float* out, int n) {
    __shared__ Tile tile;
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile.at(threadIdx.y + j, threadIdx.x) = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile.at(threadIdx.x, threadIdx.y + j);
}
