"""Turns the name of a file into the front end that takes it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sectorwise.frontends.base import Frontend

_READ = (
    "CUDA C++ (.cu, .cuh), PTX (.ptx), cubins (.cubin), Python (.py), libraries and wheels (.so, .a, .fatbin, .whl), "
    "and reports of Nsight Compute (.ncu-rep)"
)
_FRONTENDS: Final = {
    "cubin": "CUBIN",
    "cuda": "CUDA",
    "ptx": "PTX",
    "python_file": "PYTHON",
    "library": "LIBRARY",
    "report": "REPORT",
}
"""Modules and what they call their front end; those first that others would wait for."""


def list_frontends() -> Iterator[Frontend]:
    """All front ends, each imported when its turn comes: a cubin need not wait for what Python files take."""
    for module, name in _FRONTENDS.items():
        frontend: Frontend = getattr(importlib.import_module(f"sectorwise.frontends.{module}"), name)
        yield frontend


def choose_frontend(path: Path) -> Frontend:
    """Return the front end for a file, by its name.

    Raises:
        ArgumentError: no front end takes such a file.
    """
    for frontend in list_frontends():
        if frontend.accepts(path):
            return frontend
    message = f"{path}: sectorwise reads {_READ}, not {path.suffix or 'such a file'}"
    if path.suffix == ".json":
        message += f"; a launch file goes with its source: sectorwise check kernel.cu --launches {path}"
    raise ArgumentError(message)
