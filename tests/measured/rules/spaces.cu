// Global, generic and local accesses whose addresses and masks come from tables.
//
// `order`: 0 scattered entries of the table, 1 an arithmetic sequence of step `step`, 2 the same backwards,
// 3 rows of eight lanes `step` apart; `range` is a power of two, in units of the access width.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ int unit(const int* table, int site, int order, int range, int step, int l) {
  switch (order) {
    case 0: return table[site * 32 + l] & (range - 1);
    case 1: return (l * step + table[site * 32]) & (range - 1);
    case 2: return ((31 - l) * step + table[site * 32]) & (range - 1);
    default: return ((l & 7) + (l >> 3) * step) & (range - 1);
  }
}

__device__ __forceinline__ u32 lanes(const int* masks, int site, int mode) {
  const u32 a = (u32)masks[2 * site], b = (u32)masks[2 * site + 1], r = a ^ (b << 1);
  return mode == 0 ? 0xffffffffu : mode == 1 ? r : r & 0x0f0f0f0fu;
}

// One load of global memory a launch: tag and data passes of one pattern.
#define GLOBAL_ONE(NAME, TYPE)                                                                                          \
  extern "C" __global__ void NAME(const int* table, int site, int order, int range, int step, u32 mask,                 \
                                  const TYPE* __restrict__ in, TYPE* out) {                                             \
    const int l = threadIdx.x, a = unit(table, site, order, range, step, l);                                            \
    if (mask >> l & 1) out[blockIdx.x * 32 + l] = in[a];                                                                \
  }

GLOBAL_ONE(global1_one, u8)
GLOBAL_ONE(global4_one, u32)
GLOBAL_ONE(global8_one, uint2)
GLOBAL_ONE(global16_one, uint4)

// Generic addresses: by lane and bits of `where`, into global, shared or local memory.
#define GENERIC(NAME, TYPE, LOAD, STORE)                                                                                \
  extern "C" __global__ void NAME(const int* table, const int* masks, int order, int range, int step, int mode,         \
                                  u32 where, u32 local, TYPE* in, TYPE* out) {                                          \
    __shared__ __align__(1024) TYPE s[256];                                                                             \
    TYPE t[64];                                                                                                         \
    const int l = threadIdx.x;                                                                                          \
    TYPE sum = TYPE();                                                                                                  \
    _Pragma("unroll 1") for (int k = 0; k < 64; ++k) t[k] = in[k];                                                      \
    s[l] = in[l];                                                                                                       \
    __syncthreads();                                                                                                    \
    _Pragma("unroll") for (int k = 0; k < 6; ++k) {                                                                     \
      const int a = unit(table, k, order, range, step, l);                                                              \
      TYPE* at = local >> l & 1 ? t + (a & 63) : where >> l & 1 ? s + (a & 255) : in + a;                               \
      if (lanes(masks, k, mode) >> l & 1) {                                                                             \
        const TYPE old = LOAD;                                                                                          \
        STORE;                                                                                                          \
        sum = old;                                                                                                      \
      }                                                                                                                 \
    }                                                                                                                   \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = sum;                                                                                     \
    out[blockIdx.x * 32 + (l ^ 1)] = t[l];                                                                              \
    out[blockIdx.x * 32 + (l ^ 2)] = s[l];                                                                              \
  }

GENERIC(generic1, u8, *(volatile u8*)at, *(volatile u8*)at = old + 1)
GENERIC(generic4, u32, *(volatile u32*)at, *(volatile u32*)at = old + 1)
GENERIC(generic8, u64, *(volatile u64*)at, *(volatile u64*)at = old + 1)

extern "C" __global__ void generic16(const int* table, const int* masks, int order, int range, int step, int mode,
                                     u32 where, uint4* in, uint4* out) {
  __shared__ __align__(1024) uint4 s[256];
  const int l = threadIdx.x;
  uint4 sum = make_uint4(0, 0, 0, 0);
  s[l] = in[l];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 6; ++k) {
    const int a = unit(table, k, order, range, step, l);
    const uint4* at = where >> l & 1 ? s + (a & 255) : in + a;
    if (lanes(masks, k, mode) >> l & 1) {
      uint4 v;
      asm volatile("ld.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
      sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    }
  }
  out[blockIdx.x * 32 + l] = sum;
}

// Local memory by a dynamic index.
#define LOCAL(NAME, TYPE, COUNT)                                                                                        \
  extern "C" __global__ void NAME(const int* table, const int* masks, int order, int range, int step, int mode,         \
                                  const TYPE* in, TYPE* out) {                                                          \
    TYPE t[COUNT];                                                                                                      \
    const int l = threadIdx.x;                                                                                          \
    _Pragma("unroll 1") for (int k = 0; k < COUNT; ++k) t[k] = in[k];                                                   \
    TYPE sum = TYPE();                                                                                                  \
    _Pragma("unroll") for (int k = 0; k < 6; ++k) {                                                                     \
      const int a = unit(table, k, order, range, step, l) & (COUNT - 1);                                                \
      if (lanes(masks, k, mode) >> l & 1) {                                                                             \
        const TYPE old = t[a];                                                                                          \
        t[(a * 3 + l) & (COUNT - 1)] = old;                                                                             \
        sum = old;                                                                                                      \
      }                                                                                                                 \
    }                                                                                                                   \
    out[blockIdx.x * 32 + l] = sum;                                                                                     \
    out[blockIdx.x * 32 + (l ^ 1)] = t[l & (COUNT - 1)];                                                                \
  }

LOCAL(local1, u8, 64)
LOCAL(local2, u16, 64)
LOCAL(local4, u32, 64)
LOCAL(local8, u64, 32)
LOCAL(local16, uint4, 16)
