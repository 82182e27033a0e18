// Requests at places that an array names, of all forms and widths, by lanes that a mask lets in.
__device__ unsigned place_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void shared_places(const int* __restrict__ index, int* out, unsigned mask) {
  __shared__ __align__(128) unsigned char room[16384];
  for (int k = threadIdx.x; k < 4096; k += blockDim.x) reinterpret_cast<int*>(room)[k] = k;
  __syncthreads();
  unsigned base = place_of(room);
  const int* mine = index + threadIdx.x;
  unsigned sum = 0;
  if (mask >> (threadIdx.x & 31) & 1) {
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      unsigned a, b, c, d; unsigned short h;
      int k = mine[r * 32];
      asm volatile("ld.shared.u8 %0, [%1];" : "=h"(h) : "r"(base + (k & 16383)) : "memory"); sum += h;
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(h) : "r"(base + 2 * (k & 1023)) : "memory"); sum += h;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(base + 4 * (k & 255)) : "memory"); sum += a;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(base + 4 * (k & 4095)) : "memory"); sum += a;
      asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(base + 8 * (k & 15)) : "memory"); sum += a ^ b;
      asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(base + 8 * (k & 1023)) : "memory"); sum += a ^ b;
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(base + 16 * (k & 7)) : "memory"); sum += a ^ b ^ c ^ d;
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(base + 16 * (k & 1023)) : "memory"); sum += a ^ b ^ c ^ d;
      asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(base + 16 * ((threadIdx.x ^ (k & 2)) & 1023)) : "memory"); sum += a ^ b ^ c ^ d;
      asm volatile("st.shared.u8 [%0], %1;" :: "r"(base + (k & 8191)), "h"((short)sum) : "memory");
      asm volatile("st.shared.u16 [%0], %1;" :: "r"(base + 2 * (k & 511)), "h"((short)sum) : "memory");
      asm volatile("st.shared.u32 [%0], %1;" :: "r"(base + 4 * (k & 127)), "r"(sum) : "memory");
      asm volatile("st.shared.v2.u32 [%0], {%1,%2};" :: "r"(base + 8 * (k & 255)), "r"(a), "r"(sum) : "memory");
      asm volatile("st.shared.v4.u32 [%0], {%1,%2,%1,%2};" :: "r"(base + 16 * (k & 511)), "r"(a), "r"(sum) : "memory");
    }
  }
  out[threadIdx.x] = sum;
}
// sectorwise: launch shared_places<<<1, 32>>>(i32[96]=uniform(101), i32[32], u32(4294967295))
// sectorwise: launch shared_places<<<1, 32>>>(i32[96]=uniform(102), i32[32], u32(2147483647))
// sectorwise: launch shared_places<<<1, 32>>>(i32[96]=uniform(103), i32[32], u32(3737844653))
// sectorwise: launch shared_places<<<1, 32>>>(i32[96]=arange, i32[32], u32(4042322160))
// sectorwise: launch shared_places<<<1, 32>>>(i32[96]=perm(104), i32[32], u32(65535))
// sectorwise: launch shared_places<<<1, 24>>>(i32[96]=uniform(105, 48), i32[32], u32(4294967295))

extern "C" __global__ void shared_updates(const int* __restrict__ index, int* out, unsigned mask) {
  __shared__ __align__(16) unsigned long long room[512];
  for (int k = threadIdx.x; k < 512; k += blockDim.x) room[k] = k;
  __syncthreads();
  unsigned base = place_of(room);
  int sum = 0;
  if (mask >> (threadIdx.x & 31) & 1) {
    int k = index[threadIdx.x];
    unsigned a4 = base + 4 * (k & 63), a8 = base + 8 * (k & 31), v; unsigned long long w;
    asm volatile("atom.shared.add.u32 %0, [%1], 5;" : "=r"(v) : "r"(a4) : "memory"); sum += v;
    asm volatile("atom.shared.min.s32 %0, [%1], %2;" : "=r"(v) : "r"(a4), "r"(k) : "memory"); sum += v;
    asm volatile("atom.shared.inc.u32 %0, [%1], 9;" : "=r"(v) : "r"(a4) : "memory"); sum += v;
    asm volatile("atom.shared.exch.b32 %0, [%1], %2;" : "=r"(v) : "r"(a4), "r"(k) : "memory"); sum += v;
    asm volatile("atom.shared.cas.b32 %0, [%1], %2, 3;" : "=r"(v) : "r"(a4), "r"(k) : "memory"); sum += v;
    asm volatile("atom.shared.xor.b32 %0, [%1], 77;" : "=r"(v) : "r"(a4) : "memory"); sum += v;
    asm volatile("red.shared.add.u32 [%0], 1;" :: "r"(a4) : "memory");
    asm volatile("red.shared.max.u32 [%0], %1;" :: "r"(a4), "r"(k) : "memory");
    asm volatile("red.shared.or.b32 [%0], %1;" :: "r"(a4), "r"(k) : "memory");
    asm volatile("atom.shared.exch.b64 %0, [%1], %2;" : "=l"(w) : "r"(a8), "l"((long long)k) : "memory"); sum += (int)w;
    asm volatile("atom.shared.cas.b64 %0, [%1], %2, 3;" : "=l"(w) : "r"(a8), "l"((long long)k) : "memory"); sum += (int)w;
  }
  out[threadIdx.x] = sum;
}
// sectorwise: launch shared_updates<<<1, 32>>>(i32[32]=uniform(111), i32[32], u32(4294967295))
// sectorwise: launch shared_updates<<<1, 32>>>(i32[32]=uniform(112, 8), i32[32], u32(4294967295))
// sectorwise: launch shared_updates<<<1, 32>>>(i32[32]=uniform(113), i32[32], u32(1717986918))
// sectorwise: launch shared_updates<<<1, 20>>>(i32[32]=perm(114), i32[32], u32(4294967295))

