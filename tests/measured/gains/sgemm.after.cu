// A 128 x 128 tile of C by 256 threads, eight columns of A at a time: the tile of A is stored transposed, so that both
// operands are read as float4. The two lanes that store one row of A meet in a bank.
//
// sectorwise: launch sgemm<<<(1, 1), 256>>>(f32[128*16]=uniform(1), f32[16*128]=uniform(2), f32[128*128], n=128, depth=16)
// sectorwise: launch sgemm<<<(16, 16), 256>>>(f32[2048*256]=uniform(1), f32[256*2048]=uniform(2), f32[2048*2048], n=2048, depth=256)

constexpr int kTile = 128;
constexpr int kDepth = 8;

extern "C" __global__ void __launch_bounds__(256) sgemm(const float* a, const float* b, float* c, int n, int depth) {
    __shared__ __align__(16) float rows[kDepth][kTile + 4];
    __shared__ __align__(16) float columns[kDepth][kTile];
    const int t = threadIdx.x;
    const int row = t / 2, part = t % 2 * 4;
    const int depth_row = t / 32, column = t % 32 * 4;
    const int x = t % 16 * 8, y = t / 16 * 8;
    float sum[8][8] = {};
    for (int k = 0; k < depth; k += kDepth) {
        float4 from_a = *reinterpret_cast<const float4*>(&a[(blockIdx.y * kTile + row) * depth + k + part]);
        rows[part + 0][row] = from_a.x;
        rows[part + 1][row] = from_a.y;
        rows[part + 2][row] = from_a.z;
        rows[part + 3][row] = from_a.w;
        *reinterpret_cast<float4*>(&columns[depth_row][column]) =
            *reinterpret_cast<const float4*>(&b[(k + depth_row) * n + blockIdx.x * kTile + column]);
        __syncthreads();
        for (int q = 0; q < kDepth; ++q) {
            float left[8], right[8];
            *reinterpret_cast<float4*>(&left[0]) = *reinterpret_cast<float4*>(&rows[q][y]);
            *reinterpret_cast<float4*>(&left[4]) = *reinterpret_cast<float4*>(&rows[q][y + 4]);
            *reinterpret_cast<float4*>(&right[0]) = *reinterpret_cast<float4*>(&columns[q][x]);
            *reinterpret_cast<float4*>(&right[4]) = *reinterpret_cast<float4*>(&columns[q][x + 4]);
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; j += 4)
            *reinterpret_cast<float4*>(&c[(blockIdx.y * kTile + y + i) * n + blockIdx.x * kTile + x + j]) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}
