// Probes of the caches: one question each, asked at several sizes. Rows of these tell how the models should be, and so
// are no test of them.

// How much of what was read once is still there the next time?
extern "C" __global__ void read_rounds(const float4* __restrict__ x, float* __restrict__ out, int words, int rounds) {
  float sum = 0;
  for (int r = 0; r < rounds; ++r)
    for (int i = blockIdx.x * 256 + threadIdx.x; i < words; i += gridDim.x * 256) { float4 v = __ldcg(x + i); sum += v.x + v.y + v.z + v.w; }
  if (sum == 1) out[0] = sum;
}
// sectorwise: launch read_rounds<<<1056, 256>>>(f32[28*262144], f32[1], words=1835008, rounds=3)
// sectorwise: launch read_rounds<<<1056, 256>>>(f32[36*262144], f32[1], words=2359296, rounds=3)
// sectorwise: launch read_rounds<<<1056, 256>>>(f32[40*262144], f32[1], words=2621440, rounds=3)
// sectorwise: launch read_rounds<<<1056, 256>>>(f32[48*262144], f32[1], words=3145728, rounds=3)

// How much of what was written stays in the L2?
extern "C" __global__ void write_words(float4* __restrict__ y, int words) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < words; i += gridDim.x * 256) y[i] = make_float4(i, 1, 2, 3);
}
// sectorwise: launch write_words<<<1056, 256>>>(f32[12*262144], words=786432)
// sectorwise: launch write_words<<<1056, 256>>>(f32[24*262144], words=1572864)
// sectorwise: launch write_words<<<1056, 256>>>(f32[32*262144], words=2097152)
// sectorwise: launch write_words<<<1056, 256>>>(f32[48*262144], words=3145728)
// sectorwise: launch write_words<<<1056, 256>>>(f32[64*262144], words=4194304)
// sectorwise: launch write_words<<<1056, 256>>>(f32[128*262144], words=8388608)

// What do later reads push out of it?
extern "C" __global__ void write_and_read(float4* __restrict__ y, const float4* __restrict__ x, float* __restrict__ out, int written, int read) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < written; i += gridDim.x * 256) y[i] = make_float4(i, 1, 2, 3);
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < read; i += gridDim.x * 256) { float4 v = x[i]; sum += v.x + v.y + v.z + v.w; }
  if (sum == 1) out[0] = sum;
}
// sectorwise: launch write_and_read<<<1056, 256>>>(f32[16*262144], f32[16*262144], f32[1], written=1048576, read=1048576)
// sectorwise: launch write_and_read<<<1056, 256>>>(f32[16*262144], f32[32*262144], f32[1], written=1048576, read=2097152)
// sectorwise: launch write_and_read<<<1056, 256>>>(f32[16*262144], f32[64*262144], f32[1], written=1048576, read=4194304)
// sectorwise: launch write_and_read<<<1056, 256>>>(f32[16*262144], f32[256*262144], f32[1], written=1048576, read=16777216)

// What does an L1 keep of a block's own data, from round to round? One block an SM, and four.
extern "C" __global__ void l1_rounds(const float* __restrict__ x, float* __restrict__ out, int words, int rounds) {
  float sum = 0;
  for (int r = 0; r < rounds; ++r)
    for (int i = threadIdx.x; i < words; i += blockDim.x) sum += x[blockIdx.x * words + i];
  if (sum == 1) out[0] = sum;
}
// sectorwise: launch l1_rounds<<<132, 1024>>>(f32[132*40960], f32[1], words=40960, rounds=4)
// sectorwise: launch l1_rounds<<<132, 1024>>>(f32[132*49152], f32[1], words=49152, rounds=4)
// sectorwise: launch l1_rounds<<<132, 1024>>>(f32[132*53248], f32[1], words=53248, rounds=4)
// sectorwise: launch l1_rounds<<<132, 1024>>>(f32[132*57344], f32[1], words=57344, rounds=4)
// sectorwise: launch l1_rounds<<<132, 1024>>>(f32[132*61440], f32[1], words=61440, rounds=4)
// sectorwise: launch l1_rounds<<<132, 1024>>>(f32[132*73728], f32[1], words=73728, rounds=4)
// sectorwise: launch l1_rounds<<<528, 256>>>(f32[528*12288], f32[1], words=12288, rounds=4)
// sectorwise: launch l1_rounds<<<528, 256>>>(f32[528*14336], f32[1], words=14336, rounds=4)

// How many requests for the same lines travel together?
extern "C" __global__ void same_lines(const float* __restrict__ x, float* __restrict__ out, int lines) {
  float sum = 0;
  for (int i = threadIdx.x / 32; i < lines; i += blockDim.x / 32) sum += __ldcg(x + i * 32 + threadIdx.x % 32);
  if (sum == 1) out[0] = sum;
}
// sectorwise: launch same_lines<<<132, 32>>>(f32[8192*32], f32[1], lines=8192)
// sectorwise: launch same_lines<<<132, 256>>>(f32[8192*32], f32[1], lines=8192)
// sectorwise: launch same_lines<<<132, 1024>>>(f32[8192*32], f32[1], lines=8192)
// sectorwise: launch same_lines<<<1056, 256>>>(f32[8192*32], f32[1], lines=8192)

// What do atomics cost where they meet, and where they do not?
extern "C" __global__ void add_spread(int* __restrict__ y, int pitch, int mask) {
  int i = blockIdx.x * 256 + threadIdx.x;
  atomicAdd(y + (size_t)(i * pitch & mask), 1);
}
// sectorwise: launch add_spread<<<16384, 256>>>(i32[1<<22], pitch=1, mask=4194303)
// sectorwise: launch add_spread<<<16384, 256>>>(i32[1<<22], pitch=8, mask=4194303)
// sectorwise: launch add_spread<<<16384, 256>>>(i32[1<<22], pitch=33, mask=4194303)
// sectorwise: launch add_spread<<<16384, 256>>>(i32[1<<22], pitch=1, mask=255)
extern "C" __global__ void add_and_use(int* __restrict__ y, int* __restrict__ out, int mask) {
  int i = blockIdx.x * 256 + threadIdx.x;
  out[i] = atomicAdd(y + (i & mask), i);
}
// sectorwise: launch add_and_use<<<16384, 256>>>(i32[1<<22], i32[1<<22], mask=4194303)
// sectorwise: launch add_and_use<<<4096, 256>>>(i32[1<<22], i32[1<<22], mask=255)
