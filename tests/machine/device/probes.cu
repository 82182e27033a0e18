// Probes: each computes four words a lane from four, mostly by one family of instructions.
//
// PROBE(name, kind, since): `kind` names the inputs (inputs.py), `since` is the first target that has what it needs.
// a, b, c, d are the lane's words, r0 to r3 its results.
// h200.json holds what an H200 made of them; record.py says how.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef __nv_bfloat162 brain2;

__device__ u64 pair(u32 low, u32 high) { return (u64)high << 32 | low; }
__device__ u32 bits(half2 value) { return *(u32*)&value; }
__device__ u32 bits(brain2 value) { return *(u32*)&value; }

#define PROBE(name, kind, since)                                                                                          \
  __device__ void compute_##name(const uint4* in, uint4* out, u32 i, uint4 v, u32 a, u32 b, u32 c, u32 d, u32& r0, \
                                 u32& r1, u32& r2, u32& r3);                                                       \
  extern "C" __global__ void name(const uint4* __restrict__ in, uint4* __restrict__ out) {                         \
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, r0, r1, r2, r3;                                                 \
    uint4 v = in[i];                                                                                               \
    compute_##name(in, out, i, v, v.x, v.y, v.z, v.w, r0, r1, r2, r3);                                             \
    out[i] = make_uint4(r0, r1, r2, r3);                                                                           \
  }                                                                                                                \
  __device__ void compute_##name(const uint4* in, uint4* out, u32 i, uint4 v, u32 a, u32 b, u32 c, u32 d, u32& r0, \
                                 u32& r1, u32& r2, u32& r3)

#define ALL "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(a), "r"(b), "r"(c), "r"(d)
#define SINGLES float fa = __uint_as_float(a), fb = __uint_as_float(b), fc = __uint_as_float(c), fd = __uint_as_float(d)
#define DOUBLES double da = __hiloint2double(b, a), db = __hiloint2double(d, c)
#define HALVES half2 ha = *(half2*)&a, hb = *(half2*)&b, hc = *(half2*)&c, hd = *(half2*)&d
#define BRAINS brain2 ba = *(brain2*)&a, bb = *(brain2*)&b, bc = *(brain2*)&c
#define LOW(z) r0 = __double2loint(z), r1 = __double2hiint(z)
#define HIGH(z) r2 = __double2loint(z), r3 = __double2hiint(z)
#define LONGS(z, w) r0 = z, r1 = z >> 32, r2 = w, r3 = w >> 32

PROBE(add64, words, 75) {
  u64 x = pair(a, b), y = pair(c, d);
  auto z = x + y;
  auto w = x - y;
  LONGS(z, w);
}

PROBE(add64_3, words, 75) {
  u64 x = pair(a, b), y = pair(c, d), v3 = pair(d, a);
  auto z = x + y + v3;
  auto w = x - y - v3;
  LONGS(z, w);
}

PROBE(neg64, words, 75) {
  long long x = pair(a, b), y = pair(c, d);
  auto z = -x;
  auto w = -x - y;
  LONGS(z, w);
}

PROBE(add96, words, 75) {
  asm("add.cc.u32 %0,%4,%5; addc.cc.u32 %1,%5,%6; addc.cc.u32 %2,%6,%7; addc.u32 %3,%7,%4;" : ALL);
}

PROBE(sub96, words, 75) {
  asm("sub.cc.u32 %0,%4,%5; subc.cc.u32 %1,%5,%6; subc.cc.u32 %2,%6,%7; subc.u32 %3,%7,%4;" : ALL);
}

PROBE(madcc, words, 75) {
  asm("mad.lo.cc.u32 %0,%4,%5,%6; madc.hi.cc.u32 %1,%4,%5,%7; madc.lo.cc.u32 %2,%5,%6,%7; madc.hi.u32 %3,%5,%6,%4;"
      : ALL);
}

PROBE(mulhi, words, 75) {
  r0 = __umulhi(a, b);
  r1 = __mulhi((int)a, (int)b);
  r2 = a * b + c;
  r3 = __umulhi(c, d) + a;
}

PROBE(madhi, words, 75) {
  asm("mad.hi.u32 %0,%4,%5,%6; mad.hi.s32 %1,%4,%5,%6; mad.lo.s32 %2,%5,%6,%7; mad.hi.s32 %3,%6,%7,%4;" : ALL);
}

PROBE(mulwide, words, 75) {
  long long z = (long long)(int)a * (int)b + (pair(c, d));
  u64 w = (u64)a * b - (pair(c, d));
  LONGS(z, w);
}

PROBE(mul64, words, 75) {
  u64 x = pair(a, b), y = pair(c, d);
  auto z = x * y;
  auto w = __umul64hi(x, y);
  LONGS(z, w);
}

PROBE(mul64hi, words, 75) {
  long long x = pair(a, b), y = pair(c, d);
  auto z = __mul64hi(x, y);
  auto w = z + x;
  LONGS(z, w);
}

