"""Turns a GPU kernel and its launch into the memory counters that the profiler would show, without a GPU."""

from __future__ import annotations

from sectorwise.version import __version__

__all__ = ["__version__"]
