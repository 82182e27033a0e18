"""Turns a GPU that is there into a device file: latencies, memory under load, ceilings, blocks, stores, atomics."""
