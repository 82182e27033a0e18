"""Turns the name of a file into the front end that takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.frontends.cubin import CUBIN
from sectorwise.frontends.cuda import CUDA
from sectorwise.frontends.library import LIBRARY
from sectorwise.frontends.ptx import PTX
from sectorwise.frontends.python_file import PYTHON
from sectorwise.frontends.report import REPORT

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.frontends.base import Frontend

_READ = (
    "CUDA C++ (.cu, .cuh), PTX (.ptx), cubins (.cubin), Python (.py), libraries and wheels (.so, .a, .fatbin, .whl), "
    "and reports of Nsight Compute (.ncu-rep)"
)
FRONTENDS: tuple[Frontend, ...] = (CUDA, PTX, CUBIN, PYTHON, LIBRARY, REPORT)


def choose_frontend(path: Path) -> Frontend:
    """Return the front end for a file, by its name.

    Raises:
        ArgumentError: no front end takes such a file.
    """
    for frontend in FRONTENDS:
        if frontend.accepts(path):
            return frontend
    message = f"{path}: sectorwise reads {_READ}, not {path.suffix or 'such a file'}"
    if path.suffix == ".json":
        message += f"; a launch file goes with its source: sectorwise check kernel.cu --launches {path}"
    raise ArgumentError(message)
