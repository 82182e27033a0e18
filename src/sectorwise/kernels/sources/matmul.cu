// C [m, n] = A [m, k] B [k, n] in 16-bit floats, one or a batch; sums are in float.
#include "numbers.cuh"

// From one matrix of a batch to the next, in elements; blocks of one of them have the same blockIdx.y.
struct Apart {
  int64 a, b, c;
};

// 16 bytes to shared memory without a register; zeros where they lie outside.
__device__ void copy_async(uint4* to, const void* from, bool inside) {
  unsigned int address = (unsigned int)__cvta_generic_to_shared(to), bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
}

// Four matrices of 8 x 8, a row of each from each lane's address; turned where TURNED.
template <bool TURNED> __device__ void load_four(unsigned int (&words)[4], const uint4* from) {
  unsigned int address = (unsigned int)__cvta_generic_to_shared(from);
  if constexpr (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address));
}

constexpr int THREADS = 128, ACROSS = 128, DEPTH = 64, STAGES = 3;

// A tile as it lies in memory: LINES lines of CELLS pieces of 16 bytes, each piece at a column that is exclusive-ored with
// its line, so that the eight rows of a matrix, one below the other, meet all banks.
template <int LINES, int CELLS> struct Tile {
  static __device__ int place(int line, int cell) { return line * CELLS + (cell ^ line % 8); }

  // `lines` and `elements` are how far the array reaches from here; a line is `step` elements after the last.
  template <typename T>
  static __device__ void fetch(uint4* to, const T* from, int64 step, int lines, int elements) {
    constexpr int TOGETHER = THREADS / CELLS;
    int first = threadIdx.x / CELLS, cell = threadIdx.x % CELLS;
    const T* at = from + first * step + cell * 8;
    if (cell * 8 >= elements) lines = 0;
#pragma unroll
    for (int line = first; line < first + LINES; line += TOGETHER, at += TOGETHER * step)
      copy_async(to + place(line, cell), line < lines ? at : from, line < lines);
  }
};

// A block has DOWN x 128 of C, four warps in two rows of two, three stages of 64 of the depth. A lies by rows or by
// columns, and so does B: ldmatrix turns what mma wants turned. Blocks go down eight tiles before they go across, so that
// those that run together read the same of A and B.
template <typename T, int DOWN, bool A_BY_ROWS, bool B_BY_ROWS>
__global__ void __launch_bounds__(THREADS, 2)
matmul_tensor(  // sectorwise: allow SW402, SW502
    const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k, int64 a_step,
    int64 b_step, int64 c_row, int64 c_column, int tiles_down, int tiles_across, Apart apart) {
  typedef Tile<A_BY_ROWS ? DOWN : DEPTH, A_BY_ROWS ? DEPTH / 8 : DOWN / 8> Left;
  typedef Tile<B_BY_ROWS ? DEPTH : ACROSS, B_BY_ROWS ? ACROSS / 8 : DEPTH / 8> Right;
  constexpr int LEFT = DOWN * DEPTH / 8, STAGE = LEFT + ACROSS * DEPTH / 8, ROWS = DOWN / 2;
  extern __shared__ uint4 memory[];
  int band = blockIdx.x / (8 * tiles_across), rest = blockIdx.x % (8 * tiles_across);
  int high = min(8, tiles_down - 8 * band);
  int row = (8 * band + rest % high) * DOWN, column = rest / high * ACROSS;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, down = warp / 2 * ROWS, across = warp % 2 * 64;
  float sums[ROWS / 16][8][4] = {};
  a += blockIdx.y * apart.a, b += blockIdx.y * apart.b, c += blockIdx.y * apart.c;

  auto fetch = [&](int stage, int t) {
    if (t < k) {
      uint4* left = memory + stage * STAGE;
      if (A_BY_ROWS)
        Left::fetch(left, a + row * a_step + t, a_step, m - row, k - t);
      else
        Left::fetch(left, a + t * a_step + row, a_step, k - t, m - row);
      if (B_BY_ROWS)
        Right::fetch(left + LEFT, b + t * b_step + column, b_step, k - t, n - column);
      else
        Right::fetch(left + LEFT, b + column * b_step + t, b_step, n - column, k - t);
    }
    asm volatile("cp.async.commit_group;");
  };

  for (int stage = 0; stage < STAGES - 1; ++stage) fetch(stage, stage * DEPTH);
  for (int t = 0, stage = 0; t < k; t += DEPTH, stage = (stage + 1) % STAGES) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
    __syncthreads();
    fetch((stage + STAGES - 1) % STAGES, t + (STAGES - 1) * DEPTH);
    const uint4 *left = memory + stage * STAGE, *right = left + LEFT;
#pragma unroll
    for (int i = 0; i < DEPTH / 16; ++i) {
      unsigned int rows[ROWS / 16][4], columns[4][4];
#pragma unroll
      for (int u = 0; u < ROWS / 16; ++u) {
        int line = A_BY_ROWS ? down + 16 * u + lane % 16 : 16 * i + lane % 8 + lane / 16 * 8;
        int cell = A_BY_ROWS ? 2 * i + lane / 16 : (down + 16 * u) / 8 + lane / 8 % 2;
        load_four<!A_BY_ROWS>(rows[u], left + Left::place(line, cell));
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        int line = B_BY_ROWS ? 16 * i + lane % 16 : across + 16 * u + lane % 8 + lane / 16 * 8;
        int cell = B_BY_ROWS ? (across + 16 * u) / 8 + lane / 16 : 2 * i + lane / 8 % 2;
        load_four<B_BY_ROWS>(columns[u], right + Right::place(line, cell));
      }
#pragma unroll
      for (int u = 0; u < ROWS / 16; ++u)
#pragma unroll
        for (int v = 0; v < 8; ++v)
          multiply_add<T>(sums[u][v], rows[u][0], rows[u][1], rows[u][2], rows[u][3], columns[v / 2][v % 2 * 2],
                          columns[v / 2][v % 2 * 2 + 1]);
    }
  }

  // C through shared memory, so that 16 bytes of a row are stored at once.
  typedef Tile<DOWN, ACROSS / 8> Result;
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  unsigned int* words = reinterpret_cast<unsigned int*>(memory);
#pragma unroll
  for (int u = 0; u < ROWS / 16; ++u)
