"""Turns a batch that cannot go on, or does not end, into what says where it is, and whether that is for sure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.patterns import list_distinct
from sectorwise.machine.convergence import State
from sectorwise.machine.execution import Hang, Waiting
from sectorwise.machine.products import PRODUCTS
from sectorwise.machine.reasons import explain_unknown
from sectorwise.machine.taint import INEXACT

if TYPE_CHECKING:
    from sectorwise.machine.batch import Batch, Tally
    from sectorwise.machine.convergence import Groups
    from sectorwise.machine.program import BasicBlock

_WORDS: Final = {
    Waiting.LOOP: ("repeat", "a loop here in which nothing changes any more"),
    Waiting.MBARRIER: ("wait", "here for an mbarrier whose phase does not end"),
    Waiting.BLOCK_BARRIER: ("wait", "here for the block's barrier"),
    Waiting.CLUSTER_BARRIER: ("wait", "here for the cluster's barrier"),
    Waiting.LANES: ("wait", "here for lanes that never come"),
}
_ESTIMATES: Final = (
    "if what led there is as assumed: contents that are not given, memory that nothing has written (taken as zeros), "
    "or results that are not exact to the last bit"
)


def describe_hang(batch: Batch, not_begun: int = 0, *, is_full: bool = True) -> None:
    """Says where everyone waits when nobody can go on: as hangs, or as limitations where what is unknown may end it.

    `not_begun` blocks of the launch have not begun, since the device `is_full`, or else for want of memory here.
    """
    tally, groups = batch.tally, batch.groups
    unknown = _explain_conditions(tally)
    if not_begun and not is_full:
        unknown = f" One of the last {not_begun} blocks may end it: for want of memory they were not run beside these."
    doubts = []
    if not_begun:
        doubts.append(f"unless one of the last {not_begun} blocks, which do not fit beside, ends it")
    if (batch.ways & INEXACT).any() or any(counter.doubts & INEXACT for counter in tally.counters.values()):
        doubts.append(_ESTIMATES)
    for place in list_distinct(groups.pc):
        here = groups.pc == place
        waiting = _find_cause(tally, groups, place)
        warps = len(list_distinct(groups.warp[here]))
        if unknown:
            tally.limitations.setdefault(
                (int(place), f"{_write_hang(waiting, warps)}, as far as known.{unknown}"), None
            )
        else:
            key = int(place), waiting, ", and ".join(doubts)
            tally.hangs[key] = tally.hangs.get(key, 0) + warps


def list_hangs(tally: Tally) -> tuple[Hang, ...]:
    """Where warps of the launch wait for ever, in program order."""
    return tuple(
        Hang(place, waiting, warps, f"{_write_hang(waiting, warps)}{doubt and f' {doubt}'}", is_certain=not doubt)
        for (place, waiting, doubt), warps in sorted(tally.hangs.items())
    )


def _find_cause(tally: Tally, groups: Groups, place: int) -> Waiting:
    instructions, states = tally.bound.kernel.instructions, groups.state[groups.pc == place]
    if instructions[min(place, len(instructions) - 1)].opcode == "SYNCS":
        return Waiting.MBARRIER
    for state, waiting in (
        (State.SPINS, Waiting.LOOP),
        (State.CLUSTER, Waiting.CLUSTER_BARRIER),
        (State.BARRIER, Waiting.BLOCK_BARRIER),
    ):
        if (states == state).any():
            return waiting
    return Waiting.LANES


def _write_hang(waiting: Waiting, warps: int) -> str:
    verb, what = _WORDS[waiting]
    return (
        f"{warps:,} warps {verb} {what}: the launch hangs" if warps > 1 else f"1 warp {verb}s {what}: the launch hangs"
    )


def describe_endless(tally: Tally, block: BasicBlock) -> str:
    """The text of the error for a warp that ran past the step limit."""
    instruction = tally.bound.kernel.instructions[block.start]
    location = instruction.location
    where = f"{location.file}:{location.line}" if location is not None else f"offset 0x{instruction.offset:04x}"
    limit = f"{tally.options.step_limit:,}"
    ran = (
        f"{tally.bound.kernel.name}: a warp ran more than {limit} instructions and was still at {where} "
        f"({instruction.text})."
    )
    return f"{ran}{_explain_conditions(tally)} If the kernel is meant to run that long, raise the step limit."


def _explain_conditions(tally: Tally) -> str:
    """What may end a wait after all: a branch or an access that is not known, or what was stepped over."""
    instructions = tally.bound.kernel.instructions
    unknown = tally.unknown_conditions or {index for index, counter in tally.counters.items() if counter.unknown}
    if unknown:
        because = explain_unknown(tally.bound.kernel, max(unknown), tally.origins)
        return f" It may wait for something that is not known here: {because}."
    for place, because in tally.limitations:
        # Products give values, which nobody waits for unless a branch says so.
        if (place, because) not in tally.uncomputed and instructions[place].opcode not in PRODUCTS:
            return f" It may wait for what was not followed here: {because}."
    return ""
