// Copies and maps as they are written by hand: widths, tails, records, streaming hints, policies of the L2.
#include <cuda_fp16.h>

extern "C" __global__ void scale_float2(const float2* __restrict__ in, float2* __restrict__ out, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float2 v = in[i];
    out[i] = make_float2(a * v.x, a * v.y);
  }
}
// sectorwise: launch scale_float2<<<4096, 256>>>(f32[1<<21]=noise, f32[1<<21], 2.0, 1048576)
// sectorwise: launch scale_float2<<<131, 96>>>(f32[25000]=noise, f32[25000], 2.0, 12500)

extern "C" __global__ void saxpy4(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
  int stride = gridDim.x * blockDim.x;
  int quads = n / 4, at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = at; i < quads; i += stride) {
    float4 u = reinterpret_cast<const float4*>(x)[i], v = reinterpret_cast<float4*>(y)[i];
    v.x += a * u.x; v.y += a * u.y; v.z += a * u.z; v.w += a * u.w;
    reinterpret_cast<float4*>(y)[i] = v;
  }
  for (int i = 4 * quads + at; i < n; i += stride) y[i] += a * x[i];
}
// sectorwise: launch saxpy4<<<528, 256>>>(2.0, f32[4194307]=noise, f32[4194307], 4194307)
// sectorwise: launch saxpy4<<<133, 1000>>>(2.0, f32[1000003]=noise, f32[1000003], 1000003)
// sectorwise: launch saxpy4<<<1, 33>>>(2.0, f32[1023]=noise, f32[1023], 1023)

extern "C" __global__ void shift_bytes(const unsigned char* in, unsigned char* out, int n, int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + shift < n) out[i] = in[i + shift] ^ 0x55;
}
// sectorwise: launch shift_bytes<<<8192, 128>>>(u8[1<<20]=uniform(1), u8[1<<20], 1048576, 3)
// sectorwise: launch shift_bytes<<<1000, 1000>>>(u8[1000000]=uniform(1), u8[1000000], 1000000, 29)

extern "C" __global__ void luminance(const uchar4* __restrict__ rgba, unsigned char* __restrict__ grey, int width, int height, int pitch) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  uchar4 p = rgba[y * width + x];
  grey[y * pitch + x] = (77 * p.x + 151 * p.y + 28 * p.z) >> 8;
}
// sectorwise: launch luminance<<<(61, 68), (32, 16)>>>(u8[4*1927*1081]=noise, u8[2048*1081], 1927, 1081, 2048)
// sectorwise: launch luminance<<<(241, 136), (8, 8)>>>(u8[4*1927*1081]=noise, u8[1931*1081], 1927, 1081, 1931)

extern "C" __global__ void rgb_mean(const unsigned char* __restrict__ rgb, float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (rgb[3 * i] + rgb[3 * i + 1] + rgb[3 * i + 2]) / 3.0f;
}
// sectorwise: launch rgb_mean<<<2048, 512>>>(u8[3<<20]=uniform(2), f32[1<<20], 1048576)

struct Particle { float3 position; float mass; float3 velocity; int cell; };
extern "C" __global__ void drift(Particle* __restrict__ particles, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Particle p = particles[i];
  p.position.x += dt * p.velocity.x; p.position.y += dt * p.velocity.y; p.position.z += dt * p.velocity.z;
  particles[i].position = p.position;
}
// sectorwise: launch drift<<<2048, 256>>>(u8[32*524288]=noise, 0.01, 524288)
// sectorwise: launch drift<<<782, 128>>>(u8[32*100000]=noise, 0.01, 100000)

struct Packed { double value; int key; short flag; char tag; };
extern "C" __global__ void sum_by_flag(const Packed* __restrict__ rows, double* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double v = rows[i].flag & 1 ? rows[i].value : rows[i].key;
    out[i] = v * rows[i].tag;
  }
}
// sectorwise: launch sum_by_flag<<<1024, 192>>>(u8[16*196608]=uniform(3, 256), f64[196608], 196608)

