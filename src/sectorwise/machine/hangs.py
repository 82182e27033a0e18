"""Turns a batch that cannot go on, or does not end, into sentences that say where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.patterns import list_distinct
from sectorwise.machine.convergence import State
from sectorwise.machine.reasons import explain_unknown

if TYPE_CHECKING:
    from sectorwise.machine.batch import Batch, Tally
    from sectorwise.machine.program import BasicBlock


def describe_hang(batch: Batch, blocks_not_begun: int) -> None:
    """Says where everyone waits when nobody can go on, as limitations.

    `blocks_not_begun` of the launch find no room on the device before these end.
    """
    tally, groups = batch.tally, batch.groups
    behind = "the launch hangs"
    if blocks_not_begun:
        behind = f"the launch hangs unless one of the last {blocks_not_begun} blocks, which do not fit beside, ends it"
    for place in list_distinct(groups.pc):
        here = groups.pc == place
        warps = len(list_distinct(groups.warp[here]))
        count = f"{warps} warp{'s' if warps > 1 else ''}"
        states = groups.state[here]
        if tally.bound.kernel.instructions[min(place, len(tally.bound.kernel.instructions) - 1)].opcode == "SYNCS":
            said = f"{count} wait{'' if warps > 1 else 's'} here for an mbarrier whose phase does not end: {behind}"
            said += _explain_conditions(tally)
        elif (states == State.SPINS).any():
            said = f"{count} repeat{'' if warps > 1 else 's'} a loop here in which nothing changes any more: {behind}"
            said += _explain_conditions(tally)
        else:
            what = "the block's barrier" if (states == State.BARRIER).any() else "lanes that never come"
            what = "the cluster's barrier" if (states == State.CLUSTER).any() else what
            said = f"{count} wait{'' if warps > 1 else 's'} here for {what}: the launch hangs"
        tally.limitations.setdefault((int(place), said), None)


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
    if not tally.unknown_conditions:
        return ""
    because = explain_unknown(tally.bound.kernel, max(tally.unknown_conditions), tally.origins)
    return f" It may wait for something that is not known here: {because}."
