"""Turns an execution and a device into what the profiler and the clock would show."""
