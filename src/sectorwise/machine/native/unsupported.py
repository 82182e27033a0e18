"""Turns what machine code cannot do into an error by which the reference engine takes a launch over."""

from __future__ import annotations


class UnsupportedError(Exception):
    """Something that machine code does not do: the reference engine runs the launch."""
