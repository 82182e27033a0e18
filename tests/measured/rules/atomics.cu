// Atomics on shared and global memory whose addresses and masks come from tables.
//
// `order`: 0 scattered entries of the table, 1 one element for two lanes, 2 two elements, 3 one element, 4 one bank,
// 5 each lane its own; `range` is a power of two.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ int unit(const int* table, int site, int order, int range, int l) {
  switch (order) {
    case 0: return table[site * 32 + l] & (range - 1);
    case 1: return l >> 1;
    case 2: return l & 1;
    case 3: return table[site * 32] & (range - 1);
    case 4: return (l * 32) & (range - 1);
    default: return l;
  }
}

__device__ __forceinline__ u32 lanes(const int* masks, int site, int mode) {
  const u32 a = (u32)masks[2 * site], b = (u32)masks[2 * site + 1], r = a ^ (b << 1);
  switch (mode) {
    case 0: return 0xffffffffu;
    case 1: return r;
    case 2: return 1u << (a & 31);
    default: return 0xffffffffu >> (a & 31);
  }
}

#define ARGUMENTS const int *table, const int *masks, int order, int range, int mode

#define SHARED_32(NAME, ASM)                                                                                            \
  extern "C" __global__ void NAME(ARGUMENTS, u32* out) {                                                                \
    __shared__ __align__(1024) u32 s[2048];                                                                             \
    const int l = threadIdx.x;                                                                                          \
    const u32 base = (u32)__cvta_generic_to_shared(s);                                                                  \
    u32 sum = 0;                                                                                                        \
    s[l] = 0;                                                                                                           \
    __syncthreads();                                                                                                    \
    _Pragma("unroll") for (int k = 0; k < 6; ++k) {                                                                     \
      const u32 at = base + 4 * unit(table, k, order, range, l), on = lanes(masks, k, mode) >> l & 1;                   \
      u32 old = 0;                                                                                                      \
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; " ASM " }"                                                 \
                   : "+r"(old) : "r"(on), "r"(at), "r"(l + 3), "r"(l) : "memory");                                      \
      sum += old;                                                                                                       \
    }                                                                                                                   \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = s[l] + sum;                                                                              \
  }

SHARED_32(shared_add_used, "@p atom.shared.add.u32 %0, [%2], %3;")
SHARED_32(shared_add_one_used, "@p atom.shared.add.u32 %0, [%2], 1;")
SHARED_32(shared_add, "@p red.shared.add.u32 [%2], %3;")
SHARED_32(shared_add_one, "@p red.shared.add.u32 [%2], 1;")
SHARED_32(shared_inc, "@p atom.shared.inc.u32 %0, [%2], %3;")
SHARED_32(shared_dec, "@p atom.shared.dec.u32 %0, [%2], %3;")
SHARED_32(shared_min_s32, "@p atom.shared.min.s32 %0, [%2], %3;")
SHARED_32(shared_max_u32, "@p red.shared.max.u32 [%2], %3;")
SHARED_32(shared_and, "@p red.shared.and.b32 [%2], %3;")
SHARED_32(shared_or, "@p atom.shared.or.b32 %0, [%2], %3;")
SHARED_32(shared_xor, "@p red.shared.xor.b32 [%2], %3;")
SHARED_32(shared_exch, "@p atom.shared.exch.b32 %0, [%2], %3;")
SHARED_32(shared_cas, "@p atom.shared.cas.b32 %0, [%2], %4, %3;")
SHARED_32(shared_add_f32, ".reg .f32 f; cvt.rn.f32.u32 f, %3; @p red.shared.add.f32 [%2], f;")
SHARED_32(shared_add_f16x2, "@p red.shared.add.noftz.f16x2 [%2], %3;")

#define SHARED_64(NAME, ASM)                                                                                            \
  extern "C" __global__ void NAME(ARGUMENTS, u64* out) {                                                                \
    __shared__ __align__(1024) u64 s[1024];                                                                             \
    const int l = threadIdx.x;                                                                                          \
    const u32 base = (u32)__cvta_generic_to_shared(s);                                                                  \
    u64 sum = 0;                                                                                                        \
    s[l] = 0;                                                                                                           \
    __syncthreads();                                                                                                    \
    _Pragma("unroll") for (int k = 0; k < 6; ++k) {                                                                     \
      const u32 at = base + 8 * unit(table, k, order, range, l), on = lanes(masks, k, mode) >> l & 1;                   \
      u64 old = 0;                                                                                                      \
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; " ASM " }"                                                 \
                   : "+l"(old) : "r"(on), "r"(at), "l"((u64)l + 3), "l"((u64)l) : "memory");                            \
      sum += old;                                                                                                       \
    }                                                                                                                   \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = s[l] + sum;                                                                              \
  }

SHARED_64(shared_exch_64, "@p atom.shared.exch.b64 %0, [%2], %3;")
SHARED_64(shared_cas_64, "@p atom.shared.cas.b64 %0, [%2], %4, %3;")
SHARED_64(shared_add_u64, "@p red.shared.add.u64 [%2], %3;")
SHARED_64(shared_max_s64, "@p atom.shared.max.s64 %0, [%2], %3;")

#define GLOBAL(NAME, TYPE, CONSTRAINT, WIDTH, ASM)                                                                      \
  extern "C" __global__ void NAME(ARGUMENTS, char* memory, TYPE* out) {                                                 \
    const int l = threadIdx.x;                                                                                          \
    TYPE sum = 0;                                                                                                       \
    _Pragma("unroll") for (int k = 0; k < 6; ++k) {                                                                     \
      char* at = memory + WIDTH * unit(table, k, order, range, l);                                                      \
      const u32 on = lanes(masks, k, mode) >> l & 1;                                                                    \
      TYPE old = 0;                                                                                                     \
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; " ASM " }"                                                 \
                   : "+" CONSTRAINT(old) : "r"(on), "l"(at), CONSTRAINT((TYPE)(l + 3)), CONSTRAINT((TYPE)l) : "memory"); \
      sum += old;                                                                                                       \
    }                                                                                                                   \
    out[blockIdx.x * 32 + l] = sum;                                                                                     \
  }

GLOBAL(global_add_used, u32, "r", 4, "@p atom.global.add.u32 %0, [%2], %3;")
GLOBAL(global_add, u32, "r", 4, "@p red.global.add.u32 [%2], %3;")
GLOBAL(global_add_u64, u64, "l", 8, "@p red.global.add.u64 [%2], %3;")
GLOBAL(global_cas, u32, "r", 4, "@p atom.global.cas.b32 %0, [%2], %4, %3;")
GLOBAL(global_cas_64, u64, "l", 8, "@p atom.global.cas.b64 %0, [%2], %4, %3;")
GLOBAL(global_add_f64, double, "d", 8, "@p red.global.add.f64 [%2], %3;")
GLOBAL(global_add_f16x2, u32, "r", 4, "@p red.global.add.noftz.f16x2 [%2], %3;")
GLOBAL(global_add_v2_f32, float, "f", 8, "@p red.global.add.v2.f32 [%2], {%3, %4};")
GLOBAL(global_add_v4_f32, float, "f", 16, "@p red.global.add.v4.f32 [%2], {%3, %4, %3, %4};")
