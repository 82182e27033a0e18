// Copies around L1 whose operand predicate, or whose guard, is each of the predicates: P0 to P6, negated and not.
typedef unsigned int uint32_t;
__device__ __forceinline__ void copy(uint32_t to, const char *from, bool reads) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(reads ? 16 : 0) : "memory");
}
// Rows of PITCH bytes, `stride` apart, to rows of PITCH bytes with their 16-byte chunks permuted as wgmma has them.
#define BODY(N, PITCH, WIDE)                                                                            \
    __shared__ __align__(1024) char tile[N * 4096];                                                     \
    int l = threadIdx.x, row = l / WIDE, chunk = l % WIDE;                                              \
    uint32_t base = (uint32_t)__cvta_generic_to_shared(tile) + row * PITCH + ((chunk ^ ((row >> 1) & (WIDE - 1))) * 16);   \
    const char *from = in + (size_t)blockIdx.x * 8192 + row * stride + chunk * 16;
#define SIX(NAME, PITCH, WIDE, OP)                                                                      \
extern "C" __global__ void NAME(const char *in, int stride, int l0, int l1, int l2, int l3, int l4, int l5, int *out) {  \
    BODY(6, PITCH, WIDE)                                                                                \
    bool p0 = l OP l0, p1 = l OP l1, p2 = l OP l2, p3 = l OP l3, p4 = l OP l4, p5 = l OP l5;            \
    copy(base, from, p0); copy(base + 4096, from, p1); copy(base + 2 * 4096, from, p2);                 \
    copy(base + 3 * 4096, from, p3); copy(base + 4 * 4096, from, p4); copy(base + 5 * 4096, from, p5);  \
    asm volatile("cp.async.wait_all;" ::: "memory");                                                    \
    __syncthreads();                                                                                    \
    if (p0 & p1 & p2 & p3 & p4 & p5 & (l == 777)) out[l] = tile[l];                                     \
}
#define ONE(NAME, PITCH, WIDE, OP)                                                                      \
extern "C" __global__ void NAME(const char *in, int stride, int l0, int *out) {                         \
    BODY(1, PITCH, WIDE)                                                                                \
    copy(base, from, l OP l0);                                                                          \
    asm volatile("cp.async.wait_all;" ::: "memory");                                                    \
    __syncthreads();                                                                                    \
    if (l == 777) out[l] = tile[l];                                                                     \
}
SIX(six_ge_64, 64, 4, >=)
SIX(six_lt_64, 64, 4, <)
SIX(six_ge_128, 128, 8, >=)
ONE(one_ge_64, 64, 4, >=)
ONE(one_lt_64, 64, 4, <)
ONE(one_ge_128, 128, 8, >=)
ONE(one_lt_128, 128, 8, <)

// The same under guards: lanes without the predicate copy nothing.
#define STOPPED(K, P) asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; @q cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(base + K * 4096), "l"(from), "r"((int)(P)) : "memory");
#define GUARDED(NAME, PITCH, WIDE, OP)                                                                      \
extern "C" __global__ void NAME(const char *in, int stride, int l0, int l1, int l2, int l3, int l4, int l5, int *out) {  \
    BODY(6, PITCH, WIDE)                                                                                   \
    bool p0 = l OP l0, p1 = l OP l1, p2 = l OP l2, p3 = l OP l3, p4 = l OP l4, p5 = l OP l5;            \
    STOPPED(0, p0) STOPPED(1, p1) STOPPED(2, p2) STOPPED(3, p3) STOPPED(4, p4) STOPPED(5, p5)                             \
    asm volatile("cp.async.wait_all;" ::: "memory");                                                    \
    __syncthreads();                                                                                    \
    if (p0 & p1 & p2 & p3 & p4 & p5 & (l == 777)) out[l] = tile[l];                                     \
}
GUARDED(guard_ge_64, 64, 4, >=)
GUARDED(guard_lt_64, 64, 4, <)
GUARDED(guard_ge_128, 128, 8, >=)
