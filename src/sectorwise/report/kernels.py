"""Turns the kernels of a library into a list for terminals, or into JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.frontends.library import LibraryKernel

SCHEMA: Final = "sectorwise.kernels/1"


def render(kernels: Sequence[LibraryKernel], source: str) -> str:
    """One line a kernel, under the targets that it is there for."""
    count = f"{len(kernels):,} kernel{'s' if len(kernels) != 1 else ''}"
    lines = [f"{source}: {count}{'' if kernels else '; there is no code for NVIDIA GPUs in it'}"]
    heading: tuple[object, ...] | None = None
    for kernel in kernels:
        group = (kernel.member, kernel.targets)
        if group != heading:
            heading = group
            where = f"{kernel.member}: " if kernel.member is not None else ""
            lines += ["", f"{where}{' '.join(kernel.targets)}"]
        lines.append(f"  {_spell(kernel)}")
    if kernels:
        lines += ["", f"sectorwise check {source} --kernel NAME takes one out, and says what to pass to it"]
    return "\n".join(lines) + "\n"


def render_json(kernels: Sequence[LibraryKernel], source: str) -> str:
    """The same as a document."""
    document = {"schema": SCHEMA, "source": source, "kernels": [asdict(kernel) for kernel in kernels]}
    return json.dumps(document, indent=2) + "\n"


def _spell(kernel: LibraryKernel) -> str:
    types = "" if kernel.parameter_types is None else f"({', '.join(kernel.parameter_types)})"
    return f"{kernel.name}{types}"
