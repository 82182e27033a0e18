// gemv_ring.cu with 16 warps a block: where eight cannot keep their part of x.
#define WARPS_OF_A_BLOCK 16
#include "gemv_ring.cu"
