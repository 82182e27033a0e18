// Graphs: neighbours of fixed number at random places, frontiers, ranks and labels.
extern "C" __global__ void page_rank_pull(const int* __restrict__ neighbour, const float* __restrict__ rank, float* __restrict__ next, int degree, int nodes) {
  int node = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < degree; ++j) sum += rank[neighbour[node * degree + j] % nodes];
  next[node] = 0.15f / nodes + 0.85f * sum / degree;
}
// sectorwise: launch page_rank_pull<<<4096, 256>>>(i32[1<<24]=uniform(1), f32[1<<20]=noise, f32[1<<20], degree=16, nodes=1048576)

extern "C" __global__ void page_rank_push(const int* __restrict__ neighbour, const float* __restrict__ rank, float* __restrict__ next, int degree, int nodes) {
  int edge = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&next[neighbour[edge] % nodes], rank[edge / degree] / degree);
}
// sectorwise: launch page_rank_push<<<32768, 256>>>(i32[1<<23]=uniform(2), f32[1<<20]=noise, f32[1<<20], degree=8, nodes=1048576)

extern "C" __global__ void frontier_expand(const int* __restrict__ neighbour, const int* __restrict__ level, int* __restrict__ next_level, int degree, int nodes, int now) {
  int lane = threadIdx.x % 32, node = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (level[node] % 4 != now) return;
  for (int j = lane; j < degree; j += 32) {
    int other = neighbour[(size_t)node * degree + j] % nodes;
    if (level[other] % 4 > now) next_level[other] = now + 1;
  }
}
// sectorwise: launch frontier_expand<<<32768, 256>>>(i32[1<<24]=uniform(3), i32[1<<18]=uniform(4), i32[1<<18], degree=64, nodes=262144, now=1)

extern "C" __global__ void label_components(const int* __restrict__ from, const int* __restrict__ to, int* __restrict__ label, int nodes) {
  int edge = blockIdx.x * blockDim.x + threadIdx.x;
  int a = from[edge] % nodes, b = to[edge] % nodes;
  int mine = label[a], other = label[b];
  if (mine != other) atomicMin(&label[max(mine, other) % nodes], min(mine, other));
}
// sectorwise: launch label_components<<<16384, 256>>>(i32[1<<22]=uniform(5), i32[1<<22]=uniform(6), i32[1<<20]=arange, nodes=1048576)

extern "C" __global__ void degree_count(const int* __restrict__ to, int* __restrict__ degree, int nodes) {
  int edge = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&degree[to[edge] % nodes], 1);
}
// sectorwise: launch degree_count<<<65536, 256>>>(i32[1<<24]=uniform(7), i32[1<<22], nodes=4194304)

extern "C" __global__ void gather_features(const float4* __restrict__ feature, const int* __restrict__ neighbour, float4* __restrict__ out, int degree, int nodes) {
  int lane = threadIdx.x % 32, node = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int j = 0; j < degree; ++j) {
    float4 v = feature[(size_t)(neighbour[node * degree + j] % nodes) * 32 + lane];
    sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
  }
  out[(size_t)node * 32 + lane] = sum;
}
// sectorwise: launch gather_features<<<8192, 256>>>(f32[65536*128]=noise, i32[65536*8]=uniform(8), f32[65536*128], degree=8, nodes=65536)

extern "C" __global__ void chase_pointers(const int* __restrict__ next, int* __restrict__ out, int hops) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int h = 0; h < hops; ++h) i = next[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = i;
}
// sectorwise: launch chase_pointers<<<512, 256>>>(i32[1<<22]=perm(9), i32[131072], hops=32)
