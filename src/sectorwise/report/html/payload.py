"""Turns an analysis into the data that the page's scripts read: what many launches have in common stands there once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from sectorwise.analysis.causes import split_time
from sectorwise.analysis.instructions import InstructionUse
from sectorwise.device import load_device
from sectorwise.errors import SectorwiseError
from sectorwise.model.cliffs import trace_occupancy
from sectorwise.model.latency import describe_memory
from sectorwise.model.occupancy import Limiter, occupancy
from sectorwise.report.comparison import CAUSE_WORDS
from sectorwise.report.concurrency import HELD_UP
from sectorwise.report.html.highlight import highlight
from sectorwise.report.json import to_plain

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from sectorwise.analysis.data import Analysis, KernelAnalysis, MemorySite
    from sectorwise.analysis.instructions import BulkCopyUse, PatternUse
    from sectorwise.binary.ir import Location
    from sectorwise.device import DeviceSpec

Plain = dict[str, Any]

_SITE_COLUMNS = (
    *("width_bytes", "executed", "tag_requests", "sectors", "sectors_ideal", "sectors_local"),
    *("wavefronts", "wavefronts_ideal", "wavefronts_hardware", "certainty", "unknown_because"),
)
_AS_THEY_ARE = (
    *("name", "case", "launch", "resources", "coverage", "totals", "occupancy", "waves", "concurrency", "roofline"),
    *("traffic", "time", "faults", "findings", "limitations", "hangs", "copy_ring"),
)
_BUSY = tuple(step / 100 for step in range(0, 96, 3))
"""Parts of the memory's time at which the curve of bytes in flight is drawn."""


@dataclass(slots=True)
class _Pools:
    """What is written once, each with its number."""

    numbers: dict[str, dict[Hashable, int]] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, pool: str, key: Hashable, value: object) -> int:
        """The number of the value, which is added where no other has its key."""
        numbers, values = self.numbers.setdefault(pool, {}), self.values.setdefault(pool, [])
        if key not in numbers:
            numbers[key] = len(values)
            values.append(value)
        return numbers[key]


def gather(analysis: Analysis) -> Plain:
    """All that the page shows, as dictionaries, lists, numbers and strings.

    `files` has the pieces of each line; `codes` the instructions of each distinct kernel, `[offset, sass, place]`;
    `places` are `[file, line, [[file, line], ...]]`, `patterns` what `_write_pattern` gives.
    """
    pools = _Pools()
    spec = load_device(analysis.device.id)
    kernels = [_gather_kernel(kernel, spec, pools) for kernel in analysis.kernels]
    return {
        "tool": to_plain(analysis.tool),
        "device": {**_plain(analysis.device), "sm_count": spec.sm_count, "flight": _trace_flight(spec)},
        "source": analysis.source,
        "words": {"causes": {str(cause): text for cause, text in CAUSE_WORDS.items()}, "bounds": dict(HELD_UP)},
        "files": {name: highlight(text) for name, text in analysis.source_texts.items()},
        **{name: pools.values.get(name, []) for name in ("codes", "places", "patterns")},
        "kernels": kernels,
    }


def _plain(value: object) -> Plain:
    plain = to_plain(value)
    return plain if isinstance(plain, dict) else {}


def _gather_kernel(kernel: KernelAnalysis, spec: DeviceSpec, pools: _Pools) -> Plain:
    code = kernel.instructions or _list_known(kernel)
    rows = [[each.offset, each.sass, _place(each.location, pools)] for each in code]
    places = {each.offset: number for number, each in enumerate(code)}
    return {
        **{name: to_plain(getattr(kernel, name)) for name in _AS_THEY_ARE},
        "code": pools.add("codes", tuple(map(tuple, rows)), rows),
        "whole": bool(kernel.instructions),
        "issued": _shorten([each.issued for each in code]),
        "sites": _gather_sites(kernel.sites, places, pools),
        "copies": _gather_copies(kernel.copies, places),
        "parts": [{**_plain(part), "unit": part.unit} for part in split_time(kernel)],
        "curves": _trace_curves(kernel, spec),
    }


def _list_known(kernel: KernelAnalysis) -> tuple[InstructionUse, ...]:
    """The code as far as it is known without all of it."""
    every: list[MemorySite | BulkCopyUse] = [*kernel.sites, *kernel.copies]
    every.sort(key=lambda each: int(each.offset, 16))
    return tuple(InstructionUse(each.offset, each.sass, each.location, each.executed) for each in every)


