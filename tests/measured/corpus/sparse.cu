// Sparse linear algebra: rows of given or varying length, blocks, diagonals; columns at random places.
extern "C" __global__ void csr_thread(const float* __restrict__ value, const int* __restrict__ column, const float* __restrict__ x, float* __restrict__ y, int row_length, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < row_length; ++j) {
    int i = row * row_length + j;
    sum += value[i] * x[column[i] % columns];
  }
  y[row] = sum;
}
// sectorwise: launch csr_thread<<<2048, 256>>>(f32[1<<24]=noise, i32[1<<24]=uniform(1), f32[1<<20]=noise, f32[524288], row_length=32, columns=1048576)

extern "C" __global__ void csr_warp(const float* __restrict__ value, const int* __restrict__ column, const float* __restrict__ x, float* __restrict__ y, int row_length, int columns) {
  int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float sum = 0;
  for (int j = lane; j < row_length; j += 32) {
    int i = row * row_length + j;
    sum += value[i] * x[column[i] % columns];
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (!lane) y[row] = sum;
}
// sectorwise: launch csr_warp<<<16384, 256>>>(f32[1<<24]=noise, i32[1<<24]=uniform(2), f32[65536]=noise, f32[131072], row_length=128, columns=65536)

extern "C" __global__ void csr_uneven(const int* __restrict__ lengths, const float* __restrict__ value, const int* __restrict__ column, const float* __restrict__ x, float* __restrict__ y, int columns, int room) {
  int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, length = lengths[row] % room;
  float sum = 0;
  for (int j = lane; j < length; j += 32) {
    size_t i = (size_t)row * room + j;
    sum += value[i] * x[column[i] % columns];
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (!lane) y[row] = sum;
}
// sectorwise: launch csr_uneven<<<8192, 256>>>(i32[65536]=uniform(3), f32[1<<25]=noise, i32[1<<25]=uniform(4), f32[1<<18]=noise, f32[65536], columns=262144, room=512)

extern "C" __global__ void ell_columns(const float* __restrict__ value, const int* __restrict__ column, const float* __restrict__ x, float* __restrict__ y, int rows, int row_length, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < row_length; ++j) {
    int i = j * rows + row;
    sum += value[i] * x[column[i] % columns];
  }
  y[row] = sum;
}
// sectorwise: launch ell_columns<<<4096, 256>>>(f32[1<<24]=noise, i32[1<<24]=uniform(5), f32[1<<20]=noise, f32[1<<20], rows=1048576, row_length=16, columns=1048576)

extern "C" __global__ void diagonals(const float* __restrict__ value, const float* __restrict__ x, float* __restrict__ y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int offset[5] = {-2048, -1, 0, 1, 2048};
  float sum = 0;
#pragma unroll
  for (int d = 0; d < 5; ++d) {
    int c = row + offset[d];
    if (c >= 0 && c < rows) sum += value[d * rows + row] * x[c];
  }
  y[row] = sum;
}
// sectorwise: launch diagonals<<<16384, 256>>>(f32[5*4194304]=noise, f32[1<<22]=noise, f32[1<<22], rows=4194304)

extern "C" __global__ void block_rows(const float* __restrict__ value, const int* __restrict__ column, const float* __restrict__ x, float* __restrict__ y, int blocks_a_row, int block_columns) {
  int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, r = lane / 8, c = lane % 8;
  float sum = 0;
  for (int j = 0; j < blocks_a_row; ++j) {
    int block = row * blocks_a_row + j;
    sum += value[(size_t)block * 32 + lane] * x[column[block] % block_columns * 8 + c];
  }
  for (int o = 4; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (!c) y[row * 4 + r] = sum;
}
// sectorwise: launch block_rows<<<4096, 256>>>(f32[1<<24]=noise, i32[1<<19]=uniform(6), f32[1<<20]=noise, f32[131072], blocks_a_row=16, block_columns=131072)

extern "C" __global__ void coo_scatter(const float* __restrict__ value, const int* __restrict__ row, const int* __restrict__ column, const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&y[row[i] % rows], value[i] * x[column[i] % columns]);
}
// sectorwise: launch coo_scatter<<<16384, 256>>>(f32[1<<22]=noise, i32[1<<22]=uniform(7), i32[1<<22]=uniform(8), f32[1<<20]=noise, f32[1<<20], rows=1048576, columns=1048576)
