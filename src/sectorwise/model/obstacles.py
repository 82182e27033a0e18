"""Turns what a launch may lose its time to into names."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Obstacle(StrEnum):
    """What can be imagined away, to see how much of the time it is to blame for."""

    LATENCY = "latency"
    """The wait for data that too few warps cover."""
    ISSUE = "issue"
    """Instructions issued one a cycle and scheduler."""
    ARITHMETIC = "arithmetic"
    """Pipes that compute."""
    PASSES = "passes"
    """L1, shared memory, and stores line by line."""
    LAST_WAVE = "last_wave"
    """SMs without work in the last wave."""
    BLOCKS = "blocks"
    """Starting blocks, and what lies between one and the next."""
    ATOMICS = "atomics"
    """Atomics on one address."""
    LONE_FETCHES = "lone_fetches"
    """64-byte blocks of DRAM that lie alone."""


NOTHING: Final[frozenset[Obstacle]] = frozenset()
