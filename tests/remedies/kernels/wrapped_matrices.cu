// Four 8 x 8 matrices of halves by one ldmatrix, from a class that works out where its rows begin.
//
// sectorwise: launch matrices<<<4, 32>>>(u16[4*2048]=perm(3), u32[512])

struct Tile {
    unsigned short v[2048];
    __device__ unsigned short* at(int r, int c) { return v + ((r << 6) | c); }
};

extern "C" __global__ void matrices(const unsigned short* in, unsigned* out) {
    __shared__ __align__(128) Tile tile;
    for (int chunk = threadIdx.x; chunk < 256; chunk += 32) {
        const int row = chunk / 8, column = chunk % 8 * 8;
        *reinterpret_cast<uint4*>(tile.at(row, column)) =
            *reinterpret_cast<const uint4*>(&in[blockIdx.x * 2048 + row * 64 + column]);
    }
    __syncwarp();
    for (int part = 0; part < 8; ++part) {
        unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile.at(threadIdx.x, part * 8)));
        unsigned a, b, c, d;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(from)
                     : "memory");
        if (part == static_cast<int>(blockIdx.x)) {
            out[(blockIdx.x * 32 + threadIdx.x) * 4 + 0] = a;
            out[(blockIdx.x * 32 + threadIdx.x) * 4 + 1] = b;
            out[(blockIdx.x * 32 + threadIdx.x) * 4 + 2] = c;
            out[(blockIdx.x * 32 + threadIdx.x) * 4 + 3] = d;
        }
    }
}