def _gather_sites(sites: Iterable[MemorySite], places: dict[str, int], pools: _Pools) -> Plain:
    """A list a column, each with a value a site."""
    listed = list(sites)
    columns: Plain = {name: [to_plain(getattr(site, name)) for site in listed] for name in _SITE_COLUMNS}
    columns["at"] = [places[site.offset] for site in listed]
    columns["kind"] = [f"{site.space} {site.operation}" for site in listed]
    columns["patterns"] = [[_pattern(each, pools) for each in site.patterns] for site in listed]
    return columns


def _gather_copies(copies: Iterable[BulkCopyUse], places: Mapping[str, int]) -> list[Plain]:
    """A dictionary each, with where it stands in the code in place of the code."""
    gathered = []
    for each in copies:
        plain = _plain(each)
        kept = {name: value for name, value in plain.items() if name not in {"offset", "sass", "location"}}
        gathered.append({**kept, "at": places[each.offset]})
    return gathered


def _place(location: Location | None, pools: _Pools) -> int | None:
    if location is None:
        return None
    callers = [[caller.file, caller.line] for caller in location.inlined_at]
    return pools.add("places", location, [location.file, location.line, callers])


def _pattern(pattern: PatternUse, pools: _Pools) -> list[int]:
    """Its number among the distinct ones, and how many requests lie so."""
    written = _write_pattern(pattern)
    key = (*(written[:4]), *((each[0], each[1], each[2], tuple(each[3])) for each in written[4]))
    return [pools.add("patterns", key, written), pattern.requests]


def _write_pattern(pattern: PatternUse) -> list[Any]:
    """`[sectors, ideal, wavefronts, ideal, [[scene, width, lanes a pass, lanes]]]`, lanes as in `_shorten_lanes`."""
    pictures = [
        [str(each.scene), each.width_bytes, each.lanes_per_pass, _shorten_lanes(each.lanes)]
        for each in pattern.pictures
    ]
    return [pattern.sectors, pattern.sectors_ideal, pattern.wavefronts, pattern.wavefronts_ideal, pictures]


def _shorten_lanes(lanes: Sequence[int | None]) -> list[int | None]:
    """The offset of each lane; where each is one step from the one before, only the first and the step."""
    first, second = lanes[0], lanes[1]
    if first is None or second is None:
        return list(lanes)
    step = second - first
    even = all(lane == first + number * step for number, lane in enumerate(lanes))
    return [first, step] if even else list(lanes)


def _shorten(counts: list[int]) -> list[int]:
    """Runs of equal counts: length, count, length, count, and so on."""
    runs: list[int] = []
    for count in counts:
        if runs and runs[-1] == count:
            runs[-2] += 1
        else:
            runs += [1, count]
    return runs


def _trace_curves(kernel: KernelAnalysis, spec: DeviceSpec) -> Plain:
    """Resident warps over each resource: `[first, last, blocks, warps]`; empty where the device has no such rules."""
    barriers = 0
    capability = spec.capability
    if capability is not None and capability.barriers_per_sm and kernel.occupancy.limit_barriers:
        barriers = capability.barriers_per_sm // kernel.occupancy.limit_barriers
    try:
        held = occupancy(
            math.prod(kernel.launch.block),
            kernel.resources.registers_per_thread,
            kernel.resources.static_shared_bytes + kernel.launch.dynamic_shared_bytes,
            device=spec,
            barriers=barriers,
        )
    except SectorwiseError:
        return {}
    return {
        str(resource): [[getattr(step, part.name) for part in fields(step)] for step in trace_occupancy(held, resource)]
        for resource in (Limiter.REGISTERS, Limiter.SHARED, Limiter.WARPS)
    }


def _trace_flight(spec: DeviceSpec) -> Plain | None:
    """Bandwidth over bytes in flight an SM, `[bytes, GB/s]`; None where nothing was measured to borrow from."""
    try:
        memory = describe_memory(spec)
    except SectorwiseError:
        return None
    return {
        "ceiling_gbs": memory.ceiling_gbs,
        "points": [
            [round(memory.needed_bytes(busy) / spec.sm_count), round(busy * memory.ceiling_gbs, 1)] for busy in _BUSY
        ],
        "assumed": list(memory.assumed),
    }