PROBE(mul24, words, 75) {
  r0 = __mul24(a, b);
  r1 = __umul24(a, b);
  asm("mul24.hi.s32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  asm("mad24.lo.u32 %0,%1,%2,%3;" : "=r"(r3) : "r"(a), "r"(b), "r"(c));
}

PROBE(udiv, words, 75) {
  u32 q = b ? b : 1u;
  r0 = a / q;
  r1 = a % q;
  int s = (int)d;
  if (s == 0) s = 3;
  r2 = (int)c / s;
  r3 = (int)c % s;
}

PROBE(udivsmall, words, 75) {
  u32 q = (b & 1023) + 1;
  r0 = (a >> 8) / q;
  r1 = a % q;
  r2 = a / 7;
  r3 = (int)a / -13;
}

PROBE(div64, words, 75) {
  u64 x = pair(a, b), y = ((u64)(d & 0xffff) << 32) | c;
  if (!y) y = 5;
  auto z = x / y;
  auto w = x % y;
  LONGS(z, w);
}

PROBE(lea, words, 75) {
  r0 = a * 4 + b;
  r1 = (a << 7) + d;
  u64 z = ((pair(a, b)) << 5) + (pair(c, d));
  r2 = z;
  r3 = z >> 32;
}

PROBE(lea2, words, 75) {
  u64 z = ((long long)(int)a << 3) + (pair(c, d));
  r0 = z;
  r1 = z >> 32;
  r2 = ((long long)(int)b >> 29) + c;
  r3 = ((pair(a, b)) >> 27) + c;
}

PROBE(minmax, words, 75) {
  r0 = min((int)a, (int)b);
  r1 = max(a, b);
  r2 = min(max((int)a, (int)b), (int)c);
  r3 = max(min(a, b), d);
}

PROBE(minmax2, words, 75) {
  r0 = min((int)(a + b), (int)c);
  r1 = max(a + b, c);
  r2 = max((int)(a + b), 0);
  r3 = abs((int)d);
}

PROBE(sad, words, 75) {
  r0 = __sad((int)a, (int)b, c);
  r1 = __usad(a, b, c);
  r2 = __vabsdiffu4(a, b);
  r3 = __vadd4(a, b);
}

PROBE(hadd, words, 75) {
  r0 = __hadd(a, b);
  r1 = __uhadd(a, b);
  r2 = __rhadd(a, b);
  r3 = __urhadd(a, b);
}

PROBE(bits, words, 75) {
  r0 = __popc(a);
  r1 = __clz(a);
  r2 = __brev(a);
  r3 = __ffs(a);
}

PROBE(bfind, words, 75) {
  asm("bfind.u32 %0,%1;" : "=r"(r0) : "r"(a));
  asm("bfind.s32 %0,%1;" : "=r"(r1) : "r"(a));
  asm("bfind.shiftamt.u32 %0,%1;" : "=r"(r2) : "r"(a));
  asm("bfind.shiftamt.s32 %0,%1;" : "=r"(r3) : "r"(a));
}

PROBE(bits64, words, 75) {
  u64 x = pair(a, b);
  r0 = __popcll(x);
  r1 = __clzll(x);
  auto z = __brevll(x);
  r2 = z;
  r3 = z >> 32;
}

PROBE(bfe, words, 75) {
  asm("bfe.u32 %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(b & 63), "r"(c & 63));
  asm("bfe.s32 %0,%1,%2,%3;" : "=r"(r1) : "r"(a), "r"(b & 63), "r"(c & 63));
  asm("bfi.b32 %0,%1,%2,%3,%4;" : "=r"(r2) : "r"(a), "r"(b), "r"(c & 63), "r"(d & 63));
  asm("bfe.s32 %0,%1,5,11;" : "=r"(r3) : "r"(a));
}

PROBE(szext, words, 75) {
  asm("szext.wrap.s32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("szext.clamp.s32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b & 63));
  asm("szext.wrap.u32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  asm("szext.clamp.u32 %0,%1,%2;" : "=r"(r3) : "r"(a), "r"(b & 63));
}

PROBE(bmsk, words, 75) {
  asm("bmsk.wrap.b32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("bmsk.clamp.b32 %0,%1,%2;" : "=r"(r1) : "r"(a & 63), "r"(b & 63));
  asm("bmsk.clamp.b32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  r3 = 0;
}

PROBE(lop0, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,27;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,65;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,189;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,41;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop1, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,150;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,204;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,26;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,114;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop2, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,232;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,178;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,88;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,248;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop3, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,202;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,144;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,134;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,174;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop4, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,106;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,48;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,230;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,142;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop5, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,1;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,91;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,7;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,11;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop6, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,254;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,164;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,242;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,234;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop7, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,45;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,119;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,59;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,239;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop8, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,142;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,212;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,226;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,26;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop9, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,23;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,77;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,161;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,253;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop10, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,83;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,9;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,69;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,145;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop11, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,180;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,238;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,236;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,188;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop12, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,209;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,139;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,183;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,251;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop13, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,71;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,29;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,241;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,13;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop14, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,57;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,99;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,143;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,115;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop15, words, 75) {
  asm("lop3.b32 %0,%1,%2,%3,101;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,63;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0,%1,%2,%3,195;" : "=r"(r2) : "r"(a), "r"(d), "r"(c));
  asm("lop3.b32 %0,%1,%2,0x0f0f3355,87;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(lop_pred, words, 75) {
  asm("{.reg .pred p,q; setp.lt.u32 q,%4,%5; lop3.or.b32 %0|p,%1,%2,%3,0x42,q; selp.b32 %0,%0,77,p;}"
      : "=r"(r0)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a));
  asm("{.reg .pred p,q; setp.lt.u32 q,%4,%5; lop3.and.b32 %0|p,%1,%2,%3,0x80,q; selp.b32 %0,%0,77,p;}"
      : "=r"(r1)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a));
  r2 = ((a & b) ? 1 : 2);
  r3 = ((a ^ c) != 0 && d > 5) ? 7 : 9;
}

PROBE(plop, words, 75) {
  bool x = a < b, y = c < d, z = (a & 8) != 0;
  r0 = (x ^ y ^ z) | ((x & y) << 1) | ((x || (y && z)) << 2) | ((!x && y) << 3) | ((x ? y : z) << 4);
  bool m = (x && !z) || (y && z);
  r1 = m ? a : b;
  r2 = (x == y) ? c : d;
  r3 = (x & y & z) ? 1 : ((x | y | z) ? 2 : 3);
}

PROBE(cmp, words, 75) {
  r0 = ((int)a < (int)b) | ((int)a <= (int)b) << 1 | ((int)a > (int)b) << 2 | ((int)a >= (int)b) << 3 | (a == b) << 4 |
       (a != b) << 5 | (a < b) << 6 | (a <= b) << 7 | (a > b) << 8 | (a >= b) << 9;
  r1 = (int)c < 0 ? a : b;
  r2 = c >= 17 ? a : b;
  r3 = ((int)a > (int)b || c < d) ? 5 : 6;
}

PROBE(cmp64, words, 75) {
  long long x = pair(a, b), y = pair(c, d);
  u64 u = x, v3 = y;
  r0 = (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5 | (u < v3) << 6 |
       (u <= v3) << 7 | (u > v3) << 8 | (u >= v3) << 9;
  auto m = min(x, y);
  r1 = m;
  r2 = m >> 32;
  r3 = max(u, v3) >> 32;
}

PROBE(cmp64eq, equal, 75) {
  long long x = pair(a, b), y = pair(c, d);
  u64 u = x, v3 = y;
  r0 = (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5 | (u < v3) << 6 |
       (u <= v3) << 7 | (u > v3) << 8 | (u >= v3) << 9;
  auto m = min(x, y);
  r1 = m;
  r2 = m >> 32;
  r3 = max(u, v3) >> 32;
}

PROBE(shift, words, 75) {
  asm("shl.b32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("shr.u32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b));
  asm("shr.s32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  r3 = a << (b & 31);
}

PROBE(shiftsmall, shift, 75) {
  asm("shl.b32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("shr.u32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b));
  asm("shr.s32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  r3 = (int)a >> (b & 31);
}

PROBE(shift64, shift, 75) {
  u64 x = pair(a, c);
  u64 z, w;
  asm("shl.b64 %0,%1,%2;" : "=l"(z) : "l"(x), "r"(b));
  asm("shr.u64 %0,%1,%2;" : "=l"(w) : "l"(x), "r"(b));
  LONGS(z, w);
}

PROBE(shift64s, shift, 75) {
  u64 x = pair(a, c);
  u64 z, w;
  asm("shr.s64 %0,%1,%2;" : "=l"(z) : "l"(x), "r"(b));
  asm("shr.s64 %0,%1,37;" : "=l"(w) : "l"(x));
  LONGS(z, w);
}

PROBE(shift64c, shift, 75) {
  u64 x = pair(a, c);
  auto z = (x << 13) ^ (x >> 45);
  auto w = (x << 41) ^ ((long long)x >> 3);
  LONGS(z, w);
}

PROBE(funnel, shift, 75) {
  r0 = __funnelshift_l(a, c, b);
  r1 = __funnelshift_r(a, c, b);
  r2 = __funnelshift_lc(a, c, b);
  r3 = __funnelshift_rc(a, c, b);
}

PROBE(funnelc, shift, 75) {
  r0 = __funnelshift_l(a, c, 7);
  r1 = __funnelshift_r(a, c, 9);
  r2 = __funnelshift_l(a, a, 20);
  r3 = __funnelshift_rc(a, c, 32);
}

PROBE(prmt_f4e, shift, 75) {
  asm("prmt.b32.f4e %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(c), "r"(b));
  asm("prmt.b32.f4e %0,%1,%2,2;" : "=r"(r1) : "r"(a), "r"(c));
  r2 = 0;
  r3 = 0;
}

PROBE(prmt_b4e, shift, 75) {
  asm("prmt.b32.b4e %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(c), "r"(b));
  asm("prmt.b32.b4e %0,%1,%2,2;" : "=r"(r1) : "r"(a), "r"(c));
  r2 = 0;
  r3 = 0;
}

PROBE(prmt_rc8, shift, 75) {
  asm("prmt.b32.rc8 %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(c), "r"(b));
  asm("prmt.b32.rc8 %0,%1,%2,2;" : "=r"(r1) : "r"(a), "r"(c));
  r2 = 0;
  r3 = 0;
}

PROBE(prmt_ecl, shift, 75) {
  asm("prmt.b32.ecl %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(c), "r"(b));
  asm("prmt.b32.ecl %0,%1,%2,2;" : "=r"(r1) : "r"(a), "r"(c));
  r2 = 0;
  r3 = 0;
}

PROBE(prmt_ecr, shift, 75) {
  asm("prmt.b32.ecr %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(c), "r"(b));
  asm("prmt.b32.ecr %0,%1,%2,2;" : "=r"(r1) : "r"(a), "r"(c));
  r2 = 0;
  r3 = 0;
}

PROBE(prmt_rc16, shift, 75) {
  asm("prmt.b32.rc16 %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(c), "r"(b));
  asm("prmt.b32.rc16 %0,%1,%2,2;" : "=r"(r1) : "r"(a), "r"(c));
  r2 = 0;
  r3 = 0;
}

PROBE(prmt, words, 75) {
  r0 = __byte_perm(a, b, c);
  asm("prmt.b32 %0,%1,%2,%3;" : "=r"(r1) : "r"(a), "r"(b), "r"(d));
  asm("prmt.b32 %0,%1,%2,0xfb84;" : "=r"(r2) : "r"(a), "r"(b));
  r3 = __byte_perm(a, b, 0x2107);
}

PROBE(dp, words, 75) {
  r0 = __dp4a((int)a, (int)b, (int)c);
  r1 = __dp4a(a, b, c);
  r2 = __dp2a_lo((int)a, (int)b, (int)c);
  r3 = __dp2a_hi(a, b, c);
}

PROBE(dpmix, words, 75) {
  asm("dp4a.u32.s32 %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("dp4a.s32.u32 %0,%1,%2,%3;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("dp2a.lo.u32.s32 %0,%1,%2,%3;" : "=r"(r2) : "r"(a), "r"(b), "r"(c));
  asm("dp2a.hi.s32.u32 %0,%1,%2,%3;" : "=r"(r3) : "r"(a), "r"(b), "r"(c));
}

PROBE(narrow, words, 75) {
  short s = a;
  signed char q = b;
  u16 u = c;
  u8 v3 = d;
  r0 = s;
  r1 = q;
  r2 = u;
  r3 = v3;
}

PROBE(simd, words, 75) {
  r0 = __vmaxs2(a, b);
  r1 = __vminu2(a, b);
  r2 = __vmaxs4(a, b);
  r3 = __viaddmax_s32(a, b, c);
}

PROBE(simd2, words, 75) {
  r0 = __vimax3_s32(a, b, c);
  r1 = __vimin3_u32(a, b, c);
  r2 = __viaddmin_s32_relu(a, b, c);
  r3 = __vimax3_s16x2(a, b, c);
}

PROBE(simd3, words, 75) {
  r0 = __viaddmax_s16x2(a, b, c);
  r1 = __viaddmin_u16x2(a, b, c);
  r2 = __vimin3_u16x2(a, b, c);
  r3 = __viaddmax_s16x2_relu(a, b, c);
}

PROBE(simd4, words, 75) {
  r0 = __vimax_s16x2_relu(a, b);
  r1 = __vimin_s32_relu(a, b);
  r2 = __vimax3_s32_relu(a, b, c);
  bool pr;
  r3 = __vibmax_s32(a, b, &pr) + pr;
}

PROBE(satint, words, 75) {
  asm("add.sat.s32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("sub.sat.s32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b));
  asm("mad.hi.sat.s32 %0,%1,%2,%3;" : "=r"(r2) : "r"(a), "r"(b), "r"(c));
  r3 = 0;
}

PROBE(cvtsat, words, 75) {
  asm("{.reg .s8 t; cvt.sat.s8.s32 %0,%1;}" : "=r"(r0) : "r"(a));
  asm("cvt.sat.u8.s32 %0,%1;" : "=r"(r1) : "r"(a));
  asm("{.reg .s16 t; cvt.sat.s16.s32 t,%1; cvt.s32.s16 %0,t;}" : "=r"(r2) : "r"(a));
  asm("{.reg .u16 t; cvt.sat.u16.u32 t,%1; cvt.u32.u16 %0,t;}" : "=r"(r3) : "r"(a));
}

PROBE(cvtpack, words, 75) {
  asm("cvt.pack.sat.s8.s32.b32 %0,%1,%2,%3;" : "=r"(r0) : "r"(a), "r"(b), "r"(c));
  asm("cvt.pack.sat.u8.s32.b32 %0,%1,%2,%3;" : "=r"(r1) : "r"(a), "r"(b), "r"(c));
  asm("cvt.pack.sat.s16.s32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  asm("cvt.pack.sat.u16.s32 %0,%1,%2;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(shfl, words, 75) {
  r0 = __shfl_sync(~0u, a, b & 31);
  r1 = __shfl_up_sync(~0u, a, 3, 8);
  r2 = __shfl_down_sync(~0u, a, 5, 16);
  r3 = __shfl_xor_sync(~0u, a, 9, 32);
}

PROBE(shfl2, words, 75) {
  asm("{.reg .pred p; shfl.sync.idx.b32 %0|p,%1,%2,%3,0xffffffff; @!p xor.b32 %0,%0,0xffff;}"
      : "=r"(r0)
      : "r"(a), "r"(b), "r"(c));
  asm("{.reg .pred p; shfl.sync.up.b32 %0|p,%1,%2,%3,0xffffffff; @!p xor.b32 %0,%0,0xffff;}"
      : "=r"(r1)
      : "r"(a), "r"(b), "r"(c));
  asm("{.reg .pred p; shfl.sync.down.b32 %0|p,%1,%2,%3,0xffffffff; @!p xor.b32 %0,%0,0xffff;}"
      : "=r"(r2)
      : "r"(a), "r"(b), "r"(c));
  asm("{.reg .pred p; shfl.sync.bfly.b32 %0|p,%1,%2,%3,0xffffffff; @!p xor.b32 %0,%0,0xffff;}"
      : "=r"(r3)
      : "r"(a), "r"(b), "r"(c));
}

PROBE(vote, words, 75) {
  r0 = __ballot_sync(~0u, a & 1);
  r1 = __any_sync(~0u, (a & 63) == 0) | __all_sync(~0u, a != 0) << 1;
  int q;
  asm("{.reg .pred p,q; setp.lt.u32 p,%1,0xf0000000; vote.sync.uni.pred q,p,0xffffffff; selp.u32 %0,1,0,q;}"
      : "=r"(q)
      : "r"(b));
  r2 = q;
  r3 = __activemask();
}

PROBE(match, shift, 75) {
  r0 = __match_any_sync(~0u, b);
  int pr;
  r1 = __match_all_sync(~0u, a, &pr);
  r1 += pr;
  r2 = __match_any_sync(~0u, (u64)b << 30);
  r3 = __match_all_sync(~0u, 5u, &pr) + pr;
}

PROBE(redux, words, 80) {
  r0 = __reduce_add_sync(~0u, a);
  r1 = __reduce_max_sync(~0u, (int)a);
  r2 = __reduce_min_sync(~0u, b);
  r3 = __reduce_xor_sync(~0u, c) ^ __reduce_and_sync(~0u, d | 0xff) ^ __reduce_or_sync(~0u, d & 0xff00);
}

PROBE(redux2, words, 80) {
  r0 = __reduce_min_sync(~0u, (int)a);
  r1 = __reduce_max_sync(~0u, b);
  r2 = __reduce_add_sync(~0u, (int)c);
  r3 = __reduce_or_sync(~0u, d);
}

PROBE(elect, words, 90) {
  u32 l;
  int e;
  asm("{.reg .pred p; elect.sync %0|p,0xffffffff; selp.u32 %1,1,0,p;}" : "=r"(l), "=r"(e));
  r0 = l;
  r1 = e;
  r2 = a;
  r3 = b;
}

PROBE(special, words, 75) {
  asm("mov.u32 %0,%%laneid;" : "=r"(r0));
  asm("mov.u32 %0,%%lanemask_lt;" : "=r"(r1));
  asm("mov.u32 %0,%%lanemask_ge;" : "=r"(r2));
  asm("mov.u32 %0,%%lanemask_eq;" : "=r"(r3));
}

PROBE(fadd, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(fa + fb);
  r1 = __float_as_uint(fa - fb);
  r2 = __float_as_uint(fa * fb);
  r3 = __float_as_uint(fmaf(fa, fb, fc));
}

PROBE(fadd_rn, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_rn(fa, fb));
  r1 = __float_as_uint(__fsub_rn(fa, fb));
  r2 = __float_as_uint(__fmul_rn(fa, fb));
  r3 = __float_as_uint(__fmaf_rn(fa, fb, fc));
}

PROBE(fmid_rn, halfway, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_rn(fa, fb));
  r1 = __float_as_uint(__fmaf_rn(fd, fb, fc));
  r2 = __float_as_uint(__fmul_rn(fa, fb));
  r3 = __float_as_uint(__fmaf_rn(fa, fb, fc));
}

PROBE(ftz_rn, denormal, 75) {
  asm("add.rn.ftz.f32 %0,%4,%5; mul.rn.ftz.f32 %1,%4,%5; fma.rn.ftz.f32 %2,%4,%5,%6; fma.rn.ftz.f32 %3,%5,%6,%7;"
      : ALL);
}

PROBE(fadd_rz, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_rz(fa, fb));
  r1 = __float_as_uint(__fsub_rz(fa, fb));
  r2 = __float_as_uint(__fmul_rz(fa, fb));
  r3 = __float_as_uint(__fmaf_rz(fa, fb, fc));
}

PROBE(fmid_rz, halfway, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_rz(fa, fb));
  r1 = __float_as_uint(__fmaf_rz(fd, fb, fc));
  r2 = __float_as_uint(__fmul_rz(fa, fb));
  r3 = __float_as_uint(__fmaf_rz(fa, fb, fc));
}

PROBE(ftz_rz, denormal, 75) {
  asm("add.rz.ftz.f32 %0,%4,%5; mul.rz.ftz.f32 %1,%4,%5; fma.rz.ftz.f32 %2,%4,%5,%6; fma.rz.ftz.f32 %3,%5,%6,%7;"
      : ALL);
}

PROBE(fadd_rd, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_rd(fa, fb));
  r1 = __float_as_uint(__fsub_rd(fa, fb));
  r2 = __float_as_uint(__fmul_rd(fa, fb));
  r3 = __float_as_uint(__fmaf_rd(fa, fb, fc));
}

PROBE(fmid_rd, halfway, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_rd(fa, fb));
  r1 = __float_as_uint(__fmaf_rd(fd, fb, fc));
  r2 = __float_as_uint(__fmul_rd(fa, fb));
  r3 = __float_as_uint(__fmaf_rd(fa, fb, fc));
}

PROBE(ftz_rd, denormal, 75) {
  asm("add.rm.ftz.f32 %0,%4,%5; mul.rm.ftz.f32 %1,%4,%5; fma.rm.ftz.f32 %2,%4,%5,%6; fma.rm.ftz.f32 %3,%5,%6,%7;"
      : ALL);
}

PROBE(fadd_ru, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_ru(fa, fb));
  r1 = __float_as_uint(__fsub_ru(fa, fb));
  r2 = __float_as_uint(__fmul_ru(fa, fb));
  r3 = __float_as_uint(__fmaf_ru(fa, fb, fc));
}

PROBE(fmid_ru, halfway, 75) {
  SINGLES;
  r0 = __float_as_uint(__fadd_ru(fa, fb));
  r1 = __float_as_uint(__fmaf_ru(fd, fb, fc));
  r2 = __float_as_uint(__fmul_ru(fa, fb));
  r3 = __float_as_uint(__fmaf_ru(fa, fb, fc));
}

PROBE(ftz_ru, denormal, 75) {
  asm("add.rp.ftz.f32 %0,%4,%5; mul.rp.ftz.f32 %1,%4,%5; fma.rp.ftz.f32 %2,%4,%5,%6; fma.rp.ftz.f32 %3,%5,%6,%7;"
      : ALL);
}

PROBE(fsat, singles, 75) {
  asm("add.sat.f32 %0,%4,%5; mul.sat.f32 %1,%4,%5; fma.rn.sat.f32 %2,%4,%5,%6; add.ftz.sat.f32 %3,%4,%6;" : ALL);
}

PROBE(fabsneg, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(-fabsf(fa) + fb);
  r1 = __float_as_uint(fabsf(fa) * -fb);
  r2 = __float_as_uint(fmaf(-fa, fabsf(fb), -fc));
  r3 = __float_as_uint(-fa);
}

PROBE(fsetp, singles, 75) {
  r0 = 0;
  {
    u32 t;
    asm("{.reg .pred p; setp.lt.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 0;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.le.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 1;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.gt.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 2;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ge.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 3;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.eq.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 4;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ne.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 5;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ltu.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 6;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.leu.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 7;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.gtu.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 8;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.geu.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 9;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.equ.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 10;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.neu.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 11;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.num.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 12;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.nan.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r0 |= t << 13;
  }
  r1 = 0;
  {
    u32 t;
    asm("{.reg .pred p; setp.lt.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 0;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.le.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 1;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.gt.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 2;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ge.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 3;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.eq.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 4;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ne.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 5;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ltu.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 6;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.leu.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 7;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.gtu.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 8;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.geu.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 9;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.equ.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 10;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.neu.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 11;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.num.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 12;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.nan.ftz.f32 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "r"(a), "r"(b));
    r1 |= t << 13;
  }
  r2 = 0;
  r3 = 0;
}

PROBE(fset, singles, 75) {
  asm("set.lt.f32.f32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("set.geu.u32.f32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b));
  asm("{.reg .pred p,q,s; setp.lt.u32 s,%3,%4; setp.gt.and.f32 p|q,%1,%2,s; selp.u32 %0,1,0,p; @q add.u32 %0,%0,2;}"
      : "=r"(r2)
      : "r"(a), "r"(b), "r"(c), "r"(d));
  asm("slct.u32.f32 %0,%1,%2,%3;" : "=r"(r3) : "r"(a), "r"(b), "r"(c));
}

PROBE(fminmax, singles, 80) {
  asm("min.f32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("max.f32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b));
  asm("min.NaN.f32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  asm("max.ftz.f32 %0,%1,%2;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(fminmax2, singles, 86) {
  asm("max.NaN.f32 %0,%1,%2;" : "=r"(r0) : "r"(a), "r"(b));
  asm("max.xorsign.abs.f32 %0,%1,%2;" : "=r"(r1) : "r"(a), "r"(b));
  asm("min.NaN.xorsign.abs.f32 %0,%1,%2;" : "=r"(r2) : "r"(a), "r"(b));
  r3 = __float_as_uint(fmaxf(fminf(__uint_as_float(a), __uint_as_float(b)), __uint_as_float(c)));
}

PROBE(fsel, singles, 75) {
  SINGLES;
  r0 = __float_as_uint((c & 1) ? fa : -fb);
  r1 = __float_as_uint((c & 2) ? fabsf(fa) : fb);
  r2 = __float_as_uint((d & 1) ? __int_as_float(0x7fffffff) : fa);
  r3 = __float_as_uint(fmaxf(fa, -0.0f));
}

PROBE(frnd, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(rintf(fa));
  r1 = __float_as_uint(truncf(fa));
  r2 = __float_as_uint(floorf(fa));
  r3 = __float_as_uint(ceilf(fa));
}

PROBE(fround, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(roundf(fa));
  r1 = __float_as_uint(nearbyintf(fb));
  r2 = __float_as_uint(fa - truncf(fa));
  r3 = __float_as_uint(fmodf(1.5f, 2.f));
}

PROBE(i2f_rn, words, 75) {
  r0 = __float_as_uint(__int2float_rn((int)a));
  r1 = __float_as_uint(__uint2float_rn(a));
  long long x = pair(a, b);
  r2 = __float_as_uint(__ll2float_rn(x));
  r3 = __float_as_uint(__ull2float_rn(x));
}

PROBE(l2d_rn, words, 75) {
  long long x = pair(a, b);
  double z = __ll2double_rn(x), w = __ull2double_rn(x);
  r0 = __double2loint(z);
  r1 = __double2hiint(z);
  r2 = __double2loint(w);
  r3 = __double2hiint(w);
}

PROBE(f2i_rn, integral, 75) {
  float f = __uint_as_float(a);
  r0 = __float2int_rn(f);
  r1 = __float2uint_rn(f);
  long long z = __float2ll_rn(f);
  r2 = z;
  r3 = z >> 32;
}

PROBE(f2l_rn, integral, 75) {
  float f = __uint_as_float(a);
  u64 z = __float2ull_rn(f);
  r0 = z;
  r1 = z >> 32;
  r2 = 0;
  r3 = 0;
}

PROBE(d2i_rn, integral_doubles, 75) {
  DOUBLES;
  r0 = __double2int_rn(da);
  r1 = __double2uint_rn(da);
  long long z = __double2ll_rn(da);
  r2 = z;
  r3 = z >> 32;
}

PROBE(d2l_rn, integral_doubles, 75) {
  DOUBLES;
  u64 z = __double2ull_rn(da);
  r0 = z;
  r1 = z >> 32;
  r2 = __float_as_uint(__double2float_rn(da));
  r3 = __float_as_uint(__double2float_rn(db));
}

PROBE(dadd_rn, doubles, 75) {
  DOUBLES;
  double z = __dadd_rn(da, db);
  LOW(z);
  z = __dmul_rn(da, db);
  HIGH(z);
}

PROBE(dfma_rn, doubles, 75) {
  DOUBLES;
  double z = __fma_rn(da, db, __hiloint2double(c, b));
  LOW(z);
  z = __fma_rn(da, db, -da * db);
  HIGH(z);
}

PROBE(i2f_rz, words, 75) {
  r0 = __float_as_uint(__int2float_rz((int)a));
  r1 = __float_as_uint(__uint2float_rz(a));
  long long x = pair(a, b);
  r2 = __float_as_uint(__ll2float_rz(x));
  r3 = __float_as_uint(__ull2float_rz(x));
}

PROBE(l2d_rz, words, 75) {
  long long x = pair(a, b);
  double z = __ll2double_rz(x), w = __ull2double_rz(x);
  r0 = __double2loint(z);
  r1 = __double2hiint(z);
  r2 = __double2loint(w);
  r3 = __double2hiint(w);
}

PROBE(f2i_rz, integral, 75) {
  float f = __uint_as_float(a);
  r0 = __float2int_rz(f);
  r1 = __float2uint_rz(f);
  long long z = __float2ll_rz(f);
  r2 = z;
  r3 = z >> 32;
}

PROBE(f2l_rz, integral, 75) {
  float f = __uint_as_float(a);
  u64 z = __float2ull_rz(f);
  r0 = z;
  r1 = z >> 32;
  r2 = 0;
  r3 = 0;
}

PROBE(d2i_rz, integral_doubles, 75) {
  DOUBLES;
  r0 = __double2int_rz(da);
  r1 = __double2uint_rz(da);
  long long z = __double2ll_rz(da);
  r2 = z;
  r3 = z >> 32;
}

PROBE(d2l_rz, integral_doubles, 75) {
  DOUBLES;
  u64 z = __double2ull_rz(da);
  r0 = z;
  r1 = z >> 32;
  r2 = __float_as_uint(__double2float_rz(da));
  r3 = __float_as_uint(__double2float_rz(db));
}

PROBE(dadd_rz, doubles, 75) {
  DOUBLES;
  double z = __dadd_rz(da, db);
  LOW(z);
  z = __dmul_rz(da, db);
  HIGH(z);
}

PROBE(dfma_rz, doubles, 75) {
  DOUBLES;
  double z = __fma_rz(da, db, __hiloint2double(c, b));
  LOW(z);
  z = __fma_rz(da, db, -da * db);
  HIGH(z);
}

PROBE(i2f_rd, words, 75) {
  r0 = __float_as_uint(__int2float_rd((int)a));
  r1 = __float_as_uint(__uint2float_rd(a));
  long long x = pair(a, b);
  r2 = __float_as_uint(__ll2float_rd(x));
  r3 = __float_as_uint(__ull2float_rd(x));
}

PROBE(l2d_rd, words, 75) {
  long long x = pair(a, b);
  double z = __ll2double_rd(x), w = __ull2double_rd(x);
  r0 = __double2loint(z);
  r1 = __double2hiint(z);
  r2 = __double2loint(w);
  r3 = __double2hiint(w);
}

PROBE(f2i_rd, integral, 75) {
  float f = __uint_as_float(a);
  r0 = __float2int_rd(f);
  r1 = __float2uint_rd(f);
  long long z = __float2ll_rd(f);
  r2 = z;
  r3 = z >> 32;
}

PROBE(f2l_rd, integral, 75) {
  float f = __uint_as_float(a);
  u64 z = __float2ull_rd(f);
  r0 = z;
  r1 = z >> 32;
  r2 = 0;
  r3 = 0;
}

PROBE(d2i_rd, integral_doubles, 75) {
  DOUBLES;
  r0 = __double2int_rd(da);
  r1 = __double2uint_rd(da);
  long long z = __double2ll_rd(da);
  r2 = z;
  r3 = z >> 32;
}

PROBE(d2l_rd, integral_doubles, 75) {
  DOUBLES;
  u64 z = __double2ull_rd(da);
  r0 = z;
  r1 = z >> 32;
  r2 = __float_as_uint(__double2float_rd(da));
  r3 = __float_as_uint(__double2float_rd(db));
}

PROBE(dadd_rd, doubles, 75) {
  DOUBLES;
  double z = __dadd_rd(da, db);
  LOW(z);
  z = __dmul_rd(da, db);
  HIGH(z);
}

PROBE(dfma_rd, doubles, 75) {
  DOUBLES;
  double z = __fma_rd(da, db, __hiloint2double(c, b));
  LOW(z);
  z = __fma_rd(da, db, -da * db);
  HIGH(z);
}

PROBE(i2f_ru, words, 75) {
  r0 = __float_as_uint(__int2float_ru((int)a));
  r1 = __float_as_uint(__uint2float_ru(a));
  long long x = pair(a, b);
  r2 = __float_as_uint(__ll2float_ru(x));
  r3 = __float_as_uint(__ull2float_ru(x));
}

PROBE(l2d_ru, words, 75) {
  long long x = pair(a, b);
  double z = __ll2double_ru(x), w = __ull2double_ru(x);
  r0 = __double2loint(z);
  r1 = __double2hiint(z);
  r2 = __double2loint(w);
  r3 = __double2hiint(w);
}

PROBE(f2i_ru, integral, 75) {
  float f = __uint_as_float(a);
  r0 = __float2int_ru(f);
  r1 = __float2uint_ru(f);
  long long z = __float2ll_ru(f);
  r2 = z;
  r3 = z >> 32;
}

PROBE(f2l_ru, integral, 75) {
  float f = __uint_as_float(a);
  u64 z = __float2ull_ru(f);
  r0 = z;
  r1 = z >> 32;
  r2 = 0;
  r3 = 0;
}

PROBE(d2i_ru, integral_doubles, 75) {
  DOUBLES;
  r0 = __double2int_ru(da);
  r1 = __double2uint_ru(da);
  long long z = __double2ll_ru(da);
  r2 = z;
  r3 = z >> 32;
}

PROBE(d2l_ru, integral_doubles, 75) {
  DOUBLES;
  u64 z = __double2ull_ru(da);
  r0 = z;
  r1 = z >> 32;
  r2 = __float_as_uint(__double2float_ru(da));
  r3 = __float_as_uint(__double2float_ru(db));
}

PROBE(dadd_ru, doubles, 75) {
  DOUBLES;
  double z = __dadd_ru(da, db);
  LOW(z);
  z = __dmul_ru(da, db);
  HIGH(z);
}

PROBE(dfma_ru, doubles, 75) {
  DOUBLES;
  double z = __fma_ru(da, db, __hiloint2double(c, b));
  LOW(z);
  z = __fma_ru(da, db, -da * db);
  HIGH(z);
}

PROBE(i2d, words, 75) {
  double z = (double)(int)a, w = (double)a;
  r0 = __double2loint(z);
  r1 = __double2hiint(z);
  r2 = __double2loint(w);
  r3 = __double2hiint(w);
}

PROBE(i2dn, words, 75) {
  double z = (double)(signed char)a, w = (double)(u16)b;
  r0 = __double2hiint(z);
  r1 = __double2loint(z);
  r2 = __double2hiint(w);
  r3 = __float_as_uint((float)(short)c) + __float_as_uint((float)(u8)(d >> 16));
}

PROBE(f2d, singles, 75) {
  double z = (double)__uint_as_float(a);
  LOW(z);
  r2 = __float_as_uint((float)z);
  r3 = 0;
}

PROBE(d2fnan, doubles, 75) {
  DOUBLES;
  r0 = __float_as_uint((float)da);
  r1 = __float_as_uint(__double2float_rz(db));
  r2 = 0;
  r3 = 0;
}

PROBE(f2in, integral, 75) {
  asm("{.reg .s16 t; cvt.rzi.s16.f32 t,%1; cvt.s32.s16 %0,t;}" : "=r"(r0) : "r"(a));
  asm("{.reg .u16 t; cvt.rzi.u16.f32 t,%1; cvt.u32.u16 %0,t;}" : "=r"(r1) : "r"(a));
  asm("cvt.rzi.s8.f32 %0,%1;" : "=r"(r2) : "r"(a));
  asm("cvt.rni.u8.f32 %0,%1;" : "=r"(r3) : "r"(a));
}

PROBE(f2iftz, denormal, 75) {
  asm("cvt.rzi.ftz.s32.f32 %0,%1;" : "=r"(r0) : "r"(a));
  asm("cvt.rpi.ftz.u32.f32 %0,%1;" : "=r"(r1) : "r"(a));
  asm("cvt.rpi.s32.f32 %0,%1;" : "=r"(r2) : "r"(a));
  asm("cvt.rmi.ftz.f32.f32 %0,%1;" : "=r"(r3) : "r"(a));
}

PROBE(dminmax, doubles, 75) {
  DOUBLES;
  double z = fmin(da, db);
  LOW(z);
  z = fmax(da, db);
  HIGH(z);
}

PROBE(dsetp, doubles, 75) {
  DOUBLES;
  r0 = 0;
  {
    u32 t;
    asm("{.reg .pred p; setp.lt.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 0;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.le.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 1;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.gt.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 2;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ge.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 3;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.eq.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 4;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ne.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 5;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.ltu.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 6;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.leu.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 7;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.gtu.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 8;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.geu.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 9;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.equ.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 10;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.neu.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 11;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.num.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 12;
  }
  {
    u32 t;
    asm("{.reg .pred p; setp.nan.f64 p,%1,%2; selp.u32 %0,1,0,p;}" : "=r"(t) : "d"(da), "d"(db));
    r0 |= t << 13;
  }
  r1 = 0;
  r2 = 0;
  r3 = 0;
}

PROBE(drnd, integral_doubles, 75) {
  DOUBLES;
  double z = rint(da);
  LOW(z);
  z = floor(da) + trunc(db);
  HIGH(z);
}

PROBE(ddiv, doubles, 75) {
  DOUBLES;
  double z = da / db;
  LOW(z);
  z = sqrt(da);
  HIGH(z);
}

PROBE(dneg, doubles, 75) {
  DOUBLES;
  double z = -fabs(da) + db;
  LOW(z);
  z = da * -db + fabs(da);
  HIGH(z);
}

PROBE(dimm, doubles, 75) {
  DOUBLES;
  double z = da * 1.5 + 0.1;
  LOW(z);
  z = da + 3.0;
  HIGH(z);
}

PROBE(fdiv, singles, 75) {
  SINGLES;
  r0 = __float_as_uint(fa / fb);
  r1 = __float_as_uint(__frcp_rn(fa));
  r2 = __float_as_uint(sqrtf(fabsf(fa)));
  r3 = __float_as_uint(__fdiv_rz(fa, fb));
}

PROBE(hfma, halves, 75) {
  HALVES;
  r0 = bits(__hadd2(ha, hb));
  r1 = bits(__hmul2(ha, hb));
  r2 = bits(__hfma2(ha, hb, hc));
  r3 = bits(__hsub2(hb, hc));
}

PROBE(hfma2, halves, 75) {
  HALVES;
  r0 = bits(__hfma2_relu(ha, hb, hc));
  r1 = bits(__hfma2_sat(ha, hb, hc));
  r2 = bits(__hadd2_sat(ha, hb));
  r3 = bits(__hmul2_sat(ha, hb));
}

PROBE(hneg, halves, 75) {
  HALVES;
  r0 = bits(__hfma2(__hneg2(ha), __habs2(hb), hc));
  r1 = bits(__hfma2(__low2half2(ha), __high2half2(hb), hc));
  r2 = bits(__hmul2(__lowhigh2highlow(ha), hb));
  r3 = bits(__hadd2(ha, __half2half2(__float2half(1.5f))));
}

PROBE(hminmax, halves, 75) {
  HALVES;
  r0 = bits(__hmin2(ha, hb));
  r1 = bits(__hmax2(ha, hb));
  r2 = bits(__hmin2_nan(ha, hb));
  r3 = bits(__hmax2_nan(ha, hb));
}

PROBE(hcmp, halves, 75) {
  HALVES;
  r0 = __hbeq2(ha, hb) | __hblt2(ha, hb) << 1 | __hbgtu2(ha, hb) << 2 | __hbneu2(ha, hb) << 3;
  r1 = bits(__hle2(ha, hb));
  r2 = __hgt2_mask(ha, hb);
  r3 = __hltu2_mask(ha, hb) | (__hlt(__low2half(ha), __high2half(hb)) ? 1u : 0u);
}

PROBE(hcvt, halves, 75) {
  HALVES;
  r0 = __float_as_uint(__low2float(ha));
  r1 = __float_as_uint(__high2float(ha));
  r2 = __half2int_rz(__low2half(hb));
  r3 = __half2uint_ru(__high2half(hb));
}

PROBE(f2h, to_half, 80) {
  SINGLES;
  half2 t = __floats2half2_rn(fa, fb);
  r0 = *(u32*)&t;
  r1 = __half_as_ushort(__float2half_rz(fa)) | __half_as_ushort(__float2half_rd(fb)) << 16;
  r2 = __half_as_ushort(__float2half_ru(fc));
  asm("cvt.rn.relu.f16x2.f32 %0,%1,%2;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(i2h, words, 75) {
  r0 = __half_as_ushort(__int2half_rn((int)a >> 15));
  r1 = __half_as_ushort(__uint2half_rz(b >> 14));
  r2 = __half_as_ushort(__short2half_rn((short)c));
  r3 = __half_as_ushort(__ull2half_rn((pair(c, d)) >> 46));
}

PROBE(hrnd, halves, 75) {
  HALVES;
  r0 = bits(h2rint(ha));
  r1 = bits(h2floor(ha));
  r2 = bits(h2ceil(hb));
  r3 = bits(h2trunc(hb));
}

PROBE(d2h, doubles, 75) {
  DOUBLES;
  r0 = __half_as_ushort(__double2half(da));
  r1 = __half_as_ushort(__double2half(db));
  r2 = 0;
  r3 = 0;
}

PROBE(bfma, brains, 80) {
  BRAINS;
  r0 = bits(__hadd2(ba, bb));
  r1 = bits(__hmul2(ba, bb));
  r2 = bits(__hfma2(ba, bb, bc));
  r3 = bits(__hfma2_relu(ba, bb, bc));
}

PROBE(bminmax, brains, 75) {
  BRAINS;
  r0 = bits(__hmin2(ba, bb));
  r1 = bits(__hmax2(ba, bb));
  r2 = bits(__hmin2_nan(ba, bb));
  r3 = bits(__hneg2(__habs2(ba)));
}

PROBE(bcmp, brains, 75) {
  BRAINS;
  r0 = __hbeq2(ba, bb) | __hblt2(ba, bb) << 1 | __hbgtu2(ba, bb) << 2 | __hbneu2(ba, bb) << 3;
  r1 = bits(__hle2(ba, bb));
  r2 = __hgt2_mask(ba, bb);
  r3 = __float_as_uint(__low2float(ba)) ^ __float_as_uint(__high2float(bb));
}

PROBE(f2b, singles, 80) {
  SINGLES;
  brain2 t = __floats2bfloat162_rn(fa, fb);
  r0 = *(u32*)&t;
  r1 = __bfloat16_as_ushort(__float2bfloat16_rz(fa)) | __bfloat16_as_ushort(__float2bfloat16_rd(fb)) << 16;
  r2 = __bfloat16_as_ushort(__float2bfloat16_ru(fc));
  asm("cvt.rn.relu.bf16x2.f32 %0,%1,%2;" : "=r"(r3) : "r"(a), "r"(b));
}

PROBE(bi, words, 75) {
  r0 = __bfloat16_as_ushort(__int2bfloat16_rn((int)a));
  r1 = __bfloat16_as_ushort(__uint2bfloat16_rn(b));
  r2 = __bfloat162int_rz(__ushort_as_bfloat16((u16)c));
  r3 = 0;
}

PROBE(fp8, singles, 89) {
  SINGLES;
  asm("{.reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t,%1,%2; cvt.u32.u16 %0,t;}" : "=r"(r0) : "r"(a), "r"(b));
  asm("{.reg .b16 t; cvt.rn.satfinite.e5m2x2.f32 t,%1,%2; cvt.u32.u16 %0,t;}" : "=r"(r1) : "r"(a), "r"(b));
  asm("{.reg .b16 t; cvt.u16.u32 t,%1; cvt.rn.f16x2.e4m3x2 %0,t;}" : "=r"(r2) : "r"(c));
  asm("{.reg .b16 t; cvt.u16.u32 t,%1; cvt.rn.f16x2.e5m2x2 %0,t;}" : "=r"(r3) : "r"(c));
}

PROBE(tf32, singles, 90) {
  asm("cvt.rna.tf32.f32 %0,%1;" : "=r"(r0) : "r"(a));
  asm("cvt.rn.tf32.f32 %0,%1;" : "=r"(r1) : "r"(b));
  asm("cvt.rz.tf32.f32 %0,%1;" : "=r"(r2) : "r"(c));
  r3 = 0;
}

PROBE(local, words, 75) {
  u32 t[8];
  for (int i = 0; i < 8; i++) t[i] = a * i + b;
  t[c & 7] = d;
  t[d & 7] ^= a;
  r0 = t[a & 7];
  r1 = t[b & 7];
  r2 = t[(c + 1) & 7];
  r3 = t[(d >> 3) & 7];
}

PROBE(shared, words, 75) {
  __shared__ u32 s[256];
  __shared__ short h[512];
  s[threadIdx.x] = a;
  h[threadIdx.x] = b;
  __syncthreads();
  r0 = s[threadIdx.x ^ 1];
  r1 = h[(threadIdx.x + 5) & 255];
  r2 = ((u8*)s)[(c & 1023)];
  r3 = (int)((signed char*)h)[d & 511];
}

PROBE(ldmatrix, words, 75) {
  __shared__ __align__(16) u32 s[1024];
  for (int i = 0; i < 4; i++) s[threadIdx.x * 4 + i] = (&v.x)[i];
  __syncthreads();
  u32 ad = (u32)__cvta_generic_to_shared(s) + ((threadIdx.x & ~31) + (threadIdx.x * 7 & 31)) * 16;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(ad));
}

PROBE(ldmatrixt, words, 75) {
  __shared__ __align__(16) u32 s[1024];
  for (int i = 0; i < 4; i++) s[threadIdx.x * 4 + i] = (&v.x)[i];
  __syncthreads();
  u32 ad = (u32)__cvta_generic_to_shared(s) + ((threadIdx.x & ~31) + (threadIdx.x * 7 & 31)) * 16;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(ad));
}

PROBE(stmatrix, words, 90) {
  __shared__ __align__(16) u32 s[1024];
  u32 ad = (u32)__cvta_generic_to_shared(s) + ((threadIdx.x & ~31) + (threadIdx.x * 7 & 31)) * 16;
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%4],{%0,%1,%2,%3};" ::"r"(a), "r"(b), "r"(c), "r"(d),
               "r"(ad)
               : "memory");
  __syncthreads();
  r0 = s[threadIdx.x * 4];
  r1 = s[threadIdx.x * 4 + 1];
  r2 = s[threadIdx.x * 4 + 2];
  r3 = s[threadIdx.x * 4 + 3];
}

PROBE(movm, words, 75) {
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(r0) : "r"(a));
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(r1) : "r"(b));
  r2 = 0;
  r3 = 0;
}

PROBE(mma16, small_halves, 80) {
  float x0 = 0, x1 = 1, x2 = 2, x3 = 3;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a), "r"(c));
  r0 = __float_as_uint(x0);
  r1 = __float_as_uint(x1);
  r2 = __float_as_uint(x2);
  r3 = __float_as_uint(x3);
}

PROBE(mma8, small_halves, 75) {
  float x0 = 0, x1 = 1, x2 = 2, x3 = 3;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
      : "r"(a), "r"(b), "r"(c));
  r0 = __float_as_uint(x0);
  r1 = __float_as_uint(x1);
  r2 = __float_as_uint(x2);
  r3 = __float_as_uint(x3);
}

PROBE(mma16h, small_halves, 80) {
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%8,%9};"
      : "=r"(r0), "=r"(r1)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a), "r"(c), "r"(b), "r"(d));
  r2 = 0;
  r3 = 0;
}

