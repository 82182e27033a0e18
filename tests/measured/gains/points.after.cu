// Records of four floats that the compiler does not know to be aligned: four loads of 4 bytes for each.
//
// sectorwise: launch lengths<<<4, 128>>>(f32[4*512]=uniform(1), f32[512])
// sectorwise: launch lengths<<<65536, 128>>>(f32[4*8388608]=uniform(1), f32[8388608])

struct __align__(16) Point {
    float x, y, z, w;
};

extern "C" __global__ void lengths(const Point* points, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Point p = points[i];
    out[i] = p.x * p.x + p.y * p.y + p.z * p.z + p.w;
}
