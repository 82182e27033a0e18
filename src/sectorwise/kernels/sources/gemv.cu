// y [batch, rows] = x [batch, depth] W^T, W [rows, depth] of the type of x; sums are in float.
#include "numbers.cuh"

// A vector of elements of T, as floats.
template <typename T, int BYTES> struct Vector {
  static constexpr int COUNT = BYTES / (int)sizeof(T);
  Word<BYTES> word;

  __device__ void clear() { word = Word<BYTES>(); }
  __device__ void widen_into(float (&values)[COUNT]) const {
    if constexpr (BYTES == 16 && sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float2 both = unpack<T>(pick(word, i));
        values[2 * i] = both.x;
        values[2 * i + 1] = both.y;
      }
    } else if constexpr (BYTES == 16) {
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = __uint_as_float(pick(word, i));
    } else {
      values[0] = widen(reinterpret_cast<const T&>(word));
    }
  }
};

// Sums of a warp's lanes that differ in the bits from `lowest` up; all lanes get them.
template <int COUNT> __device__ void add_lanes(float (&sums)[COUNT], int lowest) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    for (int bit = 16; bit >= lowest; bit /= 2) sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], bit);
}

// Strides of y in elements.
struct Output {
  int64 batch_step, row_step;
};

// W by rows: a block's threads lie side by side along the depth of ROWS rows, and each has LOADS x ROWS loads of BYTES
// in flight. blockIdx.y counts groups of BATCH. Rows and inputs beyond the last are the last again, and not stored. Where
// nothing ahead on the stream writes the weights (`ready`), the first loads of them are under way before that has ended.
// Every byte of W takes part in `batch` products, whatever the tile: the ridge is out of reach (SW502, here and below).
template <typename T, int BYTES, int BATCH, int ROWS, int LOADS>
__global__ void __launch_bounds__(256)
gemv_rows(
    const T* weights, const T* x, T* y, int64 rows, int depth, int64 weights_row, int64 x_row, Output output, int batch,
    int ready) {
  typedef Vector<T, BYTES> V;
  int64 first_row = (int64)blockIdx.x * ROWS;
  int first_input = blockIdx.y * BATCH, vectors = depth / V::COUNT;
  float sums[BATCH * ROWS] = {};
  V held[LOADS][ROWS];
  int first = threadIdx.x;
  auto load = [&]() {
#pragma unroll
    for (int l = 0; l < LOADS; ++l)
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        int at = first + l * blockDim.x;
        int64 row = min(first_row + r, rows - 1);
        held[l][r].clear();
        if (at < vectors)
          held[l][r].word = load_once(reinterpret_cast<const Word<BYTES>*>(weights + row * weights_row) + at);
      }
  };
  let_next_begin();
  if (!ready) wait_for_previous();
  load();
  wait_for_previous();
  while (true) {
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      const T* input = x + min(first_input + b, batch - 1) * x_row;
      V given[LOADS];
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        int at = first + l * blockDim.x;
        given[l].clear();
        if (at < vectors) given[l].word = reinterpret_cast<const Word<BYTES>*>(input)[at];
      }
#pragma unroll
      for (int l = 0; l < LOADS; ++l) {
        float inputs[V::COUNT], values[V::COUNT];
        given[l].widen_into(inputs);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          held[l][r].widen_into(values);
#pragma unroll
          for (int i = 0; i < V::COUNT; ++i) sums[b * ROWS + r] += values[i] * inputs[i];
        }
      }
    }
    first += blockDim.x * LOADS;
    if (first >= vectors) break;
    load();
  }
  int last = vectors * V::COUNT + threadIdx.x;
  if (last < depth)
    for (int b = 0; b < BATCH; ++b)
      for (int r = 0; r < ROWS; ++r)
        sums[b * ROWS + r] += widen(weights[min(first_row + r, rows - 1) * weights_row + last]) *
                              widen(x[min(first_input + b, batch - 1) * x_row + last]);
  add_lanes(sums, 1);
  __shared__ float partial[8][BATCH * ROWS];
  if (threadIdx.x % 32 == 0)
    for (int i = 0; i < BATCH * ROWS; ++i) partial[threadIdx.x / 32][i] = sums[i];
  __syncthreads();
  if (threadIdx.x >= BATCH * ROWS) return;
  int64 row = first_row + threadIdx.x % ROWS;
  int input = first_input + (int)threadIdx.x / ROWS;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < 8; ++warp)
    if (warp < (int)blockDim.x / 32) sum += partial[warp][threadIdx.x];
  if (row < rows && input < batch) y[input * output.batch_step + row * output.row_step] = round_to<T>(sum);
}

// W by columns, `weights_step` elements from one depth to the next: ACROSS lanes lie side by side along the rows, each
// with a vector of them, the others of the block below, along the depth; LOADS loads are in flight a lane.
template <typename T, int BYTES, int BATCH, int ACROSS, int LOADS, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
gemv_columns(
    const T* __restrict__ weights, const T* __restrict__ x, T* __restrict__ y, int64 rows, int depth,
    int64 weights_step, int64 x_row, int64 x_step, Output output, int batch) {
  typedef Vector<T, BYTES> V;
  constexpr int COUNT = V::COUNT * BATCH;
  int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
  constexpr int DOWNS = 32 * WARPS / ACROSS;
  int first_input = blockIdx.y * BATCH;
  int64 row = ((int64)blockIdx.x * ACROSS + across) * V::COUNT;
  float sums[COUNT] = {};
  for (int first = down; first < depth && row < rows; first += DOWNS * LOADS) {
    V held[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l) {
      int at = first + l * DOWNS;
      held[l].clear();
      if (at < depth) held[l].word = load_once(reinterpret_cast<const Word<BYTES>*>(weights + at * weights_step + row));
    }
#pragma unroll
    for (int l = 0; l < LOADS; ++l) {
      int at = first + l * DOWNS;
      if (at >= depth) break;
      float values[V::COUNT];
      held[l].widen_into(values);
#pragma unroll
      for (int b = 0; b < BATCH; ++b) {
        float input = widen(x[min(first_input + b, batch - 1) * x_row + at * x_step]);
#pragma unroll
        for (int i = 0; i < V::COUNT; ++i) sums[b * V::COUNT + i] += values[i] * input;
      }
    }
  }
  add_lanes(sums, ACROSS);
  __shared__ float partial[WARPS][COUNT][ACROSS + 1];
  if (threadIdx.x % 32 < ACROSS)
    for (int i = 0; i < COUNT; ++i) partial[threadIdx.x / 32][i][across] = sums[i];
  __syncthreads();
  for (int place = threadIdx.x; place < COUNT * ACROSS; place += 32 * WARPS) {
    int lane = place / V::COUNT % ACROSS, number = place % V::COUNT, input = place / (V::COUNT * ACROSS);
    float sum = 0;
    for (int warp = 0; warp < WARPS; ++warp) sum += partial[warp][input * V::COUNT + number][lane];
    int64 at = ((int64)blockIdx.x * ACROSS + lane) * V::COUNT + number;
    input += first_input;
    if (at < rows && input < batch) y[input * output.batch_step + at * output.row_step] = round_to<T>(sum);
  }
}