PROBE(mmabf, small_brains, 80) {
  float x0 = 0, x1 = 1, x2 = 2, x3 = 3;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a), "r"(c));
  r0 = __float_as_uint(x0);
  r1 = __float_as_uint(x1);
  r2 = __float_as_uint(x2);
  r3 = __float_as_uint(x3);
}

PROBE(mmatf, small_singles, 80) {
  float x0 = 0, x1 = 1, x2 = 2, x3 = 3;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a), "r"(c));
  r0 = __float_as_uint(x0);
  r1 = __float_as_uint(x1);
  r2 = __float_as_uint(x2);
  r3 = __float_as_uint(x3);
}

PROBE(mmatf4, small_singles, 80) {
  float x0 = 0, x1 = 1, x2 = 2, x3 = 3;
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
      : "r"(a), "r"(b), "r"(c));
  r0 = __float_as_uint(x0);
  r1 = __float_as_uint(x1);
  r2 = __float_as_uint(x2);
  r3 = __float_as_uint(x3);
}

PROBE(mmai8, words, 80) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
      : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a), "r"(c), "r"(d), "r"(c), "r"(b), "r"(a));
}

PROBE(mmau8, words, 80) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
      : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(a), "r"(c), "r"(d), "r"(c), "r"(b), "r"(a));
}

