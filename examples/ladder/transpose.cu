// Five ways to transpose a matrix of n x n floats, each better than the one before. n is a multiple of 64.

// sectorwise: launch naive<<<(64, 256), (32, 8)>>>(f32[2048*2048], f32[2048*2048], n=2048)
// Rung 1. A warp reads a row of 32 neighbours and writes a column: 32 sectors for 128 bytes.
extern "C" __global__ void naive(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}

// sectorwise: launch tile<<<(64, 64), (32, 8)>>>(f32[2048*2048], f32[2048*2048], n=2048)
// Rung 2. Turned in shared memory, so rows are read and rows are written. But a column of the tile is one bank.
extern "C" __global__ void tile(const float* in, float* out, int n) {
  __shared__ float held[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) held[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = held[threadIdx.x][threadIdx.y + j];
}

// sectorwise: launch padded<<<(64, 64), (32, 8)>>>(f32[2048*2048], f32[2048*2048], n=2048)
// Rung 3. One more element a row moves each row on by a bank: a column meets all 32.
extern "C" __global__ void padded(const float* in, float* out, int n) {
  __shared__ float held[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) held[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = held[threadIdx.x][threadIdx.y + j];
}

// sectorwise: launch swizzled<<<(64, 64), (32, 8)>>>(f32[2048*2048], f32[2048*2048], n=2048)
// Rung 4. The same without the extra memory: column c of row r stands at c ^ r.
extern "C" __global__ void swizzled(const float* in, float* out, int n) {
  __shared__ float held[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    int r = threadIdx.y + j;
    held[r][threadIdx.x ^ r] = in[(y + j) * n + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = held[threadIdx.x][(threadIdx.y + j) ^ threadIdx.x];
}

// sectorwise: launch vectorised<<<(32, 32), 256>>>(f32[2048*2048], f32[2048*2048], n=2048)
// Rung 5. 16 bytes a lane on both sides: a thread turns 4 x 4 elements in its registers, four loads in flight, and cells
// of 16 bytes stand at swizzled columns. A quarter of the instructions, four times the bytes in flight.
extern "C" __global__ void vectorised(const float* in, float* out, int n) {
  __shared__ float4 held[64][16];
  int low = threadIdx.x % 16, high = threadIdx.x / 16;
  const float* from = in + (blockIdx.y * 64 + high * 4) * n + blockIdx.x * 64 + low * 4;
  float4 a = *(const float4*)from, b = *(const float4*)(from + n);
  float4 c = *(const float4*)(from + 2 * n), d = *(const float4*)(from + 3 * n);
  int column = high ^ low & 7;
  held[low * 4 + 0][column] = make_float4(a.x, b.x, c.x, d.x);
  held[low * 4 + 1][column] = make_float4(a.y, b.y, c.y, d.y);
  held[low * 4 + 2][column] = make_float4(a.z, b.z, c.z, d.z);
  held[low * 4 + 3][column] = make_float4(a.w, b.w, c.w, d.w);
  __syncthreads();
  float* to = out + (blockIdx.x * 64) * n + blockIdx.y * 64 + low * 4;
  for (int j = 0; j < 64; j += 16) *(float4*)(to + (high + j) * n) = held[high + j][low ^ (high + j) / 4 & 7];
}
