"""Turns nothing by itself: the agreement between front ends of Python kernels and those who ask them to compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    LaunchConfig,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    TensorMapArgument,
)

if TYPE_CHECKING:
    from sectorwise.frontends.base import Compilation

Value = object
"""An argument of a launch (`BufferArgument`, ...), or a Python value that the compiler gets as it is."""

Grid = tuple[int, ...] | Callable[[Mapping[str, object]], tuple[int, ...]]
"""Blocks along x, y, z, or a function of the arguments by name that gives them, as Triton takes."""

ARGUMENTS = (BufferArgument, ScalarArgument, BytesArgument, StructArgument, PointerArgument, TensorMapArgument)


@dataclass(frozen=True, slots=True)
class ObjectLaunch:
    """A launch of a Python kernel, before the kernel is compiled for it.

    `positional` and `named` are its arguments; `block` is None where the compiler chooses it; `config` picks one of the
    configurations of an autotuned kernel, None takes them all.
    """

    grid: Grid
    block: tuple[int, int, int] | None
    dynamic_shared_bytes: int = 0
    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    config: int | None = None
    origin: str = "launch"
    file: str | None = None
    """The Python file with the kernel, where it is known: CuPy's kernels do not know theirs."""


@dataclass(frozen=True, slots=True)
class ObjectCompilation:
    """A kernel compiled for one launch, and that launch in terms of the cubin's parameters."""

    compilation: Compilation
    launch: LaunchConfig
