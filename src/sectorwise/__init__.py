"""Turns a GPU kernel and its launch into the memory counters that the profiler would show, without a GPU."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Final

from sectorwise.version import __version__

if TYPE_CHECKING:
    # For type checkers: at run time `_Package` finds them.
    from sectorwise.advise.access import access, access_cpu
    from sectorwise.advise.gemv import advise_gemv
    from sectorwise.advise.records import advise_records
    from sectorwise.advise.tiles import judge_tile, plan_tiles
    from sectorwise.advise.transpose import advise_transpose
    from sectorwise.analyze import analyze
    from sectorwise.capture.session import capture
    from sectorwise.counting.calculator import sectors, wavefronts
    from sectorwise.errors import SectorwiseError
    from sectorwise.launch.values import (
        bf16,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        u8,
        u16,
        u32,
        u64,
    )
    from sectorwise.learn.exercises import check_exercise, find_exercise
    from sectorwise.learn.questions import ask
    from sectorwise.model.occupancy import occupancy
    from sectorwise.report.assertions import assert_clean

__all__ = [
    "SectorwiseError",
    "__version__",
    "access",
    "access_cpu",
    "advise_gemv",
    "advise_records",
    "advise_transpose",
    "analyze",
    "ask",
    "assert_clean",
    "bf16",
    "capture",
    "check_exercise",
    "f16",
    "f32",
    "f64",
    "find_exercise",
    "i8",
    "i16",
    "i32",
    "i64",
    "judge_tile",
    "occupancy",
    "plan_tiles",
    "sectors",
    "u8",
    "u16",
    "u32",
    "u64",
    "wavefronts",
]

_HOMES: Final = {
    "SectorwiseError": "sectorwise.errors",
    "access": "sectorwise.advise.access",
    "access_cpu": "sectorwise.advise.access",
    "advise_gemv": "sectorwise.advise.gemv",
    "advise_records": "sectorwise.advise.records",
    "advise_transpose": "sectorwise.advise.transpose",
    "analyze": "sectorwise.analyze",
    "ask": "sectorwise.learn.questions",
    "assert_clean": "sectorwise.report.assertions",
    "bf16": "sectorwise.launch.values",
    "capture": "sectorwise.capture.session",
    "check_exercise": "sectorwise.learn.exercises",
    "f16": "sectorwise.launch.values",
    "f32": "sectorwise.launch.values",
    "f64": "sectorwise.launch.values",
    "find_exercise": "sectorwise.learn.exercises",
    "i8": "sectorwise.launch.values",
    "i16": "sectorwise.launch.values",
    "i32": "sectorwise.launch.values",
    "i64": "sectorwise.launch.values",
    "judge_tile": "sectorwise.advise.tiles",
    "occupancy": "sectorwise.model.occupancy",
    "plan_tiles": "sectorwise.advise.tiles",
    "sectors": "sectorwise.counting.calculator",
    "u8": "sectorwise.launch.values",
    "u16": "sectorwise.launch.values",
    "u32": "sectorwise.launch.values",
    "u64": "sectorwise.launch.values",
    "wavefronts": "sectorwise.counting.calculator",
}
"""Modules of the public names, imported when a name is first used: NumPy alone takes longer than an import may."""


class _Package(ModuleType):
    """The package, whose functions are found in their modules when they are asked for."""

    def __getattr__(self, name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)

    def __setattr__(self, name: str, value: object) -> None:
        """Let the import of a module not hide the function of the same name, as it would of `analyze`."""
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
