"""Turns the addresses of warp requests into the sectors, tags and wavefronts that the profiler counts."""
