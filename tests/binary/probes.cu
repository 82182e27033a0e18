// Kernels that read one word of the driver's each; tests/binary/test_abi.py looks where it was loaded from.
struct Structure {
    int values[8];
};
__constant__ int constants[8];

extern "C" __global__ void k_store(int *o) {
    o[0] = 1;
}
extern "C" __global__ void k_block_x(unsigned *o) {
    o[0] = blockDim.x;
}
extern "C" __global__ void k_block_y(unsigned *o) {
    o[0] = blockDim.y;
}
extern "C" __global__ void k_block_z(unsigned *o) {
    o[0] = blockDim.z;
}
extern "C" __global__ void k_grid_x(unsigned *o) {
    o[0] = gridDim.x;
}
extern "C" __global__ void k_grid_y(unsigned *o) {
    o[0] = gridDim.y;
}
extern "C" __global__ void k_grid_z(unsigned *o) {
    o[0] = gridDim.z;
}
extern "C" __global__ void k_shared_to_generic(unsigned long long *o, unsigned a) {
    o[0] = (unsigned long long)__cvta_shared_to_generic(a);
}
extern "C" __global__ void k_local_to_generic(unsigned long long *o, unsigned long long a) {
    o[0] = (unsigned long long)__cvta_local_to_generic(a);
}
extern "C" __global__ void k_generic_to_local(unsigned long long *o, void *a) {
    o[0] = __cvta_generic_to_local(a);
}
extern "C" __global__ void k_constant_to_generic(unsigned long long *o) {
    o[0] = (unsigned long long)&constants[threadIdx.x];
}
extern "C" __global__ void k_parameter_to_generic(unsigned long long *o, const __grid_constant__ Structure s) {
    o[0] = (unsigned long long)&s.values[threadIdx.x];
}
extern "C" __global__ void k_dynamic_shared(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_total_shared(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_grid_number(unsigned long long *o) {
    unsigned long long value;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(value));
    o[0] = value;
}
extern "C" __global__ void k_multiprocessors(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_environment(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%envreg0;" : "=r"(value));
    o[0] = value;
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(value));
    o[1] = value;
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void k_cluster_blocks_x(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_cluster_block_x(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_clusters_x(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_cluster_blocks_y(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_cluster_block_y(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_clusters_y(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%nclusterid.y;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_cluster_blocks_z(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_cluster_block_z(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_clusters_z(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%nclusterid.z;" : "=r"(value));
    o[0] = value;
}
extern "C" __global__ void k_cluster_blocks_total(unsigned *o) {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(value));
    o[0] = value;
}
#endif
