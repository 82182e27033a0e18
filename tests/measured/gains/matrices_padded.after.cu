// Fragments of a tile of halves, read again and again by ldmatrix from rows of 128 bytes, which begin in one bank.
//
// sectorwise: launch matrices<<<4, 128>>>(u16[4*2048]=uniform(3), u32[4*128], rounds=8)
// sectorwise: launch matrices<<<2112, 128>>>(u16[2112*2048]=uniform(3), u32[2112*128], rounds=32)

extern "C" __global__ void matrices(const unsigned short* in, unsigned* out, int rounds) {
    __shared__ __align__(128) unsigned short tile[32][72];
    for (int chunk = threadIdx.x; chunk < 256; chunk += 128) {
        const int row = chunk / 8, column = chunk % 8 * 8;
        *reinterpret_cast<uint4*>(&tile[row][column]) =
            *reinterpret_cast<const uint4*>(&in[blockIdx.x * 2048 + row * 64 + column]);
    }
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned sum = 0;
    for (int round = 0; round < rounds; ++round) {
        unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(&tile[lane][(round + warp) % 8 * 8]));
        unsigned a, b, c, d;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(from)
                     : "memory");
        sum = sum * 3 + (a ^ b ^ c ^ d);
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
