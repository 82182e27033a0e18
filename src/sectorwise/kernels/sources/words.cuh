// Words of 1 to 16 bytes, and loads and stores of data that is used once.
#pragma once

typedef long long int64;

template <int BYTES> struct WordOf;
template <> struct WordOf<1> { typedef unsigned char type; };
template <> struct WordOf<2> { typedef unsigned short type; };
template <> struct WordOf<4> { typedef unsigned int type; };
template <> struct WordOf<8> { typedef uint2 type; };
template <> struct WordOf<16> { typedef uint4 type; };
template <int BYTES> using Word = typename WordOf<BYTES>::type;

// The axes of a batch, innermost first: how many, and how far apart in both arrays.
template <int AXES> struct Axes {
  int64 extents[AXES], from_bytes[AXES], to_bytes[AXES];
};

// How far from its first matrix number `index` of a batch begins, in both arrays.
struct Distances {
  int64 from_bytes, to_bytes;
};

template <int AXES> __device__ Distances find_matrix(const Axes<AXES>& axes, unsigned int index) {
  Distances found = {0, 0};
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) {
    if (index == 0) break;
    unsigned int extent = (unsigned int)axes.extents[axis], place = index % extent;
    index /= extent;
    found.from_bytes += place * axes.from_bytes[axis];
    found.to_bytes += place * axes.to_bytes[axis];
  }
  return found;
}