PROBE(mmai8k16, words, 80) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10};"
      : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
      : "r"(a), "r"(b), "r"(c), "r"(d), "r"(c), "r"(b), "r"(a));
}

PROBE(mmai8k8, words, 75) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%4,%5};"
      : "=r"(r0), "=r"(r1)
      : "r"(a), "r"(b), "r"(c), "r"(d));
  r2 = 0;
  r3 = 0;
}

PROBE(mmad, small_doubles, 80) {
  double x = __hiloint2double(b, a), y = __hiloint2double(d, c), z0 = 1.0, z1 = 2.0;
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
      : "+d"(z0), "+d"(z1)
      : "d"(x), "d"(y));
  r0 = __double2loint(z0);
  r1 = __double2hiint(z0);
  r2 = __double2loint(z1);
  r3 = __double2hiint(z1);
}

PROBE(atoms1, words, 75) {
  __shared__ u32 s[256];
  s[threadIdx.x] = a;
  r0 = atomicAdd(s + threadIdx.x, b);
  r1 = atomicInc(s + threadIdx.x, c);
  r2 = atomicDec(s + threadIdx.x, d);
  r3 = s[threadIdx.x];
}

PROBE(atoms2, words, 75) {
  __shared__ u32 s[256];
  s[threadIdx.x] = a;
  r0 = atomicMin((int*)s + threadIdx.x, (int)b);
  r1 = atomicMax(s + threadIdx.x, c);
  r2 = atomicXor(s + threadIdx.x, d) + atomicOr(s + threadIdx.x, b) + atomicAnd(s + threadIdx.x, c);
  r3 = s[threadIdx.x];
}

