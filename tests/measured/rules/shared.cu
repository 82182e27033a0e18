// Shared-memory accesses whose addresses and masks come from tables: what tells two rules of counting passes apart.
//
// `table` is a permutation of 4096 numbers; row `site` of 32 gives a warp's addresses, in units of the access width:
// shape says which lanes share an entry, range is a power of two, spread takes an arithmetic sequence instead.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

__device__ __forceinline__ int pick(int shape, int l) {
  switch (shape) {
    case 0: return l;                                                  // each lane its own
    case 1: return l >> 1;                                             // i and i^1 share
    case 2: return (l >> 2) << 1 | (l & 1);                            // i and i^2 share
    case 3: return l < 16 ? l >> 1 : (l >> 2) << 1 | (l & 1);          // one half each
    case 4: return l < 16 ? l >> 1 : l;                                // only the first half shares, i^1
    case 5: return l < 16 ? l : (l >> 2) << 1 | (l & 1);               // only the second half shares, i^2
    case 6: return (l >> 3) & 1 ? l >> 1 : (l >> 2) << 1 | (l & 1);    // quarters in turn
    default: return l >> 2;                                            // four share
  }
}

__device__ __forceinline__ int unit(const int* table, int site, int shape, int range, int spread, int l) {
  const int k = pick(shape, l);
  const int* row = table + site * 32;
  return (spread ? k * (2 * row[0] + 1) + row[1] : row[k]) & (range - 1);
}

__device__ __forceinline__ u32 lanes(const int* masks, int site, int mode) {
  const u32 a = (u32)masks[2 * site], b = (u32)masks[2 * site + 1], r = a ^ (b << 1);
  switch (mode) {
    case 0: return 0xffffffffu;
    case 1: return r;
    case 2: return r | a;
    case 3: return ~(1u << (a & 31));                                  // one missing
    case 4: return a & 1 ? 0x55555555u : 0xaaaaaaaau;                  // even or odd
    case 5: return (r & 0x55555555u) * 3;                              // whole pairs
    case 6: return r & 0x55555555u;                                    // some even lanes
    case 7: return r & 0xaaaaaaaau;                                    // some odd lanes
    default: return r & 0x33333333u;                                   // none of a pair's i^2 partners
  }
}

// One access a launch, inactive lanes have left: source view and pipe of one pattern.
#define LOAD_ONE(NAME, TYPE)                                                                                            \
  extern "C" __global__ void NAME(const int* table, int site, int shape, int range, int spread, u32 mask, TYPE* out) {  \
    __shared__ __align__(1024) TYPE s[512];                                                                             \
    const int l = threadIdx.x, a = unit(table, site, shape, range, spread, l);                                          \
    s[l] = TYPE();                                                                                                      \
    __syncthreads();                                                                                                    \
    if (mask >> l & 1) out[blockIdx.x * 32 + l] = s[a];                                                                 \
  }

LOAD_ONE(load8_one, uint2)
LOAD_ONE(load16_one, uint4)

#define STORE_ONE(NAME, TYPE, COUNT)                                                                                    \
  extern "C" __global__ void NAME(const int* table, int site, int shape, int range, int spread, u32 mask, TYPE* out) {  \
    __shared__ __align__(1024) TYPE s[COUNT];                                                                           \
    const int l = threadIdx.x, a = unit(table, site, shape, range, spread, l);                                          \
    if (mask >> l & 1) s[a] = TYPE();                                                                                   \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = s[l];                                                                                    \
  }

STORE_ONE(store1_one, u8, 4096)
STORE_ONE(store2_one, u16, 4096)
STORE_ONE(store8_one, uint2, 512)
STORE_ONE(store16_one, uint4, 512)

// Many accesses a launch, inactive lanes predicated off: the source view of many patterns.
#define SITES 32

