"""Turns measured launches into what the models say of them beside what was measured, one quantity at a time."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from sectorwise.binary.cubin import read_cubin
from sectorwise.device import load_device
from sectorwise.examine import bind_launch
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.choose import choose_frontend
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import Certainty, Execution, ExecutionOptions, Site
from sectorwise.machine.forms import access_of
from sectorwise.model.bounds import NOTHING, Obstacle
from sectorwise.model.caches.lines import SECTOR_BYTES
from sectorwise.model.caches.window import leave_noise_out
from sectorwise.model.occupancy import Occupancy, occupancy
from sectorwise.model.roofline import Level, draw_roofline
from sectorwise.model.time import estimate_time
from sectorwise.model.traffic import Traffic, estimate_traffic, open_window_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sectorwise.binding import BoundLaunch
    from sectorwise.device import DeviceSpec
    from sectorwise.model.caches.window import Window

MEASURED = Path("tests/measured")
FOLDERS = {"h200": MEASURED / "h200", "corpus": MEASURED / "corpus", "held out": MEASURED / "corpus" / "held_out"}
"""Sets of rows, and where they lie."""

L1_FLOOR_SHARE = 0.02
L2_FLOOR_SECTORS = 5_000
DRAM_FLOOR_BYTES = 4_000_000
TIME_FROM_NS = 20_000

Change = Callable[["DeviceSpec"], "DeviceSpec"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One quantity of one launch: predicted, measured, and |p - m| / max(m, floor)."""

    rows: str
    family: str
    row: str
    quantity: str
    predicted: float
    measured: float
    floor: float
    baseline: float | None = None

    @property
    def error(self) -> float:
        """The error, by the definition that docs/model-errors.md gives."""
        return abs(self.predicted - self.measured) / max(self.measured, self.floor, 1.0)

    @property
    def counts(self) -> bool:
        """Whether the measured value is above the floor, or the error worth a look."""
        return self.measured > self.floor or self.error > 0.2


@dataclass(frozen=True, slots=True)
class Row:
    """A measured launch, ready for the models: bound, with its counts, the blocks to follow, and what was measured."""

    rows: str
    family: str
    name: str
    bound: BoundLaunch
    execution: Execution
    window: Window
    held: Occupancy
    totals: dict[str, int]


def list_families(rows: str) -> list[str]:
    """Families of a set whose measured cubins are here."""
    return sorted(
        path.stem
        for path in FOLDERS[rows].glob("*.json")
        if find_cubin(path).exists() and "cases" in json.loads(path.read_text())
    )


def find_cubin(launches: Path) -> Path:
    """The cubin of a launch file: beside it, or, of rows that are kept apart, in the folder above."""
    beside = launches.parent / f"{launches.stem}.sm_90.cubin"
    return beside if beside.exists() else launches.parent.parent / beside.name


def open_rows(rows: str, family: str, names: frozenset[str] | None = None) -> Iterator[Row]:
    """The launches of a family, or those of them that are named."""
    path = FOLDERS[rows] / f"{family}.json"
    cases = {case["name"]: case for case in json.loads(path.read_text())["cases"]}
    file = find_cubin(path)
    device = load_device("h200")
    kernels = tuple(dict.fromkeys(case["kernel"] for case in cases.values()))
    compilation = choose_frontend(file).compile(file, CompileRequest("sm_90", (), (), kernels))
    cubin = read_cubin(compilation.cubin, file.as_posix())
    for launch in read_launch_file(path).cases:
        name = launch.case or launch.kernel
        if names is not None and name not in names:
            continue
        bound = bind_launch(cubin, compilation, launch, device)
        needs = bound.kernel.resources
        held = occupancy(
            launch.threads_per_block,
            needs.registers_per_thread,
            needs.static_shared_bytes + launch.dynamic_shared_bytes,
            device=device,
            barriers=needs.barriers,
        )
        measured = cases[name]["measured"]
        execution, window = follow(bound, measured, held)
        yield Row(rows, family, name, bound, execution, window, held, measured["totals"])


def follow(bound: BoundLaunch, measured: dict[str, Any], held: Occupancy) -> tuple[Execution, Window]:
    """The measured counts as an execution, its issue counts in the proportions of the blocks that are followed.

    What a launch says is noise was zeros when it was recorded, which some arithmetic takes another way with.
    """
    if not measured.get("memory_instructions"):
        execution = execute(leave_noise_out(bound), ExecutionOptions())
        return execution, open_window_of(bound, execution, held)
    execution = take_counts(bound, measured)
    window = open_window_of(bound, execution, held)
    scale = measured["totals"]["instructions"] / window.issued.sum()
    issued = np.rint(window.issued * scale).astype(np.int64)
    return dataclasses.replace(execution, issued=issued, lanes=32 * issued), window


