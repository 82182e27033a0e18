"""Turns what a profiler counted in a launch into plain frozen data, under the names that our own counts have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binary.ir import Location
    from sectorwise.counting.request import Operation, Space

PROFILE_SCHEMA: Final = "sectorwise.profile/1"
"""Name and version of the JSON document that `check profile.ncu-rep` writes."""

_KEPT_HERE: Final[Mapping[str, Any]] = {"document": False}


@dataclass(frozen=True, slots=True)
class ProfiledSite:
    """One memory instruction of a profiled launch that accessed something, with its counts over the launch.

    `offset_bytes` is its place in the kernel's code, None where the report does not tell. The counts are those of
    `analysis.data.MemorySite`, from the profiler's source view; None: the report has no such column.
    """

    offset_bytes: int | None
    sass: str
    location: Location | None
    space: Space
    operation: Operation
    width_bytes: int
    executed: int | None
    tag_requests: int | None
    sectors: int | None
    sectors_ideal: int | None
    sectors_local: int | None
    wavefronts: int | None
    wavefronts_ideal: int | None


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """One launch of a profiler's report.

    `name` is the kernel as its author calls it, `symbol` its mangled name. `totals` has the counters of the whole
    launch that the report holds, by the names of `model.totals.Totals`; one that is not there was not collected.
    `code` is the SASS of the kernel, instruction by instruction, empty where the report has none. `has_source_view` is
    whether the counters of single instructions were collected. `time_ns` is the launch's duration, None if unknown.
    """

    name: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int | None
    registers_per_thread: int | None
    device: str | None
    compute_capability: tuple[int, int] | None
    has_source_view: bool
    sites: tuple[ProfiledSite, ...]
    totals: Mapping[str, int]
    time_ns: float | None
    code: tuple[str, ...] = field(default=(), repr=False, metadata=_KEPT_HERE)


@dataclass(frozen=True, slots=True)
class ProfiledText:
    """The text of a source file: out of the report, or of a file of this machine, which may have changed since.

    `found_at` is the path of that file, None where the report holds the text.
    """

    lines: tuple[str, ...]
    found_at: str | None


@dataclass(frozen=True, slots=True)
class Profile:
    """A profiler's report: its file as it was named, what read it, and its launches in their order.

    `texts` has the source files that locations name, as far as their text was found.
    """

    schema: str
    source: str
    reader: str
    launches: tuple[ProfiledLaunch, ...]
    texts: Mapping[str, ProfiledText] = field(default_factory=dict, repr=False, metadata=_KEPT_HERE)