PROBE(atoms3, equal, 75) {
  __shared__ u32 s[256];
  s[threadIdx.x] = a;
  r0 = atomicCAS(s + threadIdx.x, c, b);
  r1 = atomicExch(s + threadIdx.x, d);
  r2 = atomicSub(s + threadIdx.x, c);
  r3 = s[threadIdx.x];
}

PROBE(atoms64, equal, 75) {
  __shared__ u64 s[256];
  s[threadIdx.x] = pair(a, b);
  auto z = atomicAdd(s + threadIdx.x, pair(c, d));
  auto w = atomicCAS(s + threadIdx.x, pair(c, d), 77ull);
  auto u = atomicMax(s + threadIdx.x, pair(a, c));
  r0 = z;
  r1 = z >> 32;
  r2 = w + u;
  r3 = s[threadIdx.x] >> 32;
}

PROBE(atomsf, singles, 75) {
  __shared__ float s[256];
  s[threadIdx.x] = __uint_as_float(a);
  r0 = __float_as_uint(atomicAdd(s + threadIdx.x, __uint_as_float(b)));
  r1 = __float_as_uint(s[threadIdx.x]);
  r2 = 0;
  r3 = 0;
}

PROBE(atomg1, words, 75) {
  u32* s = (u32*)(out + i);
  *s = a;
  r0 = atomicAdd(s, b);
  r1 = atomicInc(s, c);
  r2 = atomicDec(s, d);
  r3 = *s;
}

