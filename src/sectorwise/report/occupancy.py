"""Turns an occupancy, and what would change it, into text for a terminal or a JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sectorwise.model.cliffs import find_cliffs, trace_occupancy
from sectorwise.model.occupancy import Limiter
from sectorwise.report.json import to_plain
from sectorwise.report.page import Role, paint, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.device import DeviceSpec
    from sectorwise.model.cliffs import Cliffs, Step
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.trials import RegisterTrial
    from sectorwise.model.waves import Waves
    from sectorwise.report.page import Page

SCHEMA: Final = "sectorwise.occupancy/1"

_NAMES: Final = {
    Limiter.WARPS: "warps",
    Limiter.REGISTERS: "registers",
    Limiter.SHARED: "shared memory",
    Limiter.BLOCKS: "the number of blocks",
    Limiter.BARRIERS: "barriers",
}
_BAR_COLUMNS: Final = 32


def render(found: Occupancy, device: DeviceSpec, page: Page, waves: Waves | None = None) -> str:
    """The report on one block size, for people."""
    lines = [*_render_head(found, device, page), "", *_render_limits(found, page), "", *_render_split(found)]
    lines += ["", *_render_cliffs(found), "", *_render_curve(found, page)]
    if waves is not None:
        lines += ["", *_render_waves(waves, page)]
        if found.cluster_blocks > 1:
            late = f"clusters of {found.cluster_blocks} start whole, so some of them later"
            lines.append(f"    counted as if blocks started one by one; {late}")
    return "\n".join(tidy(page, line) if not page.color else line for line in lines) + "\n"


def render_json(found: Occupancy, waves: Waves | None = None) -> str:
    """The same for programs: limits, cliffs, both curves, and the waves where the grid is known."""
    document = {
        "schema": SCHEMA,
        "occupancy": {**_plain_fields(found), "limiter": found.limiter, "theoretical_pct": found.theoretical_pct},
        "cliffs": {str(resource): find_cliffs(found, resource) for resource in (Limiter.REGISTERS, Limiter.SHARED)},
        "curves": {
            str(resource): trace_occupancy(found, resource)
            for resource in (Limiter.REGISTERS, Limiter.SHARED, Limiter.WARPS)
        },
        "waves": None
        if waves is None
        else {**_plain_fields(waves), "waves": waves.waves, "last_wave_pct": waves.last_wave_pct},
    }
    return json.dumps(to_plain(document), indent=2, allow_nan=False) + "\n"


def render_trials(trials: Sequence[RegisterTrial], device: DeviceSpec, page: Page) -> str:
    """What each register limit buys and costs, a line each."""
    first = trials[0]
    counted = first.totals is not None
    head = f"{'limit':<12}{'registers':>11}{'local bytes':>13}{'LDL/STL':>9}{'blocks':>8}{'occupancy':>11}  limited by"
    if counted:
        head += f"{'instructions':>14}{'local sectors':>15}{'global sectors':>16}{'wavefronts':>13}"
    title = f"{first.kernel}, {first.occupancy.threads_per_block} threads a block, on {device.name} ({device.id})"
    lines = [paint(page, Role.TITLE, title), "", head]
    for trial in trials:
        held = trial.occupancy
        line = f"{_name_limit(trial):<12}{trial.registers_per_thread:>11}"
        line += f"{trial.local_bytes_per_thread:>13,}{f'{trial.local_loads}/{trial.local_stores}':>9}"
        line += f"{held.blocks_per_sm:>8}{f'{held.theoretical_pct:.4g} %':>11}  {held.limiter:<10}"
        if trial.totals is not None:
            totals = trial.totals
            line += f"{totals.instructions:>14,}{_show(totals.l2_theoretical_sectors_local):>15}"
            line += f"{_show(totals.l2_theoretical_sectors):>16}{_show(totals.shared_wavefronts):>13}"
        lines.append(line)
    lines += _explain_limits(trials)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _name_limit(trial: RegisterTrial) -> str:
    if trial.min_blocks is not None:
        blocks = "block" if trial.min_blocks == 1 else "blocks"
        return f"{trial.min_blocks} {blocks}"
    return "none" if trial.limit is None else str(trial.limit)


def _explain_limits(trials: Sequence[RegisterTrial]) -> Iterator[str]:
    """What the names of limits stand for where that is not plain, and which the compiler did not keep."""
    if any(trial.min_blocks is not None for trial in trials):
        threads = trials[0].occupancy.threads_per_block
        yield f"`2 blocks`: compiled with __launch_bounds__({threads}, 2) in place of what the kernel has"
    if limits := [_name_limit(trial) for trial in trials if trial.ignored and trial.limit is not None]:
        yield f"not kept by the compiler: {', '.join(limits)}; bounds of the source come first, and it has a least"
    if bounds := [_name_limit(trial) for trial in trials if trial.ignored and trial.min_blocks is not None]:
        yield f"not kept by the compiler: {', '.join(bounds)}; an SM does not hold so many"


def render_trials_json(trials: Sequence[RegisterTrial]) -> str:
    """The same for programs."""
    plain = [
        {
            **_plain_fields(trial),
            "ignored": trial.ignored,
            "occupancy": {
                **_plain_fields(trial.occupancy),
                "limiter": trial.occupancy.limiter,
                "theoretical_pct": trial.occupancy.theoretical_pct,
            },
        }
        for trial in trials
    ]
    return json.dumps(to_plain({"schema": SCHEMA, "trials": plain}), indent=2, allow_nan=False) + "\n"


def _plain_fields(data: object) -> dict[str, object]:
    plain = to_plain(data)
    return dict(plain) if isinstance(plain, dict) else {}


def _show(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _render_head(found: Occupancy, device: DeviceSpec, page: Page) -> Iterator[str]:
    need = f"{found.threads_per_block} threads, {found.registers_per_thread} registers a thread"
    need += f", {found.shared_bytes_per_block:,} bytes of shared memory"
    yield paint(page, Role.TITLE, f"A block of {need}")
    yield paint(page, Role.QUIET, f"on {device.name} ({device.id})")
    yield ""
    blocks = "1 block" if found.blocks_per_sm == 1 else f"{found.blocks_per_sm} blocks"
    limiters = " and ".join(_NAMES[limiter] for limiter in found.limiters)
    yield (
        f"  {found.theoretical_pct:.4g} % occupancy: {blocks} an SM, {found.warps_per_sm} of "
        f"{found.max_warps_per_sm} warps, limited by {limiters}"
    )


def _render_limits(found: Occupancy, page: Page) -> Iterator[str]:
    limits = (
        (Limiter.WARPS, found.limit_warps),
        (Limiter.REGISTERS, found.limit_registers),
        (Limiter.SHARED, found.limit_shared),
        (Limiter.BLOCKS, found.limit_blocks),
        (Limiter.BARRIERS, found.limit_barriers),
    )
    yield "  blocks an SM that each resource allows"
    for limiter, limit in limits:
        if limit is None:
            continue
        note = ""
        if limiter is Limiter.SHARED and found.limit_shared_max_carveout != limit:
            note = f"  ({found.limit_shared_max_carveout} at the largest configuration)"
        name = "blocks" if limiter is Limiter.BLOCKS else _NAMES[limiter]
        line = f"    {name:<15}{limit:>5}{note}"
        yield paint(page, Role.FAIR, line + "  <- limits") if limiter in found.limiters else line


def _render_split(found: Occupancy) -> Iterator[str]:
    yield (
        f"  the driver gives shared memory {found.shared_config_bytes // 1024} KiB of the SM, "
        f"and L1 the other {found.l1_bytes // 1024} KiB"
    )
    yield f"  a block takes {found.shared_allocated_bytes:,} bytes of it"
    if "shared_config_bytes" in found.assumed:
        yield "  (assumed: the driver's choice was measured on compute capability 9.0 only)"
    if found.cluster_blocks > 1:
        yield f"  clusters of {found.cluster_blocks} blocks: what they hold is an upper bound; how many SMs of a GPC"
        yield "  are free only the driver knows (cudaOccupancyMaxActiveClusters)"


def _render_cliffs(found: Occupancy) -> Iterator[str]:
    yield "  the nearest cliffs, all else unchanged"
    for resource, unit in ((Limiter.REGISTERS, "registers a thread"), (Limiter.SHARED, "bytes of shared memory")):
        yield from _render_cliff(find_cliffs(found, resource), unit)


def _render_cliff(cliffs: Cliffs, unit: str) -> Iterator[str]:
    if cliffs.gain is None:
        yield f"    fewer {unit}: no more blocks"
    else:
        yield f"    at most {cliffs.gain.last:,} {unit}: {_count(cliffs.gain)}"
    if cliffs.loss is None:
        yield f"    more {unit}: no fewer blocks"
    else:
        yield f"    from {cliffs.loss.first:,} {unit}: {_count(cliffs.loss)}"


def _count(step: Step) -> str:
    if step.blocks_per_sm == 0:
        return "no block fits"
    return f"{step.blocks_per_sm} {'block' if step.blocks_per_sm == 1 else 'blocks'} an SM"


def _render_curve(found: Occupancy, page: Page) -> Iterator[str]:
    yield "  occupancy over registers a thread"
    for step in trace_occupancy(found, Limiter.REGISTERS):
        share = step.warps_per_sm / found.max_warps_per_sm
        bar = "#" * round(share * _BAR_COLUMNS)
        here = step.first <= found.registers_per_thread <= step.last
        line = f"    {step.first:>3} to {step.last:<3} {100 * share:>6.4g} %  {bar}{'  <- here' if here else ''}"
        yield paint(page, Role.TITLE, line) if here else line


def _render_waves(waves: Waves, page: Page) -> Iterator[str]:
    idle = waves.idle_sms_last_wave
    without = f"{idle} of {waves.sm_count} SMs have no block" if idle else "every SM has a block"
    if waves.rounds == 1:
        yield f"  a grid of {waves.blocks:,} fits in one wave of {waves.blocks_per_wave:,}: {without}"
        return
    yield f"  a grid of {waves.blocks:,} makes {waves.waves:.2f} waves of {waves.blocks_per_wave:,}"
    line = f"    the last wave is {waves.last_wave_pct:.3g} % full: {without} of it"
    slow = waves.slowdown_if_latency_bound
    yield paint(page, Role.BAD, line) if slow > 1.2 else line
    yield f"    {slow:.2f} times the time of even work if a block takes as long alone as beside others,"
    yield f"    {waves.slowdown_if_throughput_bound:.2f} times if the blocks of an SM share its throughput"
