"""Turns a warp's schedule and the latencies of its loads into when each of many sampled warps ends each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.model.schedule import Schedule, Slot

    Times = npt.NDArray[np.float64]

PASSES_SKIPPED = 4
PASSES_COUNTED = 12
_SCOREBOARDS = 6
_MOST_GROUPS = 9
"""Groups of copies that are remembered: of more, waits are for the oldest of these."""


class Issue(Struct, frozen=True):
    """What issuing one slot does; what would change nothing is left out.

    `waits_for` are the scoreboards that may be set later than now; `sets` and `frees` are scoreboards, with whether
    what they are set to is certainly later than what they are at. `stall_cycles` is an array without axes, which NumPy
    adds in two thirds of the time that it takes for Python's numbers. `copies`, `commits` and `groups_left` are those
    of the slot.
    """

    waits_for: tuple[int, ...]
    is_block_barrier: bool
    load: int | None
    sets: tuple[int, bool] | None
    frees: tuple[int, bool] | None
    stall_cycles: Times
    copies: bool
    commits: bool
    groups_left: int | None


class _Copies(Struct):
    """When the groups of copies of each warp have arrived, the latest last, and those of the open group."""

    groups: list[Times]
    opened: Times


def list_issues(slots: Sequence[Slot]) -> list[Issue]:
    """What a pass does, slot after slot.

    Time only goes on. So a scoreboard that was waited for is clear until it is set again, and what it is set to then is
    later than what it was at.
    """
    issues = []
    loads = 0
    # A pass begins as the one before left the scoreboards: all may be set.
    pending = set(range(_SCOREBOARDS))
    for slot in slots:
        waits_for = tuple(barrier for barrier in slot.waits_for if barrier in pending)
        pending -= set(slot.waits_for)
        sets, frees = slot.sets, slot.frees
        later = sets not in pending
        later_freed = frees not in pending and frees != sets
        pending |= {barrier for barrier in (sets, frees) if barrier is not None}
        issues.append(
            Issue(
                waits_for,
                slot.is_block_barrier,
                loads if slot.load else None,
                None if sets is None else (sets, later),
                None if frees is None else (frees, later_freed),
                np.array(float(slot.stall_cycles)),
                slot.copies,
                slot.commits,
                slot.groups_left,
            )
        )
        loads += slot.load is not None
    return issues


def walk(issues: Sequence[Issue], shape: tuple[int, int], latencies: Sequence[Times], short_cycles: float) -> Times:
    """Let the sampled warps issue their schedule, pass after pass, with these latencies of each load, in cycles.

    `shape` is blocks and warps of a block, a latency float64 [passes, *shape]; `short_cycles` is what all else takes
    that a scoreboard waits for. When each counted pass ends, the one before them first: float64 [passes + 1, *shape].
    """
    now, short = np.zeros(shape), np.array(short_cycles)
    clear = [np.zeros(shape) for _ in range(_SCOREBOARDS)]
    copies = _Copies([], np.zeros(shape))
    ends = []
    for one_pass in range(PASSES_SKIPPED + PASSES_COUNTED):
        if one_pass >= PASSES_SKIPPED:
            ends.append(now)
        for issue in issues:
            result = short if issue.load is None else latencies[issue.load][one_pass]
            now = _issue(issue, _follow_copies(issue, now, copies, result), clear, result, short)
    return np.array([*ends, now])


def _follow_copies(issue: Issue, now: Times, copies: _Copies, arrive_cycles: Times) -> Times:
    """Bring `copies` up to date; when the slot may be issued, as far as it waits for them. Groups arrive in order."""
    if issue.copies:
        copies.opened = np.maximum(copies.opened, now + arrive_cycles)
    elif issue.commits:
        copies.groups = [*copies.groups[1 - _MOST_GROUPS :], copies.opened]
    elif issue.groups_left is not None and len(copies.groups) > issue.groups_left:
        now = np.maximum(now, copies.groups[-1 - issue.groups_left])
    return now


def _issue(issue: Issue, now: Times, clear: list[Times], result_cycles: Times, short_cycles: Times) -> Times:
    """Issue one slot at `now` or later; `clear` (when each scoreboard is) is brought up to date. When the next may."""
    for barrier in issue.waits_for:
        now = np.maximum(now, clear[barrier])
    if issue.is_block_barrier:
        now = np.maximum(now, now.max(axis=-1, keepdims=True))
    for place, cycles in ((issue.sets, result_cycles), (issue.frees, short_cycles)):
        if place is not None:
            barrier, is_later = place
            done = now + cycles
            clear[barrier] = done if is_later else np.maximum(clear[barrier], done)
    return now + issue.stall_cycles


def merge_plain(schedule: Schedule, taken_branch_cycles: int) -> tuple[Slot, ...]:
    """The same schedule with runs of slots that touch no scoreboard, memory or barrier added to the slot before."""
    merged: list[Slot] = []
    for slot in schedule.slots:
        stall = slot.stall_cycles
        if slot.branches and schedule.repeats:
            stall += taken_branch_cycles
        plain = not slot.waits_for and slot.sets is None and slot.frees is None
        plain = plain and slot.load is None and not slot.is_block_barrier
        plain = plain and not slot.commits and slot.groups_left is None
        if plain and merged:
            merged[-1] = replace(merged[-1], stall_cycles=merged[-1].stall_cycles + stall)
        else:
            merged.append(replace(slot, stall_cycles=stall))
    return tuple(merged)
