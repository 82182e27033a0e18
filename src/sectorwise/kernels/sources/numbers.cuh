// 16-bit floats, pairs of them in a word, and products of matrices on tensor cores, without CUDA's headers: what is
// compiled at first use compiles quickly.
#pragma once
#include "words.cuh"

struct bf16 {
  unsigned short bits;
};
struct f16 {
  unsigned short bits;
};
template <typename T> constexpr bool IS_F16 = false;
template <> constexpr bool IS_F16<f16> = true;

// The numbers of a word, as floats, lower half first.
template <typename T> __device__ float2 unpack(unsigned int word);
template <> __device__ float2 unpack<bf16>(unsigned int word) {
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}
template <> __device__ float2 unpack<f16>(unsigned int word) {
  float2 both;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(both.x), "=f"(both.y)
      : "r"(word));
  return both;
}

__device__ float widen(float value) { return value; }
__device__ float widen(bf16 value) { return __uint_as_float((unsigned int)value.bits << 16); }
__device__ float widen(f16 value) { return unpack<f16>(value.bits).x; }
__device__ float widen(signed char value) { return value; }

template <typename T> __device__ T round_to(float value);
template <> __device__ float round_to<float>(float value) { return value; }
template <> __device__ bf16 round_to<bf16>(float value) {
  bf16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
}
template <> __device__ f16 round_to<f16>(float value) {
  f16 rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
}

// Two floats as a word of two bf16.
__device__ unsigned int pair_bf16(float low, float high) {
  unsigned int word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// sums += A B, A 16 x 16 with rows of lane / 4 and + 8, B 16 x 8 with column lane / 4 (PTX ISA, mma.m16n8k16).
template <typename T>
__device__ void multiply_add(float (&sums)[4], unsigned int a0, unsigned int a1, unsigned int a2, unsigned int a3,
                             unsigned int b0, unsigned int b1);
template <>
__device__ void multiply_add<bf16>(float (&sums)[4], unsigned int a0, unsigned int a1, unsigned int a2,
                                   unsigned int a3, unsigned int b0, unsigned int b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
template <>
__device__ void multiply_add<f16>(float (&sums)[4], unsigned int a0, unsigned int a1, unsigned int a2, unsigned int a3,
                                  unsigned int b0, unsigned int b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Weights are read once: they need no place in L1, where x should stay. Neither these loads nor those of x may be taken
// for loads of constants (ld.global.nc), which the compiler moves across `wait_for_previous`.
template <typename V> __device__ V load_once(const V* from) { return __ldcs(from); }
template <> __device__ uint4 load_once(const uint4* from) {
  uint4 held;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(held.x), "=r"(held.y), "=r"(held.z), "=r"(held.w)
               : "l"(from)
               : "memory");
  return held;
}

// Programmatic dependent launch, from compute capability 9.0 on: what is behind on the stream may begin once all blocks
// have said so, if it waits itself; and waiting until what is ahead has ended and all of its stores are seen.
__device__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ unsigned int pick(const uint4& line, int word) {
  return word == 0 ? line.x : word == 1 ? line.y : word == 2 ? line.z : line.w;
}