extern "C" __global__ void global_places(const int* __restrict__ index, unsigned char* room, int* out, unsigned mask) {
  unsigned sum = 0;
  if (mask >> (threadIdx.x & 31) & 1) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      unsigned a, b, c, d; unsigned short h; unsigned long long w;
      int k = index[r * 32 + threadIdx.x];
      asm volatile("ld.global.u8 %0, [%1];" : "=h"(h) : "l"(room + (k & 4095)) : "memory"); sum += h;
      asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(h) : "l"(room + 2 * (k & 1023)) : "memory"); sum += h;
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(a) : "l"(room + 4 * (k & 255)) : "memory"); sum += a;
      asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "l"(room + 8 * (k & 2047)) : "memory"); sum += a ^ b;
      asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(room + 16 * (k & 127)) : "memory"); sum += a ^ b ^ c ^ d;
      asm volatile("st.global.u8 [%0], %1;" :: "l"(room + (k & 511)), "h"((short)sum) : "memory");
      asm volatile("st.global.v2.u32 [%0], {%1,%2};" :: "l"(room + 8 * (k & 255)), "r"(a), "r"(sum) : "memory");
      asm volatile("st.global.v4.u32 [%0], {%1,%2,%1,%2};" :: "l"(room + 16 * (k & 1023)), "r"(a), "r"(sum) : "memory");
      asm volatile("red.global.add.u32 [%0], 1;" :: "l"(room + 4 * (k & 1023)) : "memory");
      asm volatile("red.global.max.u64 [%0], 1;" :: "l"(room + 8 * (k & 63)) : "memory");
      asm volatile("atom.global.add.u64 %0, [%1], 1;" : "=l"(w) : "l"(room + 8 * (k & 1023)) : "memory"); sum += (int)w;
      asm volatile("atom.global.cas.b32 %0, [%1], 1, 2;" : "=r"(a) : "l"(room + 4 * (k & 31)) : "memory"); sum += a;
      asm volatile("red.global.add.f32 [%0], 0f3F800000;" :: "l"(room + 4 * (k & 2047)) : "memory");
      asm volatile("red.global.add.v4.f32 [%0], {%1,%1,%1,%1};" :: "l"(room + 16 * (k & 255)), "f"(1.0f) : "memory");
    }
  }
  out[threadIdx.x] = sum;
}
// sectorwise: launch global_places<<<1, 32>>>(i32[64]=uniform(121), u8[16384], i32[32], u32(4294967295))
// sectorwise: launch global_places<<<1, 32>>>(i32[64]=uniform(122), u8[16384], i32[32], u32(2863311530))
// sectorwise: launch global_places<<<1, 32>>>(i32[64]=perm(123), u8[16384], i32[32], u32(16777215))
// sectorwise: launch global_places<<<1, 17>>>(i32[64]=uniform(124, 100), u8[16384], i32[32], u32(4294967295))

extern "C" __global__ void copied_places(const int* __restrict__ index, const unsigned char* from, int* out, unsigned mask, int tile) {
  __shared__ __align__(128) unsigned char room[16384];
  unsigned base = place_of(room), t = threadIdx.x;
  for (int k = t; k < 4096; k += blockDim.x) reinterpret_cast<int*>(room)[k] = k;
  __syncthreads();
  if (mask >> (t & 31) & 1) {
    int k = index[t], j = index[32 + t];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(base + 4 * (k & 1023)), "l"(from + 4 * (j & 1023)) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(base + 8 * (k & 511)), "l"(from + 8 * (j & 511)) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(base + 16 * (k & 255)), "l"(from + 16 * (j & 255)) : "memory");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + 16 * (k & 255)), "l"(from + 16 * (j & 255)) : "memory");
    int row = t / 8, column = t % 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + row * 128 + 16 * (column ^ (row & 7))), "l"(from + row * tile + 16 * column) : "memory");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + row * 144 + 16 * column), "l"(from + row * tile + 16 * column) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(base + row * 80 + 8 * column), "l"(from + row * tile + 8 * column) : "memory");
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(base + 16 * t), "l"(from + 16 * (t ^ 5)) : "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[t] = reinterpret_cast<int*>(room)[t];
}
// sectorwise: launch copied_places<<<1, 32>>>(i32[64]=uniform(131), u8[16384], i32[32], u32(4294967295), 256)
// sectorwise: launch copied_places<<<1, 32>>>(i32[64]=perm(132), u8[16384], i32[32], u32(4294967295), 144)
// sectorwise: launch copied_places<<<1, 32>>>(i32[64]=uniform(133), u8[16384], i32[32], u32(267390960), 1024)
// sectorwise: launch copied_places<<<1, 32>>>(i32[64]=arange, u8[16384], i32[32], u32(4294967295), 128)

