// Asynchronous copies under guard predicates and with source sizes, as loops over tiles write them.

typedef unsigned int u32;

#define WAIT asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory")

// `rows` of `pitch` bytes in global memory, eight lanes of 16 bytes a row, into a tile of `stride` bytes a row.
#define TILE(NAME, CONDITION, COPY)                                                                            \
  extern "C" __global__ void NAME(const char* from, int pitch, int stride, int swizzle, int limit, u32* out) { \
    __shared__ __align__(1024) char s[16384];                                                                  \
    const int l = threadIdx.x, row = l >> 3, column = l & 7;                                                   \
    const char* source = from + row * pitch + column * 16;                                                     \
    const u32 at = (u32)__cvta_generic_to_shared(s) + row * stride + (column ^ (row & swizzle)) * 16;          \
    if (CONDITION) asm volatile(COPY ::"r"(at), "l"(source), "r"(l < limit ? 16 : 0) : "memory");              \
    WAIT;                                                                                                      \
    __syncthreads();                                                                                           \
    out[blockIdx.x * 32 + l] = ((u32*)s)[l];                                                                   \
  }

TILE(tile_bypass, true, "cp.async.cg.shared.global [%0], [%1], 16;")
TILE(tile_through, true, "cp.async.ca.shared.global [%0], [%1], 16;")
TILE(tile_bypass_below, l < limit, "cp.async.cg.shared.global [%0], [%1], 16;")
TILE(tile_bypass_above, l >= limit, "cp.async.cg.shared.global [%0], [%1], 16;")
TILE(tile_bypass_bits, (l & limit) != 0, "cp.async.cg.shared.global [%0], [%1], 16;")
TILE(tile_bypass_all, limit > 7, "cp.async.cg.shared.global [%0], [%1], 16;")
TILE(tile_through_below, l < limit, "cp.async.ca.shared.global [%0], [%1], 16;")
TILE(tile_bypass_filled, true, "cp.async.cg.shared.global [%0], [%1], 16, %2;")
TILE(tile_through_filled, true, "cp.async.ca.shared.global [%0], [%1], 16, %2;")