extern "C" __global__ void load8_many(const int* table, const int* masks, int shape, int range, int spread, int mode,
                                      u32* out) {
  __shared__ __align__(1024) uint2 s[512];
  const int l = threadIdx.x;
  const u32 base = (u32)__cvta_generic_to_shared(s);
  u32 sum = 0;
  s[l] = make_uint2(l, l);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < SITES; ++k) {
    const u32 at = base + 8 * unit(table, k, shape, range, spread, l), on = lanes(masks, k, mode) >> l & 1;
    u32 x = 0, y = 0;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.shared.v2.u32 {%0, %1}, [%3]; }"
                 : "+r"(x), "+r"(y) : "r"(on), "r"(at));
    sum += x + y;
  }
  out[blockIdx.x * 32 + l] = sum;
}

extern "C" __global__ void load16_many(const int* table, const int* masks, int shape, int range, int spread, int mode,
                                       u32* out) {
  __shared__ __align__(1024) uint4 s[512];
  const int l = threadIdx.x;
  const u32 base = (u32)__cvta_generic_to_shared(s);
  u32 sum = 0;
  s[l] = make_uint4(l, l, l, l);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < SITES; ++k) {
    const u32 at = base + 16 * unit(table, k, shape, range, spread, l), on = lanes(masks, k, mode) >> l & 1;
    u32 x = 0, y = 0, z = 0, w = 0;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; @p ld.shared.v4.u32 {%0, %1, %2, %3}, [%5]; }"
                 : "+r"(x), "+r"(y), "+r"(z), "+r"(w) : "r"(on), "r"(at));
    sum += x + y + z + w;
  }
  out[blockIdx.x * 32 + l] = sum;
}

#define STORE_MANY(NAME, WIDTH, ASM)                                                                                    \
  extern "C" __global__ void NAME(const int* table, const int* masks, int shape, int range, int spread, int mode,       \
                                  u32* out) {                                                                           \
    __shared__ __align__(1024) u32 s[2048];                                                                             \
    const int l = threadIdx.x;                                                                                          \
    const u32 base = (u32)__cvta_generic_to_shared(s);                                                                  \
    _Pragma("unroll") for (int k = 0; k < 16; ++k) {                                                                    \
      const u32 at = base + WIDTH * unit(table, k, shape, range, spread, l), on = lanes(masks, k, mode) >> l & 1;       \
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p " ASM " }" ::"r"(on), "r"(at), "r"(l));                    \
    }                                                                                                                   \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = s[l];                                                                                    \
  }

STORE_MANY(store1_many, 1, "st.shared.u8 [%1], %2;")
STORE_MANY(store2_many, 2, "st.shared.u16 [%1], %2;")
STORE_MANY(store8_many, 8, "st.shared.v2.u32 [%1], {%2, %2};")
STORE_MANY(store16_many, 16, "st.shared.v4.u32 [%1], {%2, %2, %2, %2};")

// Matrix loads and stores of one, two and four matrices: lanes past the last matrix point anywhere.
#define MATRIX_MANY(NAME, LOAD, STORE)                                                                                  \
  extern "C" __global__ void NAME(const int* table, int shape, int range, int spread, u32* out) {                       \
    __shared__ __align__(1024) uint4 s[512];                                                                            \
    const int l = threadIdx.x;                                                                                          \
    const u32 base = (u32)__cvta_generic_to_shared(s);                                                                  \
    u32 sum = 0;                                                                                                        \
    s[l] = make_uint4(l, l, l, l);                                                                                      \
    __syncthreads();                                                                                                    \
    _Pragma("unroll") for (int k = 0; k < 8; ++k) {                                                                     \
      const u32 at = base + 16 * unit(table, k, shape, range, spread, l);                                               \
      u32 x = 0, y = 0, z = 0, w = 0;                                                                                   \
      asm volatile(LOAD : "+r"(x), "+r"(y), "+r"(z), "+r"(w) : "r"(at));                                                \
      sum += x + y + z + w;                                                                                             \
      asm volatile(STORE ::"r"(at ^ 16), "r"(x), "r"(y), "r"(z), "r"(w));                                               \
    }                                                                                                                   \
    out[blockIdx.x * 32 + l] = sum;                                                                                     \
  }

MATRIX_MANY(matrix1_many, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%4];",
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};")
MATRIX_MANY(matrix2_many, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%4];",
            "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};")
MATRIX_MANY(matrix4_many, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];",
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};")
