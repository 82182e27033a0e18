// Asynchronous copies whose sources, destinations, sizes and masks come from tables.
//
// Addresses are in units of the access width. `order` of a side: 0 scattered entries of its table, 1 an arithmetic
// sequence, 2 the lane XOR a number of the table, 3 the lane plus a number of the table; `range` is a power of two.

typedef unsigned int u32;

__device__ __forceinline__ int unit(const int* table, int site, int order, int range, int l) {
  const int* row = table + site * 32;
  switch (order) {
    case 0: return row[l] & (range - 1);
    case 1: return (l * (2 * row[0] + 1) + row[1]) & (range - 1);
    case 2: return (l ^ row[0]) & (range - 1);
    default: return (l + row[0]) & (range - 1);
  }
}

__device__ __forceinline__ u32 lanes(const int* masks, int site, int mode) {
  const u32 a = (u32)masks[2 * site], b = (u32)masks[2 * site + 1], r = a ^ (b << 1);
  switch (mode) {
    case 0: return 0xffffffffu;
    case 1: return r;
    case 2: return r | a;
    case 3: return ~(1u << (a & 31));        // one missing
    case 4: return 1u << (a & 31);           // one alone
    case 5: return 0xffffffffu >> (a & 31);  // a prefix
    case 6: return 0xffffffffu << (a & 31);  // a suffix
    default: return (r & 0x11111111u) * 15;  // whole fours
  }
}

__device__ __forceinline__ u32 bytes(const int* masks, int site, int size, int width, int l) {
  const u32 r = (u32)masks[2 * site] >> (l & 15) ^ (u32)masks[2 * site + 1] >> (l >> 1);
  return size == 1 ? (r & 1) * width : r % (width + 1);  // 1: all or nothing, 2: any size
}

#define COPY_MANY(NAME, WIDTH, FULL, SIZED)                                                                             \
  extern "C" __global__ void NAME(const int* sources, const int* targets, const int* masks, const char* from,           \
                                  int source_order, int source_range, int target_order, int target_range, int mode,     \
                                  u32* out) {                                                                           \
    __shared__ __align__(1024) u32 s[2048];                                                                             \
    const int l = threadIdx.x;                                                                                          \
    const u32 base = (u32)__cvta_generic_to_shared(s);                                                                  \
    s[l] = 0;                                                                                                           \
    __syncthreads();                                                                                                    \
    _Pragma("unroll") for (int k = 0; k < 16; ++k) {                                                                    \
      const u32 at = base + WIDTH * unit(targets, k, target_order, target_range, l), on = lanes(masks, k, mode) >> l & 1;\
      const char* source = from + WIDTH * unit(sources, k, source_order, source_range, l);                              \
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p " FULL " }" ::"r"(at), "l"(source), "r"(on) : "memory");   \
    }                                                                                                                   \
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");                                         \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = s[l];                                                                                    \
  }                                                                                                                     \
  extern "C" __global__ void NAME##_sized(const int* sources, const int* targets, const int* masks, const char* from,   \
                                          int source_order, int source_range, int target_order, int target_range,       \
                                          int size, u32* out) {                                                         \
    __shared__ __align__(1024) u32 s[2048];                                                                             \
    const int l = threadIdx.x;                                                                                          \
    const u32 base = (u32)__cvta_generic_to_shared(s);                                                                  \
    s[l] = 0;                                                                                                           \
    __syncthreads();                                                                                                    \
    _Pragma("unroll") for (int k = 0; k < 8; ++k) {                                                                     \
      const u32 at = base + WIDTH * unit(targets, k, target_order, target_range, l);                                    \
      const char* source = from + WIDTH * unit(sources, k, source_order, source_range, l);                              \
      asm volatile(SIZED ::"r"(at), "l"(source), "r"(bytes(masks, k, size, WIDTH, l)) : "memory");                      \
    }                                                                                                                   \
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");                                         \
    __syncthreads();                                                                                                    \
    out[blockIdx.x * 32 + l] = s[l];                                                                                    \
  }                                                                                                                     \
  extern "C" __global__ void NAME##_left(const int* sources, const int* targets, int site, const char* from,            \
                                         int source_order, int source_range, int target_order, int target_range,        \
                                         u32 mask, u32* out) {                                                          \
    __shared__ __align__(1024) u32 s[2048];                                                                             \
    const int l = threadIdx.x;                                                                                          \
    const u32 at = (u32)__cvta_generic_to_shared(s) + WIDTH * unit(targets, site, target_order, target_range, l);       \
    const char* source = from + WIDTH * unit(sources, site, source_order, source_range, l);                             \
    if (!(mask >> l & 1)) return;                                                                                       \
    asm volatile(FULL ::"r"(at), "l"(source) : "memory");                                                               \
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");                                         \
    out[blockIdx.x * 32 + l] = s[l];                                                                                    \
  }

COPY_MANY(copy4, 4, "cp.async.ca.shared.global [%0], [%1], 4;", "cp.async.ca.shared.global [%0], [%1], 4, %2;")
COPY_MANY(copy8, 8, "cp.async.ca.shared.global [%0], [%1], 8;", "cp.async.ca.shared.global [%0], [%1], 8, %2;")
COPY_MANY(copy16, 16, "cp.async.ca.shared.global [%0], [%1], 16;", "cp.async.ca.shared.global [%0], [%1], 16, %2;")
COPY_MANY(bypass16, 16, "cp.async.cg.shared.global [%0], [%1], 16;", "cp.async.cg.shared.global [%0], [%1], 16, %2;")
