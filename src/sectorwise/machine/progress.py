"""Turns a batch's state at two moments into which of its groups repeat a loop that changes nothing any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.batch import PATIENCE, Moment
from sectorwise.machine.convergence import State
from sectorwise.machine.taint import ORDERED

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.batch import Batch

_IMPATIENCE = 4
"""Basic blocks that a frame runs right after a spin was seen: others wait for it to be seen again."""


def mark_spins(batch: Batch) -> None:
    """Makes groups wait that have come back to where they were, with every register and all memory as it was.

    Such a loop ends only when something else changes memory: until then it would do the same again. Called between
    frames; compares with a moment that is renewed as the batch goes on.
    """
    moment = batch.moment
    age = np.inf if moment is None else batch.clock - moment.clock
    if moment is not None and age > 0 and _is_unchanged(batch, moment):
        _let_spin(batch, moment)
        batch.moment = None
        batch.patience = _IMPATIENCE
        return
    if age >= max(_IMPATIENCE, batch.patience // 4):
        batch.moment = _take_moment(batch)
        batch.patience = min(PATIENCE, batch.patience + 1)


def wake_spinners(batch: Batch, *, anyway: bool = False) -> bool:
    """Lets groups that spin run again if memory has changed since (or `anyway`); says whether any did."""
    if not batch.some_spin or not (anyway or batch.memory.changes != batch.spun_at):
        return False
    groups = batch.groups
    groups.state[groups.state == State.SPINS] = State.RUNS
    batch.some_spin = False
    batch.moment = None
    return True


def _take_moment(batch: Batch) -> Moment:
    groups, registers = batch.groups, batch.registers
    # From here on a write makes a new array, so that this moment keeps its own.
    registers.private.clear()
    batch.memory.watched = True
    return Moment(
        batch.clock,
        batch.memory.changes,
        groups.pc.copy(),
        groups.mask.copy(),
        groups.state.copy(),
        tuple(registers.values),
        dict(registers.taints),
        batch.arrived.copy(),
        batch.tally.issued.copy(),
    )


def _is_unchanged(batch: Batch, moment: Moment) -> bool:
    groups = batch.groups
    return (
        batch.memory.changes == moment.changes
        and np.array_equal(groups.pc, moment.pc)
        and np.array_equal(groups.mask, moment.mask)
        and np.array_equal(groups.state, moment.state)
        and np.array_equal(batch.arrived, moment.arrived)
        and batch.registers.taints.keys() == moment.taints.keys()
        and all(_is_same(old, new) for old, new in zip(moment.values, batch.registers.values, strict=True))
        and all(_is_same(level, batch.registers.taints[slot]) for slot, level in moment.taints.items())
    )


def _is_same(old: npt.NDArray[np.generic], new: npt.NDArray[np.generic]) -> bool:
    return old is new or bool((old == new).all())


def _let_spin(batch: Batch, moment: Moment) -> None:
    """Groups that ran since the moment spin. How often they did so depends on when the others run."""
    groups = batch.groups
    ran = (groups.state == State.RUNS) & (groups.ran > moment.clock)
    groups.state[ran] = State.SPINS
    if not batch.some_spin:
        # Of those that wait already, what has changed since they began still has to wake them.
        batch.some_spin, batch.spun_at = True, batch.memory.changes
    batch.memory.watched = True
    for index in np.flatnonzero(batch.tally.issued != moment.issued):
        counter = batch.tally.counters.get(int(index))
        if counter is not None:
            counter.doubts |= ORDERED