extern "C" __global__ void half_gelu(const __half2* __restrict__ in, __half2* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float2 v = __half22float2(in[i]);
    v.x = 0.5f * v.x * (1 + tanhf(0.79788456f * (v.x + 0.044715f * v.x * v.x * v.x)));
    v.y = 0.5f * v.y * (1 + tanhf(0.79788456f * (v.y + 0.044715f * v.y * v.y * v.y)));
    out[i] = __float22half2_rn(v);
  }
}
// sectorwise: launch half_gelu<<<264, 512>>>(f16[1<<23]=noise, f16[1<<23], 4194304)

extern "C" __global__ void stream_once(const float4* in, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) __stcs(&out[i], __ldcs(&in[i]));
}
// sectorwise: launch stream_once<<<8192, 256>>>(f32[1<<23]=noise, f32[1<<23], 2097152)

extern "C" __global__ void neighbours_cg(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) out[i] = __ldcg(&in[i - 1]) + __ldca(&in[i]) + __ldlu(&in[i + 1]);
}
// sectorwise: launch neighbours_cg<<<4096, 256>>>(f32[1<<20]=noise, f32[1<<20], 1048576)

extern "C" __global__ void through_volatile(volatile float* in, volatile float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 4; ++k) out[i] = in[i] + in[(i + 32 * k) % n];
}
// sectorwise: launch through_volatile<<<1024, 256>>>(f32[1<<18]=noise, f32[1<<18], 262144)

extern "C" __global__ void keep_in_l2(const float4* table, const float4* stream, float4* out, int rows, int n) {
  unsigned long long keep, pass;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(pass));
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 t, s;
    asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w) : "l"(table + i % rows), "l"(keep));
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(s.x), "=f"(s.y), "=f"(s.z), "=f"(s.w) : "l"(stream + i), "l"(pass));
    s.x += t.x; s.y += t.y; s.z += t.z; s.w += t.w;
    asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1,%2,%3,%4}, %5;" :: "l"(out + i), "f"(s.x), "f"(s.y), "f"(s.z), "f"(s.w), "l"(pass) : "memory");
  }
}
// sectorwise: launch keep_in_l2<<<264, 256>>>(f32[1<<20]=noise, f32[1<<23]=noise, f32[1<<23], 262144, 2097152)

extern "C" __global__ void sparse_ahead(const float* in, float* out, int step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.f32 %0, [%1];" : "=f"(v) : "l"(in + (size_t)i * step % n));
  out[i] = v;
}
// sectorwise: launch sparse_ahead<<<1024, 256>>>(f32[1<<24]=noise, f32[1<<18], 64, 16777216)
// sectorwise: launch sparse_ahead<<<1024, 256>>>(f32[1<<24]=noise, f32[1<<18], 17, 16777216)

extern "C" __global__ void interleave(const float* __restrict__ re, const float* __restrict__ im, float2* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[n - 1 - i] = make_float2(re[i], im[i]);
}
// sectorwise: launch interleave<<<100000, 32>>>(f32[3200000]=noise, f32[3200000]=noise, f32[6400000], 3200000)

extern "C" __global__ void double_axpby(const double2* __restrict__ x, const double* __restrict__ y, double* __restrict__ out, double a, double b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i + 1 < n) {
    double2 v = x[i];
    out[2 * i] = a * v.x + b * y[2 * i + 1];
    out[2 * i + 1] = a * v.y + b * y[2 * i];
  }
}
// sectorwise: launch double_axpby<<<2048, 256>>>(f64[1<<20]=noise, f64[1<<20]=noise, f64[1<<20], f64(0.5), f64(2.0), 1048576)

extern "C" __global__ void zero_fill(int4* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = make_int4(0, 0, 0, 0);
}
// sectorwise: launch zero_fill<<<264, 1024>>>(i32[1<<25], 8388608)
