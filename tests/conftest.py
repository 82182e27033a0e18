"""Turns a source tree into a reproducible test run: generated examples are the same on every machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")