#pragma unroll
    for (int v = 0; v < 8; ++v)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        int line = down + 16 * u + 8 * h + lane / 4;
        unsigned int low = round_to<T>(sums[u][v][2 * h]).bits, up = round_to<T>(sums[u][v][2 * h + 1]).bits;
        words[Result::place(line, across / 8 + v) * 4 + lane % 4] = low | up << 16;
      }
  __syncthreads();
  bool whole = c_column == 1 && c_row % 8 == 0 && n % 8 == 0 && reinterpret_cast<unsigned long long>(c) % 16 == 0;
#pragma unroll 2
  for (int number = threadIdx.x; number < DOWN * ACROSS / 8; number += THREADS) {
    int line = number / (ACROSS / 8), cell = number % (ACROSS / 8), from = column + 8 * cell;
    if (row + line >= m || from >= n) continue;
    const uint4* held = memory + Result::place(line, cell);
    T* to = c + (row + line) * c_row + from * c_column;
    if (whole)
      *reinterpret_cast<uint4*>(to) = *held;
    else
      for (int i = 0; i < 8 && from + i < n; ++i) to[i * c_column] = reinterpret_cast<const T*>(held)[i];
  }
}

// Any strides and alignment: 16 x 16 of C a block, tiles in shared memory. Slow, and right.
template <typename T>
__global__ void __launch_bounds__(256)
matmul_any(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k, int64 a_row,
           int64 a_column, int64 b_row, int64 b_column, int64 c_row, int64 c_column, int tiles_across, Apart apart) {
  __shared__ float left[16][17], right[16][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  int row = blockIdx.x / tiles_across * 16 + y, column = blockIdx.x % tiles_across * 16 + x;
  float sum = 0;
  a += blockIdx.y * apart.a, b += blockIdx.y * apart.b, c += blockIdx.y * apart.c;
  for (int t = 0; t < k; t += 16) {
    left[y][x] = row < m && t + x < k ? widen(a[row * a_row + (t + x) * a_column]) : 0.0f;
    right[y][x] = column < n && t + y < k ? widen(b[(t + y) * b_row + column * b_column]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * c_row + column * c_column] = round_to<T>(sum);
}
