"""Turns one question into many runs of the pipeline, with one thing changed at a time."""