PROBE(atomg2, words, 75) {
  u32* s = (u32*)(out + i);
  *s = a;
  r0 = atomicMin((int*)s, (int)b);
  r1 = atomicMax(s, c);
  r2 = atomicXor(s, d) + atomicOr(s, b) + atomicAnd(s, c);
  r3 = atomicCAS(s, a, b) + atomicExch(s, d);
}

PROBE(atomg64, equal, 75) {
  u64* s = (u64*)(out + i);
  *s = pair(a, b);
  auto z = atomicAdd(s, pair(c, d));
  auto w = atomicCAS(s, pair(c, d), 77ull);
  auto u = atomicMin((long long*)s, (long long)(pair(a, c)));
  auto y = atomicExch(s, 5ull) + atomicXor(s, 99ull);
  r0 = z;
  r1 = z >> 32;
  r2 = w + u;
  r3 = y;
}

PROBE(atomgf, denormal, 75) {
  float* s = (float*)(out + i);
  *s = __uint_as_float(a);
  r0 = __float_as_uint(atomicAdd(s, __uint_as_float(b)));
  r1 = __float_as_uint(*s);
  atomicAdd(s, __uint_as_float(c));
  r2 = __float_as_uint(*s);
  r3 = 0;
}

PROBE(atomgd, doubles, 75) {
  DOUBLES;
  double* s = (double*)(out + i);
  *s = da;
  double z = atomicAdd(s, db);
  LOW(z);
  z = *s;
  HIGH(z);
}

