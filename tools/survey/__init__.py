"""Public kernels that nobody here wrote, compiled and analysed: what crashes, what is unknown."""
