// Instructions of compute capability 9.0 alone: products of four warps together (wgmma), which read shared memory by
// themselves, and tiles that a unit of its own copies (TMA), told by a map where the matrix lies.
