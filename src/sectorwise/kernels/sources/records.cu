// Records of FIELDS elements of E bytes, one after the other, into an array a field, and back.
#include "words.cuh"

// Records of a block, one a thread. Of 64, 128, 256 and 512 records of 48 bytes the H200 moves most with 64, and with plain
// loads and stores, not those for data used once; small records want more of them.
constexpr int threads_for(int record_bytes) { return record_bytes >= 32 ? 64 : 256; }

constexpr int common(int a, int b) { return b == 0 ? a : common(b, a % b); }

// What a block keeps of records in shared memory: as they are, but that the 16-byte cells of a record of 32, 64 or 128
// bytes change places with the record's number, so that the lanes that are served together meet all banks.
template <int E, int FIELDS> struct Records {
  static constexpr int BYTES = E * FIELDS, READ = common(BYTES, 16), CELLS = BYTES / 16;
  static constexpr int SPREAD = BYTES % 16 ? 1 : common(CELLS, 8);

  // The place of a cell of 16 bytes, by its number in the block.
  static __device__ int place(int cell) {
    if (SPREAD == 1) return cell;
    return cell ^ ((cell / CELLS) / (8 / SPREAD) & (SPREAD - 1));
  }
};

// One record a thread. MOVE is the width of the loads: 16 where the records begin at a multiple of it, else E.
template <int E, int FIELDS, int MOVE>
__global__ void __launch_bounds__(threads_for(E * FIELDS))
records_to_arrays(const char* __restrict__ from, char* __restrict__ to, int64 records, int64 field_bytes,
                  unsigned int blocks, const Axes<4> batch) {
  typedef Records<E, FIELDS> R;
  constexpr int THREADS = threads_for(R::BYTES);
  __shared__ __align__(16) char held[THREADS * R::BYTES];
  Distances matrix = find_matrix(batch, blockIdx.x / blocks);
  from += matrix.from_bytes;
  to += matrix.to_bytes;
  int64 first = (int64)(blockIdx.x % blocks) * THREADS;
  int count = records - first < THREADS ? (int)(records - first) : THREADS;
  from += first * R::BYTES;
  int moves = count * R::BYTES / MOVE;
  Word<MOVE> moved[R::BYTES / MOVE + 1];
#pragma unroll
  for (int u = 0; u < (R::BYTES + MOVE - 1) / MOVE; ++u) {
    int move = u * THREADS + threadIdx.x;
    if (move < moves) moved[u] = __ldg(reinterpret_cast<const Word<MOVE>*>(from) + move);
  }
#pragma unroll
  for (int u = 0; u < (R::BYTES + MOVE - 1) / MOVE; ++u) {
    int move = u * THREADS + threadIdx.x, byte = move * MOVE;
    if (move < moves) *reinterpret_cast<Word<MOVE>*>(held + R::place(byte / 16) * 16 + byte % 16) = moved[u];
  }
  int byte = moves * MOVE + (int)threadIdx.x * E;
  if (MOVE > E && byte < count * R::BYTES)
    *reinterpret_cast<Word<E>*>(held + R::place(byte / 16) * 16 + byte % 16) =
        *reinterpret_cast<const Word<E>*>(from + byte);
  __syncthreads();
  if (threadIdx.x >= count) return;
  to += (first + threadIdx.x) * E;
#pragma unroll
  for (int chunk = 0; chunk < R::BYTES; chunk += R::READ) {
    int at = (int)threadIdx.x * R::BYTES + chunk;
    union { Word<R::READ> whole; Word<E> elements[R::READ / E]; } read;
    read.whole = *reinterpret_cast<const Word<R::READ>*>(held + R::place(at / 16) * 16 + at % 16);
#pragma unroll
    for (int e = 0; e < R::READ / E; ++e)
      *reinterpret_cast<Word<E>*>(to + (chunk / E + e) * field_bytes) = read.elements[e];
  }
}

// The way back, mirrored.
template <int E, int FIELDS, int MOVE>
__global__ void __launch_bounds__(threads_for(E * FIELDS))
arrays_to_records(const char* __restrict__ from, char* __restrict__ to, int64 records, int64 field_bytes,
                  unsigned int blocks, const Axes<4> batch) {
  typedef Records<E, FIELDS> R;
  constexpr int THREADS = threads_for(R::BYTES);
  __shared__ __align__(16) char held[THREADS * R::BYTES];
  Distances matrix = find_matrix(batch, blockIdx.x / blocks);
  from += matrix.from_bytes;
  to += matrix.to_bytes;
  int64 first = (int64)(blockIdx.x % blocks) * THREADS;
  int count = records - first < THREADS ? (int)(records - first) : THREADS;
  from += (first + threadIdx.x) * E;
  union { Word<R::READ> whole; Word<E> elements[R::READ / E]; } chunks[R::BYTES / R::READ];
  if (threadIdx.x < count) {
#pragma unroll
    for (int field = 0; field < FIELDS; ++field)
      chunks[field * E / R::READ].elements[field % (R::READ / E)] =
          __ldg(reinterpret_cast<const Word<E>*>(from + field * field_bytes));
#pragma unroll
    for (int chunk = 0; chunk < R::BYTES / R::READ; ++chunk) {
      int at = (int)threadIdx.x * R::BYTES + chunk * R::READ;
      *reinterpret_cast<Word<R::READ>*>(held + R::place(at / 16) * 16 + at % 16) = chunks[chunk].whole;
    }
  }
  __syncthreads();
  to += first * R::BYTES;
  int moves = count * R::BYTES / MOVE;
#pragma unroll
  for (int u = 0; u < (R::BYTES + MOVE - 1) / MOVE; ++u) {
    int move = u * THREADS + threadIdx.x, byte = move * MOVE;
    if (move < moves)
      reinterpret_cast<Word<MOVE>*>(to)[move] =
          *reinterpret_cast<const Word<MOVE>*>(held + R::place(byte / 16) * 16 + byte % 16);
  }
  int byte = moves * MOVE + (int)threadIdx.x * E;
  if (MOVE > E && byte < count * R::BYTES)
    *reinterpret_cast<Word<E>*>(to + byte) =
        *reinterpret_cast<const Word<E>*>(held + R::place(byte / 16) * 16 + byte % 16);
}
