// Three layouts of n records of 12 floats, of which a kernel reads two and changes one: x += vx * dt.

constexpr int FIELDS = 12, X = 0, VX = 3;

// sectorwise: launch array_of_structs<<<1024, 256>>>(f32[262144*12], dt=0.5)
// Rung 1. A record after the other: lanes step 48 bytes, so each moves a sector of 32 bytes for 4 that it wants.
extern "C" __global__ void array_of_structs(float* records, float dt) {
  float* record = records + (blockIdx.x * 256 + threadIdx.x) * FIELDS;
  record[X] += record[VX] * dt;
}

// sectorwise: launch struct_of_arrays<<<1024, 256>>>(f32[262144*12], n=262144, dt=0.5)
// Rung 2. An array for each field: lanes lie side by side, nothing else is moved.
extern "C" __global__ void struct_of_arrays(float* fields, int n, float dt) {
  int i = blockIdx.x * 256 + threadIdx.x;
  fields[X * n + i] += fields[VX * n + i] * dt;
}

// sectorwise: launch blocked<<<1024, 256>>>(f32[262144*12], dt=0.5)
// Rung 3. Blocks of 32 records, each field of a block side by side: as good for a warp, and a record's fields stay
// within 1,536 bytes, for kernels that want all of them, and for pages.
extern "C" __global__ void blocked(float* records, float dt) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float* block = records + i / 32 * (32 * FIELDS) + i % 32;
  block[X * 32] += block[VX * 32] * dt;
}