extern "C" __global__ void matrix_places(const int* __restrict__ index, int* out) {
  __shared__ __align__(128) unsigned char room[16384];
  unsigned base = place_of(room), t = threadIdx.x, sum = 0;
  for (int k = t; k < 4096; k += blockDim.x) reinterpret_cast<int*>(room)[k] = k;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    unsigned a, b, c, d, at = base + 16 * (index[r * 32 + t] & 1023);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(at) : "memory"); sum += a;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory"); sum += a ^ b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory"); sum += a ^ b ^ c ^ d;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(at), "r"(sum) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" :: "r"(at), "r"(sum), "r"(a) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(at), "r"(sum), "r"(a), "r"(b), "r"(c) : "memory");
  }
  out[t] = sum;
}
// sectorwise: launch matrix_places<<<1, 32>>>(i32[96]=uniform(141), i32[32])
// sectorwise: launch matrix_places<<<1, 32>>>(i32[96]=uniform(142, 24), i32[32])
// sectorwise: launch matrix_places<<<1, 32>>>(i32[96]=arange, i32[32])

extern "C" __global__ void local_places(const int* __restrict__ index, int* out, unsigned mask) {
  unsigned char bytes[96]; short halves[48]; int words[40]; long long longs[24]; int4 quads[12];
  int t = threadIdx.x, k = index[t], sum = 0;
  for (int i = 0; i < 96; ++i) bytes[i] = index[i & 31];
  for (int i = 0; i < 48; ++i) halves[i] = index[i & 31];
  for (int i = 0; i < 40; ++i) words[i] = index[i & 31];
  for (int i = 0; i < 24; ++i) longs[i] = index[i & 31];
  for (int i = 0; i < 12; ++i) quads[i] = make_int4(i, index[i], 3, 4);
  if (mask >> (t & 31) & 1)
    for (int r = 0; r < 3; ++r) {
      k = k * 5 + r;
      unsigned u = k & 0xffff;
      bytes[u % 96] = k; halves[u % 48] = k; words[u % 40] = k; longs[u % 24] = k; quads[u % 12].y = k;
      sum += bytes[(u + 7) % 96] + halves[(u + 5) % 48] + words[(u + 3) % 40] + (int)longs[(u + 1) % 24];
      int4 q = quads[(u + 2) % 12];
      sum += q.x + q.y + q.w;
    }
  out[t] = sum;
}
// sectorwise: launch local_places<<<1, 32>>>(i32[32]=uniform(151), i32[32], u32(4294967295))
// sectorwise: launch local_places<<<1, 32>>>(i32[32]=uniform(152), i32[32], u32(858993459))
// sectorwise: launch local_places<<<2, 64>>>(i32[64]=perm(153), i32[64], u32(4294967295))

extern "C" __global__ void generic_places(const int* __restrict__ index, unsigned char* far, int* out, unsigned inside, unsigned mask) {
  __shared__ __align__(16) unsigned char near[4096];
  int t = threadIdx.x, sum = 0;
  for (int k = t; k < 4096; k += blockDim.x) near[k] = k;
  __syncthreads();
  if (mask >> (t & 31) & 1) {
    unsigned char* room = inside >> (t & 31) & 1 ? near : far;
    int k = index[t];
    unsigned a, b, c, d; unsigned short h;
    asm volatile("ld.u8 %0, [%1];" : "=h"(h) : "l"(room + (k & 4095)) : "memory"); sum += h;
    asm volatile("ld.u32 %0, [%1];" : "=r"(a) : "l"(room + 4 * (k & 255)) : "memory"); sum += a;
    asm volatile("ld.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "l"(room + 8 * (k & 127)) : "memory"); sum += a ^ b;
    asm volatile("ld.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(room + 16 * (k & 63)) : "memory"); sum += a ^ b ^ c ^ d;
    asm volatile("st.u32 [%0], %1;" :: "l"(room + 4 * (k & 127)), "r"(sum) : "memory");
    asm volatile("st.v4.u32 [%0], {%1,%1,%1,%1};" :: "l"(room + 16 * (k & 255)), "r"(sum) : "memory");
  }
  out[t] = sum;
}
// sectorwise: launch generic_places<<<1, 32>>>(i32[32]=uniform(161), u8[4096], i32[32], u32(4294967295), u32(4294967295))
// sectorwise: launch generic_places<<<1, 32>>>(i32[32]=uniform(162), u8[4096], i32[32], u32(252645135), u32(4294967295))
// sectorwise: launch generic_places<<<1, 32>>>(i32[32]=uniform(163, 40), u8[4096], i32[32], u32(1431655765), u32(2147483646))
// sectorwise: launch generic_places<<<1, 32>>>(i32[32]=perm(164), u8[4096], i32[32], u32(0), u32(4294967295))
