"""Turns the lines that some blocks of a launch touch into where its bytes come from: L1, L2 or DRAM."""
