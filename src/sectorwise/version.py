"""Turns this release into the version that reports and the package's metadata carry."""

from __future__ import annotations

__version__ = "0.1.0"