PROBE(atomgh, halves, 75) {
  HALVES;
  half2* s = (half2*)(out + i);
  *s = ha;
  half2 t = atomicAdd(s, hb);
  r0 = *(u32*)&t;
  t = *s;
  r1 = *(u32*)&t;
  r2 = 0;
  r3 = 0;
}

PROBE(atomgb, brains, 75) {
  BRAINS;
  brain2* s = (brain2*)(out + i);
  *s = ba;
  brain2 t = atomicAdd(s, bb);
  r0 = *(u32*)&t;
  t = *s;
  r1 = *(u32*)&t;
  r2 = 0;
  r3 = 0;
}

PROBE(red1, words, 75) {
  u32* s = (u32*)(out + i);
  *s = a;
  atomicAdd(s, b);
  r0 = *(volatile u32*)s;
  atomicMin((int*)s, (int)c);
  r1 = *(volatile u32*)s;
  atomicInc(s, d);
  r2 = *(volatile u32*)s;
  atomicXor(s, a);
  r3 = *(volatile u32*)s;
}

PROBE(idx, words, 75) {
  u32* s = (u32*)(out);
  u32 k = i * 4;
  s[k + (a & 3)] = b;
  r0 = s[k + (a & 3)];
  r1 = ((const signed char*)in)[(u32)(i * 16 + (b & 15))];
  r2 = ((const short*)in)[i * 8 - (c & 0) + (d & 7)];
  r3 = 0;
}

