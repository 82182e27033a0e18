// Kernels whose results NumPy computes too.

constexpr int kTile = 16;

__global__ void transpose(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void gemv(const float4* matrix, const float4* vector, float* out, int quads) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < quads; i += 32) {
        float4 a = matrix[row * quads + i], b = vector[i];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x == 0) out[row] = sum;
}

__global__ void gemm(const float* a, const float* b, float* c, int n) {
    __shared__ float left[kTile][kTile], right[kTile][kTile];
    int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += kTile) {
        left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void reduce(const int* in, long long* total, int n) {
    __shared__ long long partial[256];
    long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd((unsigned long long*)total, (unsigned long long)partial[0]);
}

__global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void gather(const double* in, const int* index, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[index[i]];
}
