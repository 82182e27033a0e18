// Transposes matrices of elements of E bytes: `columns` lie side by side in `from`, `rows` in `to`.
#include "words.cuh"

// 16-byte lines of V elements. A thread turns V x V of them in its registers: V loads in flight, V stores after.
template <int E> struct Lines;

template <> struct Lines<16> {
  static __device__ uint4 turn(const uint4 (&lines)[1], int) { return lines[0]; }
};
template <> struct Lines<8> {
  static __device__ uint4 turn(const uint4 (&lines)[2], int place) {
    const uint4 &a = lines[0], &b = lines[1];
    return place ? make_uint4(a.z, a.w, b.z, b.w) : make_uint4(a.x, a.y, b.x, b.y);
  }
};

__device__ unsigned int pick(const uint4& line, int word) {
  return word == 0 ? line.x : word == 1 ? line.y : word == 2 ? line.z : line.w;
}

template <> struct Lines<4> {
  static __device__ uint4 turn(const uint4 (&lines)[4], int place) {
    return make_uint4(pick(lines[0], place), pick(lines[1], place), pick(lines[2], place), pick(lines[3], place));
  }
};
template <> struct Lines<2> {
  static __device__ unsigned int pair(const uint4& a, const uint4& b, int place) {
    return __byte_perm(pick(a, place / 2), pick(b, place / 2), place % 2 ? 0x7632 : 0x5410);
  }
  static __device__ uint4 turn(const uint4 (&lines)[8], int place) {
    return make_uint4(pair(lines[0], lines[1], place), pair(lines[2], lines[3], place),
                      pair(lines[4], lines[5], place), pair(lines[6], lines[7], place));
  }
};
template <> struct Lines<1> {
  static __device__ unsigned int four(const uint4* lines, int place) {
    int word = place / 4, byte = place % 4;
    unsigned int low = __byte_perm(pick(lines[0], word), pick(lines[1], word), byte | (byte + 4) << 4);
    unsigned int high = __byte_perm(pick(lines[2], word), pick(lines[3], word), byte | (byte + 4) << 4);
    return __byte_perm(low, high, 0x5410);
  }
  static __device__ uint4 turn(const uint4 (&lines)[16], int place) {
    return make_uint4(four(lines, place), four(lines + 4, place), four(lines + 8, place), four(lines + 12, place));
  }
};

// What a block turns. Blocks that follow each other write side by side: on an H200 that moves 4 % more than if they read
// side by side, 40 % more where rows begin within a sector. Along x lie the tiles below each other of one matrix after the
// other, along y and z those side by side. Short blocks wait for each division: there is none where there is one matrix.
struct Tile {
  unsigned int across, down;
  Distances matrix;
};
__device__ Tile find_tile(unsigned int tiles_across, unsigned int tiles_down, const Axes<4>& batch) {
  Tile tile = {blockIdx.z * gridDim.y + blockIdx.y, blockIdx.x, {0, 0}};
  if (gridDim.x != tiles_down) {
    tile.down = blockIdx.x % tiles_down;
    tile.matrix = find_matrix(batch, blockIdx.x / tiles_down);
  }
  return tile;
}

// Rows and columns are multiples of V, and all rows of both begin at multiples of 16 bytes. A block turns S x S squares
// of V x V: it reads and writes 16 S bytes in a row. Cells of 16 bytes stand in shared memory at columns that are
// exclusive-ored with their square's number, so that eight lanes meet eight groups of banks, written and read.
// Occupancy is 31 % for single bytes (SW402): a lane has 256 bytes in flight, the ten blocks of an SM 160 KiB.
template <int E, int S>
__global__ void __launch_bounds__(S * S, E == 1 ? 10 : E == 2 ? 4 : 6)
transpose_vectors(  // sectorwise: allow SW402
    const char* __restrict__ from, char* __restrict__ to, int64 rows, int64 columns, int64 from_row_bytes,
    int64 to_row_bytes, unsigned int tiles_across, unsigned int tiles_down, const Axes<4> batch) {
  constexpr int V = 16 / E;
  __shared__ uint4 cells[V * S][S];
  Tile tile = find_tile(tiles_across, tiles_down, batch);
  if (tile.across >= tiles_across) return;
  from += tile.matrix.from_bytes;
  to += tile.matrix.to_bytes;
  int low = threadIdx.x % S, high = threadIdx.x / S;
  int64 first_row = (int64)tile.down * (S * V), first_column = (int64)tile.across * (S * V);
  int rows_here = (int)min(rows - first_row, (int64)(S * V)), columns_here = (int)min(columns - first_column, (int64)(S * V));
  uint4 lines[V];
  if (high * V < rows_here && low * V < columns_here) {
    const char* source = from + (first_row + high * V) * from_row_bytes + (first_column + low * V) * E;
#pragma unroll
    for (int v = 0; v < V; ++v) lines[v] = __ldg(reinterpret_cast<const uint4*>(source + v * from_row_bytes));
#pragma unroll
    for (int v = 0; v < V; ++v) cells[V * low + v][high ^ (low & 7)] = Lines<E>::turn(lines, v);
  }
  __syncthreads();
  if (low * V >= rows_here) return;
  char* target = to + (first_row + low * V) * E + (first_column + high) * to_row_bytes;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    int line = high + v * S;
    if (line < columns_here)
      *reinterpret_cast<uint4*>(target + v * (S * to_row_bytes)) = cells[line][low ^ (line / V & 7)];
  }
}

// Any shape and alignment: an element a lane, through a tile that is padded to an odd number of banks. Where rows begin
// within a sector, each request meets one more of it (SW102): its other part belongs to the tile beside, which finds it
// in L2. Shifting the tiles so that one side were whole would break the other side's requests.
template <int E>
__global__ void __launch_bounds__(256)
transpose_elements(const char* __restrict__ from, char* __restrict__ to, int64 rows, int64 columns,
                   int64 from_row_bytes, int64 to_row_bytes, unsigned int tiles_across, unsigned int tiles_down,
                   const Axes<4> batch) {
  constexpr int SIDE = E < 4 ? 64 : 32, PAD = E < 4 ? 4 / E : 1;
  __shared__ Word<E> held[SIDE][SIDE + PAD];
  Tile tile = find_tile(tiles_across, tiles_down, batch);
  if (tile.across >= tiles_across) return;
  from += tile.matrix.from_bytes;
  to += tile.matrix.to_bytes;
  int64 first_row = (int64)tile.down * SIDE, first_column = (int64)tile.across * SIDE;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int y = 0; y < SIDE; y += 8)
#pragma unroll
    for (int x = 0; x < SIDE; x += 32) {
      int64 row = first_row + y + warp, column = first_column + x + lane;
      const char* source = from + row * from_row_bytes + column * E;
      if (row < rows && column < columns)
        held[y + warp][x + lane] = *reinterpret_cast<const Word<E>*>(source);  // sectorwise: allow SW102
    }
  __syncthreads();
#pragma unroll
  for (int y = 0; y < SIDE; y += 8)
#pragma unroll
    for (int x = 0; x < SIDE; x += 32) {
      int64 row = first_row + x + lane, column = first_column + y + warp;
      char* target = to + column * to_row_bytes + row * E;
      if (row < rows && column < columns)
        *reinterpret_cast<Word<E>*>(target) = held[x + lane][y + warp];  // sectorwise: allow SW102
    }
}