PROBE(lea3, equal, 75) {
  u64 z = ((u64)(a >> 20) << 22) - (pair(c, d));
  u64 w = ((u64)(b >> 24) << 9) - (((u64)b << 32) | (c & 1));
  LONGS(z, w);
}

PROBE(f2dabs, singles, 75) {
  float fa = __uint_as_float(a), fb = __uint_as_float(b);
  double z = (double)fabsf(fa);
  LOW(z);
  z = (double)-fb;
  HIGH(z);
}

PROBE(d2fneg, doubles, 75) {
  DOUBLES;
  r0 = __float_as_uint((float)-da);
  r1 = __float_as_uint((float)fabs(db));
  r2 = (u32)__double2int_rz(-da);
  double z = floor(-db);
  r3 = __double2hiint(z);
}

PROBE(nan_c, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = fma(da, db, dn);
  LOW(z);
  z = fma(dn, da, db);
  HIGH(z);
}

PROBE(nan_b, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = fma(da, dn, db);
  LOW(z);
  z = fma(dn, dm, da);
  HIGH(z);
}

PROBE(nan_ab, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = fma(da, dn, dm);
  LOW(z);
  z = fma(dn, da, dm);
  HIGH(z);
}

PROBE(nan_abc, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = fma(dm, dn, dn + 0.0);
  LOW(z);
  z = fma(-dn, dm, -da);
  HIGH(z);
}

PROBE(nan_add, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = dn + dm;
  LOW(z);
  z = dm - dn;
  HIGH(z);
}

PROBE(nan_mul, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = dn * dm;
  LOW(z);
  z = -dm * da;
  HIGH(z);
}

PROBE(nan_minmax, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  double z = fmin(dn, da);
  LOW(z);
  z = fmax(dn, dm);
  HIGH(z);
}

PROBE(nan_cvt, doubles, 75) {
  double da = __hiloint2double(b, a), db = __hiloint2double(d, c),
         dn = __hiloint2double(0x7ff80000u | (c & 0x8007ffffu), a ^ 0x5555u),
         dm = __hiloint2double(0xfff00000u | (a & 0x7ffffu), d | 1u);
  r0 = __float_as_uint((float)dn);
  r1 = __float_as_uint((float)dm);
  double z = (double)__uint_as_float(a | 0x7f800001u);
  HIGH(z);
}
