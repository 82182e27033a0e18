// Kernels that make the compiler print as many forms of operands as possible, for the parser's tests.
// The wgmma and tcgen05 kernels need the targets with an "a" (macros WGMMA, TCGEN).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define ARCH __CUDA_ARCH__
__constant__ float table[64];
__device__ unsigned counter;

extern "C" __global__ void integers(int* o, const int* a, unsigned n, long long w) {
    int t = threadIdx.x;
    unsigned u = a[t], v = a[t + 1];
    o[0] = __popc(u) + __clz(u) + __ffs(v) + __brev(u);
    o[1] = __byte_perm(u, v, t);
    o[2] = __funnelshift_l(u, v, t);
    o[3] = __funnelshift_rc(u, v, t);
    o[4] = __umulhi(u, v);
    o[5] = __mulhi(a[3], a[4]);
    o[6] = __sad(a[5], a[6], u);
    o[7] = u / n;
    o[8] = u % 7;
    o[9] = a[1] / a[2];
    o[10] = (int)(w / a[3]);
    o[11] = (int)(((long long)u * v) >> 13);
    o[12] = __dp4a(a[1], a[2], a[3]);
    o[13] = __vadd4(u, v);
    o[14] = __vabsdiffu4(u, v);
    o[15] = min(max(a[1], a[2]), a[3]);
    o[16] = ~u & v | (u ^ n);
    o[17] = u << (v & 31);
    o[18] = (int)u >> (v & 31);
    o[19] = abs(a[7]);
    o[20] = -a[8];
    o[21] = (signed char)u + (unsigned char)v + (short)u;
    o[22] = (u > v) ? a[9] : -a[10];
    long long x = (long long)a[1] * a[2] + w;
    o[23] = (int)(x >> 32);
    o[24] = (int)x;
    o[25] = (x < w) ? 1 : 0;
    o[26] = u * 5 + 0x12345678;
    o[27] = __vmins2(u, v);
}
extern "C" __global__ void floats(float* o, const float* a, double* d, float s) {
    int t = threadIdx.x;
    float x = a[t], y = a[t + 1];
    o[0] = -x + fabsf(y);
    o[1] = fmaf(-x, y, fabsf(s));
    o[2] = x / y;
    o[3] = sqrtf(x);
    o[4] = rsqrtf(y);
    o[5] = __expf(x);
    o[6] = __logf(x);
    o[7] = __sinf(x) + __cosf(y);
    o[8] = sinf(x);
    o[9] = powf(x, y);
    o[10] = fminf(x, fmaxf(y, 1.5f));
    o[11] = floorf(x) + ceilf(y) + truncf(x) + rintf(y);
    o[12] = (x < y) ? x : 1e-5f;
    o[13] = isnan(x) ? INFINITY : NAN;
    o[14] = __fdividef(x, y);
    o[15] = __fadd_rz(x, y) + __fmul_rd(x, y) + __fmaf_ru(x, y, s);
    o[16] = (int)x;
    o[17] = __float2uint_rz(y);
    o[18] = __int2float_rn((int)y);
    o[19] = __saturatef(x);
    o[20] = copysignf(x, y);
    o[21] = ldexpf(x, t);
    o[22] = x > INFINITY ? -INFINITY : x * 3.0f;
    d[0] = d[1] / d[2] + sqrt(d[3]);
    d[1] = fma(d[4], -d[5], fabs(d[6]));
    d[2] = (double)x;
    d[3] = (float)d[7];
    d[4] = (double)(long long)d[8];
    d[5] = d[9] > d[10] ? 1.25 : d[11];
    d[6] = sin(d[12]);
    d[7] = fmin(d[1], d[2]);
    o[23] = tanhf(x);
    o[24] = __powf(x, y) + table[t & 63] + table[3];
    o[25] = exp2f(x);
    o[26] = erff(y);
}
extern "C" __global__ void halves(__half2* o, const __half2* a, __nv_bfloat162* b, float* f) {
    int t = threadIdx.x;
    __half2 x = a[t], y = a[t + 1];
    __nv_bfloat162 p = b[t], q = b[t + 1];
    o[0] = __hfma2(x, y, __hneg2(x));
    o[1] = __hadd2(__habs2(x), y);
    o[2] = __hmul2(x, __half2half2(__low2half(y)));
    o[3] = __hmax2(x, y);
    o[4] = h2sqrt(x);
    o[5] = __lowhigh2highlow(x);
    o[6] = __hlt2(x, y);
    o[7] = h2exp(x);
    f[0] = __half2float(__high2half(x));
    o[8] = __float22half2_rn(make_float2(f[1], f[2]));
#if ARCH >= 800
    b[0] = __hfma2(p, q, p);
    b[1] = __hadd2(p, q);
    f[3] = __bfloat162float(__high2bfloat16(p));
#endif
    b[2] = __float22bfloat162_rn(make_float2(f[4], f[5]));
    f[6] = __hgt(__low2half(x), __high2half(y)) ? 1.f : 2.f;
    o[9] = __hfma2_sat(x, y, x);
    o[10] = __hsub2(x, __float2half2_rn(0.1f));
}
extern "C" __global__ void warps(int* o, const int* a) {
    int t = threadIdx.x;
    int v = a[t];
    o[0] = __shfl_sync(~0u, v, 3);
    o[1] = __shfl_xor_sync(~0u, v, 1);
    o[2] = __shfl_up_sync(~0u, v, t);
    o[3] = __shfl_down_sync(~0u, v, 2, 16);
    o[4] = __ballot_sync(~0u, v > 0);
    o[5] = __any_sync(~0u, v > 1) + __all_sync(~0u, v > 2);
    o[6] = __match_any_sync(~0u, v);
    int p;
    o[7] = __match_all_sync(~0u, v, &p) + p;
    o[8] = __activemask();
    __syncwarp(a[1]);
    o[9] = __popc(__ballot_sync(a[2], v < 9));
#if ARCH >= 800
    o[10] = __reduce_add_sync(~0u, v) + __reduce_min_sync(~0u, v) + __reduce_or_sync(~0u, (unsigned)v);
#endif
    if (v > 3) {
        __nanosleep(20);
        o[11] = clock();
    }
    o[12] = (int)clock64();
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    o[13] = __syncthreads_count(v) + __syncthreads_or(v);
    asm volatile("barrier.sync 1, 64;");
    asm volatile("barrier.arrive %0, %1;" ::"r"(v), "r"(64));
    unsigned s;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(s));
    o[14] = s;
}
extern "C" __global__ void atomics(int* o, unsigned* u, float* f, double* d, unsigned long long* l, __half2* h) {
    __shared__ int si[64];
    __shared__ float sf[64];
    __shared__ unsigned long long sl[32];
    int t = threadIdx.x;
    si[t] = t;
    sf[t] = t;
    sl[t & 31] = t;
    __syncthreads();
    o[0] = atomicAdd(&o[t], 3);
    atomicAdd(&o[5], t);
    atomicMin(&o[6], t);
    u[0] = atomicInc(&u[1], 7);
    u[2] = atomicCAS(&u[3], 1, t);
    u[4] = atomicExch(&u[5], t);
    atomicAdd(&f[0], 1.f);
    f[1] = atomicAdd(&f[2], f[3]);
    atomicAdd(&d[0], 2.0);
    l[0] = atomicCAS(&l[1], l[2], l[3]);
    atomicAdd(&si[t & 7], t);
    o[7] = atomicAdd(&si[t & 3], t);
    o[8] = atomicMax(&si[t & 5], 9);
    atomicAdd(&sf[t & 3], 1.f);
    u[6] = atomicOr((unsigned*)&si[3], t);
    l[4] = atomicAdd(&sl[3], 5ull);
    o[9] = atomicCAS(&si[1], 1, 2);
    o[10] = atomicExch(&si[2], t);
    atomicAdd(&counter, 1u);
    atomicAdd(&h[0], h[1]);
    o[11] = atomicAnd_block(&o[12], t);
    atomicXor_system(&o[13], t);
    l[5] = atomicMax((long long*)&l[6], (long long)t);
    o[14] = si[t];
}
extern "C" __global__ void loads(int4* o, const int4* a, const char* c, const short* s, const double2* d,
                                 volatile int* v, int n) {
    int t = threadIdx.x;
    o[t] = __ldg(&a[t]);
    o[t + 1] = __ldcg(&a[t + 2]);
    o[t + 2] = __ldcs(&a[t + 3]);
    __stwt(&o[t + 3], a[5]);
    __stcs(&o[t + 4], a[6]);
    v[0] = c[t] + s[t] + (unsigned char)c[t + 1] + (unsigned short)s[t + 1] + v[1];
    ((double2*)o)[9] = d[t];
    ((char*)o)[t] = c[2];
    ((short*)o)[t] = s[3];
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a));
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.s32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(o[0].x), "=r"(o[0].y), "=r"(o[0].z), "=r"(o[0].w)
                 : "l"(a + n));
    int r;
    asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(r) : "l"(v));
    asm volatile("st.release.sys.s32 [%0], %1;" ::"l"(v + 2), "r"(r));
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(v + 3), "r"(r));
#if ARCH >= 800
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(o + 64));
#endif
    __isGlobal((void*)v);
    int* g = (n & 1) ? (int*)o : (int*)v;
    g[t] = g[t + 1];
    o[7].x = __isShared(g) + __isLocal(g);
}
extern "C" __global__ void locals(int* o, const int* a, int n) {
    int b[40];
    for (int i = 0; i < 40; i++) b[i] = a[i] * n;
    int s = 0;
    for (int i = 0; i < n; i++) {
        s += b[a[i] & 31];
        b[(s + i) % 40] = s;
    }
    o[threadIdx.x] = s;
    long long* w = (long long*)&b[n & 30];
    o[1] = (int)*w;
}
extern "C" __global__ void textures(float4* o, cudaTextureObject_t t, cudaSurfaceObject_t s, float x, float y) {
    int i = threadIdx.x;
    o[0] = tex2D<float4>(t, x, y);
    o[1].x = tex1Dfetch<float>(t, i);
    o[2] = tex3D<float4>(t, x, y, 1.f);
    o[3] = tex2DLod<float4>(t, x, y, 2.f);
    o[4] = tex2Dgather<float4>(t, x, y, 1);
    o[5] = texCubemap<float4>(t, x, y, x);
    float4 f;
    surf2Dread(&f, s, i * 16, 2);
    o[6] = f;
    surf2Dwrite(f, s, i * 16, 3);
    o[7].x = tex2DLayered<float>(t, x, y, i);
    surf3Dwrite(f.x, s, i * 4, 1, 2);
}
extern "C" __global__ void calls(int* o, int n) {
    switch (n) {
        case 0:
            o[0] = 1;
            break;
        case 1:
            o[1] = 5;
            break;
        case 2:
            o[2] = __popc(n);
            break;
        case 3:
            o[4] = 8;
            break;
        case 4:
            o[8] = o[1];
            break;
        case 5:
            o[9] = 7;
            break;
        default:
            printf("%d %s\n", n, "x");
    }
    assert(o[3] != n);
    int* p = (int*)malloc(16);
    if (p) {
        p[0] = n;
        free(p);
    }
    if (n == 77) __trap();
    if (n == 78) asm volatile("brkpt;");
}
__device__ __noinline__ int leaf(int x) {
    return x * 3 + table[x & 63];
}
__device__ __noinline__ int deep(int x) {
    return x < 2 ? x : deep(x - 1) + leaf(x);
}
typedef int (*function)(int);
__device__ function functions[2] = {leaf, deep};
extern "C" __global__ void indirect(int* o, int n) {
    o[0] = functions[n & 1](n) + deep(n);
}
extern "C" __global__ void tensors(float* o, const unsigned* a, double* d) {
    float c0 = o[0], c1 = o[1], c2 = o[2], c3 = o[3];
    unsigned x = a[0], y = a[1], z = a[2], w = a[3];
    __shared__ unsigned s[512];
    s[threadIdx.x] = x;
    __syncthreads();
    unsigned m = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16;
#if ARCH >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(x), "r"(y), "r"(z), "r"(w), "r"(x), "r"(y));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(x), "r"(y), "r"(z), "r"(w), "r"(x), "r"(y));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(x), "r"(y), "r"(z), "r"(w), "r"(x), "r"(y));
    int i0 = x, i1 = y, i2 = z, i3 = w;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3)
                 : "r"(x), "r"(y), "r"(z), "r"(w), "r"(x), "r"(y));
    o[9] = i0 + i1 + i2 + i3;
    asm volatile(
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(x), "r"(y), "r"(z), "r"(w), "r"(x), "r"(y), "r"(z), "r"(w), "r"(x));
    double e0 = d[0], e1 = d[1];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                 : "+d"(e0), "+d"(e1)
                 : "d"(d[2]), "d"(d[3]));
    d[4] = e0 + e1;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(m), "l"(a));
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(m), "l"(a), "r"(x));
    asm volatile("cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;");
