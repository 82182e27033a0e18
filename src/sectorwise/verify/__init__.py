"""Turns predictions into verified ones: beside what a GPU's profiler counted, and what the GPU left in memory."""
