"""Turns a GPU kernel and its launch into the memory counters that the profiler would show, without a GPU."""

from __future__ import annotations

__version__ = "0.1.0"