#endif
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(m));
    o[4] = x + y + z + w;
#if ARCH >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(m), "r"(x), "r"(y));
#endif
    o[0] = c0;
    o[1] = c1;
    o[2] = c2;
    o[3] = c3;
}
#if ARCH >= 900
struct alignas(64) Map {
    unsigned long long w[16];
};
extern "C" __global__ void bulk(int* o, const __grid_constant__ Map map, const int* a, int n) {
    __shared__ alignas(128) int s[1024];
    __shared__ alignas(8) unsigned long long b;
    unsigned sb = (unsigned)__cvta_generic_to_shared(&b), sm = (unsigned)__cvta_generic_to_shared(s);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(sb));
        asm volatile("fence.proxy.async;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(sb));
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sm), "l"(a),
            "r"(1024), "r"(sb));
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
            "[%4];" ::"r"(sm),
            "l"(&map), "r"(n), "r"(n), "r"(sb));
    }
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(sb));
    o[threadIdx.x] = s[threadIdx.x];
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(n),
                 "r"(n), "r"(sm));
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 64;" ::"l"(o), "r"(sm));
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(n), "r"(n));
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    unsigned r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(r) : "r"(sm));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(r), "r"(n), "r"(sb));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(r) : "r"(r));
    o[1] = r;
    asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;");
    unsigned e;
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(e));
    o[2] = e;
}
#endif
#if ARCH == 900 && defined(WGMMA)
extern "C" __global__ void wgmma(float* o) {
    __shared__ alignas(128) char s[8192];
    s[threadIdx.x] = 1;
    float c[4] = {o[0], o[1], o[2], o[3]};
    unsigned long long d = (unsigned long long)(__cvta_generic_to_shared(s) >> 4);
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "l"(d), "l"(d));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    o[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}
#endif
#if ARCH >= 1000 && ARCH < 1200 && defined(TCGEN)
extern "C" __global__ void tcgen(unsigned* o, unsigned long long d, unsigned idesc) {
    __shared__ unsigned t;
    __shared__ alignas(8) unsigned long long b;
    unsigned st = (unsigned)__cvta_generic_to_shared(&t), sb = (unsigned)__cvta_generic_to_shared(&b);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(st));
    __syncthreads();
    unsigned tm = t;
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(tm),
        "l"(d), "l"(d), "r"(idesc));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%0];" ::"l"((unsigned long long)sb));
    unsigned r[4];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(tm));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(tm), "r"(r[0]));
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tm));
    o[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
#endif
