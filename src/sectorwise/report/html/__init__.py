"""Turns analyses and comparisons into pages for browsers, each one file that needs nothing else."""