def take_counts(bound: BoundLaunch, measured: dict[str, Any]) -> Execution:
    """The counts that were measured, as an execution: another test holds that executions count the same."""
    found = [(each, access) for each in bound.kernel.instructions if (access := access_of(each)) is not None]
    issued = np.zeros(len(bound.kernel.instructions), np.int64)
    sites = []
    for listed in measured["memory_instructions"]:
        place = _find([each.text for each, _ in found], listed["sass"])
        instruction, access = found[place]
        del found[: place + 1]
        issued[instruction.index] = int(listed["executed"])
        sites.append(
            Site(
                instruction=instruction.index,
                access=access,
                executed=int(listed["executed"]),
                lanes=0,
                sectors=int(listed.get("sectors", 0)),
                sectors_ideal=int(listed.get("sectors_ideal", 0)),
                tag_requests=int(listed.get("tag_requests", 0)),
                wavefronts=int(listed.get("wavefronts", 0)),
                wavefronts_ideal=int(listed.get("wavefronts_ideal", 0)),
                wavefronts_hardware=int(listed.get("wavefronts", 0)),
                sectors_local=int(listed.get("sectors_local", 0)),
                certainty=Certainty.EXACT,
            )
        )
    issued[0] += measured["totals"]["instructions"] - issued.sum()
    issued = np.maximum(issued, 1)
    return Execution(tuple(sites), issued, issued * 32, (), (), _no_buffer, bound.launch.blocks_total)


def _no_buffer(_: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    raise AssertionError


def _find(texts: list[str], sass: str) -> int:
    """The place of an instruction; where a disassembler names another guard, of the next with its opcode."""
    stripped = [_strip(text) for text in texts]
    if _strip(sass) in stripped:
        return stripped.index(_strip(sass))
    opcode = re.sub(r"^@\S+\s+", "", sass).split()[0]
    return next(place for place, text in enumerate(texts) if re.sub(r"^@\S+\s+", "", text).split()[0] == opcode)


def _strip(sass: str) -> str:
    """The instruction without spaces, its operands in alphabetical order: disassemblers disagree on that of LDGSTS."""
    opcode, _, operands = re.sub(r"^(@\S+)\s+", r"\1", sass.strip().rstrip(";")).partition(" ")
    return opcode + ",".join(sorted(operands.replace(" ", "").split(",")))


def judge_row(row: Row, change: Change | None = None) -> Iterator[Judged]:
    """All quantities that the row recorded; on a changed device for ablations.

    Absent counters were zero or not recorded, and only the zeros are judged.
    """
    bound = row.bound if change is None else structs.replace(row.bound, device=change(row.bound.device))
    traffic = estimate_traffic(bound, row.execution, row.held, row.window)
    if traffic is not None:
        for quantity, predicted, measured, floor in compare_traffic(row.totals, traffic):
            yield Judged(row.rows, row.family, row.name, quantity, predicted, measured, floor)
        yield from judge_time(row, bound, traffic, NOTHING)


def judge_time_without(
    row: Row, obstacles: Iterable[frozenset[Obstacle]]
) -> Iterator[tuple[frozenset[Obstacle], Judged]]:
    """The time, where it was recorded and is long enough, without each of the obstacles, for ablations."""
    traffic = estimate_traffic(row.bound, row.execution, row.held, row.window)
    if traffic is None:
        return
    for without in obstacles:
        for judged in judge_time(row, row.bound, traffic, without):
            yield without, judged


def judge_time(row: Row, bound: BoundLaunch, traffic: Traffic, without: frozenset[Obstacle]) -> Iterator[Judged]:
    """The time, where it was recorded and is long enough."""
    measured_ns = row.totals.get("time_ns", 0)
    if measured_ns > TIME_FROM_NS:
        time = estimate_time(bound, row.execution, row.held, traffic, without)
        yield Judged(row.rows, row.family, row.name, "time", time.estimate_ns, measured_ns, 0.0, guess_time(row))


def compare_traffic(totals: dict[str, int], traffic: Traffic) -> Iterator[tuple[str, float, float, float]]:
    """Quantity, predicted, measured and floor."""
    loads = totals.get("global_load_sectors", 0)
    floor = L1_FLOOR_SHARE * loads
    if "global_load_sectors_hit" in totals or "l1_sectors_filled" in totals:
        hits = max(0, totals.get("global_load_sectors_hit", loads - totals.get("l1_sectors_filled", 0)))
        yield "L1 hits", traffic.l1_hit_sectors, hits, floor
    elif loads:
        # Rows that recorded neither had no hit at all.
        yield "L1 hits", traffic.l1_hit_sectors, 0, floor
    measured, predicted = totals.get("l2_sectors_read_from_sm"), traffic.l2_sectors_read_from_sm
    if measured is None:
        measured, predicted = totals.get("l2_sectors_read", 0), traffic.l2_sectors_read
    if measured > L2_FLOOR_SECTORS:
        yield "L2 sectors", predicted, measured, L2_FLOOR_SECTORS
    for quantity, name, value in (
        ("DRAM read", "dram_bytes_read", traffic.dram_bytes_read),
        ("DRAM written", "dram_bytes_write", traffic.dram_bytes_write),
    ):
        yield quantity, value, totals.get(name, 0), DRAM_FLOOR_BYTES


def guess_time(row: Row) -> float:
    """The naive baseline: all sectors over DRAM's bandwidth, or all instructions issued without a gap."""
    roofline = draw_roofline(load_device("h200"))
    sectors = sum(site.sectors + site.sectors_local for site in row.execution.sites)
    return max(
        SECTOR_BYTES * sectors / roofline.ceiling(Level.DRAM).per_ns,
        row.totals["instructions"] / roofline.ceiling(Level.ISSUE).per_ns,
    )
