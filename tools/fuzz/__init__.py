"""Small random kernels, run by the engine and by a GPU, whose results are compared bit for bit."""
