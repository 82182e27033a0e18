"""Turns the measured launches and the models into the table of errors that docs/model-errors.md publishes.

Run from the repository's root: `python -m tools.model_errors` prints the table, `--write` puts it into the document.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.analyze import bind_launch
from sectorwise.binary.cubin import read_cubin
from sectorwise.device import load_device
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.choose import choose_frontend
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import Certainty, Execution, Site
from sectorwise.machine.forms import access_of
from sectorwise.model.caches.lines import SECTOR_BYTES
from sectorwise.model.occupancy import Occupancy, occupancy
from sectorwise.model.roofline import Level, draw_roofline
from sectorwise.model.time import estimate_time
from sectorwise.model.traffic import Traffic, estimate_traffic, open_window_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.binding import BoundLaunch
    from sectorwise.model.caches.window import Window

ROWS = Path("tests/measured/h200")
DOCUMENT = Path("docs/model-errors.md")
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

L1_FLOOR_SHARE = 0.02
L2_FLOOR_SECTORS = 5_000
DRAM_FLOOR_BYTES = 4_000_000
MEDIAN, WORST = 0.05, 0.20
GAVE_CONSTANTS = frozenset(
    {
        "k_ld_f32_gather",
        "k_mm_tile16",
        "k_mm_tile32",
        "t_chunk8",
        "t_aos48_all",
        "t_sum_block",
        "t_read_stride2",
        "t_tr_naive",
        "t_gather_hash",
        "t_read_stride32",
        "k_red_same",
        "t_tr_pad_u16",
    }
)
"""Launches from which a constant of a device file was read off."""

_HEAD = "| quantity | launches | above the floor | median error | of those above | worst | |"
_RULE = "|---|---|---|---|---|---|---|"
QUANTITIES = ("L1 hits", "L2 sectors", "DRAM read", "DRAM written", "time")
TIME_FROM_NS = 20_000
GOALS = {"time": (0.12, 0.35)}


@dataclass(frozen=True, slots=True)
class Judged:
    """One quantity of one launch: predicted, measured, and |p - m| / max(m, floor)."""

    family: str
    row: str
    quantity: str
    predicted: float
    measured: float
    floor: float
    baseline: float | None = None

    @property
    def error(self) -> float:
        """The error, by the definition of the issue."""
        return abs(self.predicted - self.measured) / max(self.measured, self.floor, 1.0)


def judge_family(family: str, names: set[str] | None = None) -> Iterator[Judged]:
    """All quantities of the launches of a family, or of those named."""
    cases = {case["name"]: case for case in json.loads((ROWS / f"{family}.json").read_text())["cases"]}
    path = ROWS / f"{family}.sm_90.cubin"
    device = load_device("h200")
    kernels = tuple(dict.fromkeys(case["kernel"] for case in cases.values()))
    compilation = choose_frontend(path).compile(path, CompileRequest("sm_90", (), (), kernels))
    cubin = read_cubin(compilation.cubin, path.as_posix())
    for launch in read_launch_file(ROWS / f"{family}.json").cases:
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
        execution, window = follow(bound, cases[name], held)
        traffic = estimate_traffic(bound, execution, held, window)
        if traffic is not None:
            totals = cases[name]["measured"]["totals"]
            yield from judge(family, name, totals, traffic)
            if totals.get("time_ns", 0) > TIME_FROM_NS:
                time = estimate_time(bound, execution, held, traffic)
                yield Judged(family, name, "time", time.estimate_ns, totals["time_ns"], 0.0, guess_time(totals))


def guess_time(totals: dict[str, int]) -> float:
    """The naive baseline: all sectors over DRAM's bandwidth, or all instructions issued without a gap."""
    roofline = draw_roofline(load_device("h200"))
    sectors = totals.get("l2_theoretical_sectors", 0) + totals.get("l2_theoretical_sectors_local", 0)
    return max(
        SECTOR_BYTES * sectors / roofline.ceiling(Level.DRAM).per_ns,
        totals["instructions"] / roofline.ceiling(Level.ISSUE).per_ns,
    )


def follow(bound: BoundLaunch, case: dict[str, Any], held: Occupancy) -> tuple[Execution, Window]:
    """The measured counts as an execution, its issue counts in the proportions of the blocks that are followed."""
    execution = take_counts(bound, case)
    window = open_window_of(bound, execution, held)
    scale = case["measured"]["totals"]["instructions"] / window.issued.sum()
    issued = np.rint(window.issued * scale).astype(np.int64)
    return replace(execution, issued=issued, lanes=32 * issued), window


def take_counts(bound: BoundLaunch, case: dict[str, Any]) -> Execution:
    """The counts that were measured, as an execution: another test holds that executions count the same."""
    found = [(each, access) for each in bound.kernel.instructions if (access := access_of(each)) is not None]
    issued = np.zeros(len(bound.kernel.instructions), np.int64)
    sites = []
    for listed in case["measured"]["memory_instructions"]:
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
    issued[0] += case["measured"]["totals"]["instructions"] - issued.sum()
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


