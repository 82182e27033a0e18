"""Operations that fuzzed kernels are made of, each a statement of CUDA C++ or of PTX, by family."""