def judge(family: str, row: str, totals: dict[str, int], traffic: Traffic) -> Iterator[Judged]:
    """The quantities that the row recorded; absent ones were zero or not recorded, and only the zeros are judged."""
    loads = totals.get("global_load_sectors", 0)
    floor = L1_FLOOR_SHARE * loads
    if "global_load_sectors_hit" in totals or "l1_sectors_filled" in totals:
        hits = max(0, totals.get("global_load_sectors_hit", loads - totals.get("l1_sectors_filled", 0)))
        yield Judged(family, row, "L1 hits", traffic.l1_hit_sectors, hits, floor)
    elif loads:
        # Rows that recorded neither had no hit at all.
        yield Judged(family, row, "L1 hits", traffic.l1_hit_sectors, 0, floor)
    measured = totals.get("l2_sectors_read_from_sm")
    predicted = traffic.l2_sectors_read_from_sm
    if measured is None:
        measured, predicted = totals.get("l2_sectors_read", 0), traffic.l2_sectors_read
    if measured > L2_FLOOR_SECTORS:
        yield Judged(family, row, "L2 sectors", predicted, measured, L2_FLOOR_SECTORS)
    for quantity, name, value in (
        ("DRAM read", "dram_bytes_read", traffic.dram_bytes_read),
        ("DRAM written", "dram_bytes_write", traffic.dram_bytes_write),
    ):
        yield Judged(family, row, quantity, value, totals.get(name, 0), DRAM_FLOOR_BYTES)


def list_families() -> list[str]:
    """Families whose measured cubins are here."""
    return sorted(path.name.removesuffix(".sm_90.cubin") for path in ROWS.glob("*.sm_90.cubin"))


def write_table(judged: list[Judged]) -> str:
    """The summary, what it is without the launches that gave constants, and every row above the floors."""
    lines = [_HEAD, _RULE]
    lines += [_summarise(quantity, quantity, judged) for quantity in QUANTITIES]
    apart = [each for each in judged if each.row not in GAVE_CONSTANTS]
    lines += [
        _summarise(f"{quantity}, without the launches that gave constants", quantity, apart) for quantity in QUANTITIES
    ]
    lines += ["", *_compare_times([each for each in judged if each.quantity == "time"])]
    lines += ["", "Rows above the floors, worst first:", ""]
    lines += ["| family | launch | quantity | predicted | measured | error |", "|---|---|---|---|---|---|"]
    large = [each for each in judged if each.measured > each.floor or each.error > WORST]
    for each in sorted(large, key=lambda one: (-round(one.error, 4), one.row, one.quantity)):
        lines.append(
            f"| {each.family} | {each.row} | {each.quantity} | {each.predicted:,.0f} | {each.measured:,.0f} "
            f"| {100 * each.error:.1f} % |"
        )
    return "\n".join(lines)


def _summarise(name: str, quantity: str, judged: list[Judged]) -> str:
    rows = [each for each in judged if each.quantity == quantity]
    if not rows:
        return f"| {name} | 0 | 0 | - | - | - | - |"
    large = [each.error for each in rows if each.measured > each.floor]
    errors = [each.error for each in rows]
    worst = GOALS.get(quantity, (MEDIAN, WORST))[1]
    within = sum(error <= worst for error in errors)
    typical = f"{100 * median(large):.1f} %" if large else "-"
    return (
        f"| {name} | {len(rows)} | {len(large)} | {100 * median(errors):.1f} % | {typical} | {100 * max(errors):.0f} % "
        f"| {within} of {len(rows)} within {100 * worst:.0f} % |"
    )


def _compare_times(times: list[Judged]) -> list[str]:
    """Rank correlation, and the naive guess beside the estimate."""
    if len(times) < 3:
        return []
    guesses = [abs((each.baseline or 0.0) - each.measured) / each.measured for each in times]
    own = correlate_ranks([each.predicted for each in times], [each.measured for each in times])
    naive = median(guesses)
    text = f"Time: rank correlation {own:.3f}. The naive guess has a median error of {100 * naive:.0f} %, "
    text += f"{naive / median(each.error for each in times):.1f} times the estimate's, "
    text += f"and a worst of {100 * max(guesses):.0f} %."
    return [text]


def correlate_ranks(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation."""
    ranks = [np.argsort(np.argsort(np.asarray(values))).astype(float) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def put_into(document: str, table: str) -> str:
    """The document with its table replaced."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    """Judge all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    judged = []
    for family in options.families or list_families():
        judged += list(judge_family(family))
        print(family, len(judged), file=sys.stderr)
    table = write_table(judged)
    if options.write:
        DOCUMENT.write_text(put_into(DOCUMENT.read_text(), table))
    else:
        print(table)


if __name__ == "__main__":
    main()
