"""Turns a kernel and its arguments into the parts of memory that each instruction may load from and store to.

In global memory the parts are buffers. An address reaches the buffers whose pointers it was made from, as C++ has it;
machine code sees where one goes elsewhere, and the launch runs again without this (`native_engine.py`).

The definitions of the instructions are run on the origins of values, the buffers that a value may point into, to a
fixed point along the flow graph; what memory holds has the origins of all that it holds at the start or that was ever
stored to that part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from sectorwise.binary.ir import ZERO_REGISTER
from sectorwise.counting.request import Space
from sectorwise.launch.contents import materialise
from sectorwise.machine.native.flow import sees_others
from sectorwise.machine.registers import UNIFORM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.counting.request import Access
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step

Part = Space | int
"""A part of memory: a space, in global memory the number of a buffer; `Space.GLOBAL` is what is in no buffer."""

Origins = frozenset[int]
"""Numbers of the buffers that a value may point into."""

_NONE: Origins = frozenset()


class Reach(Struct, frozen=True):
    """The parts of memory that instructions, by index, may load from and store to; none where there is no entry."""

    loads: Mapping[int, frozenset[Part]]
    stores: Mapping[int, frozenset[Part]]

    def loaded(self, index: int) -> frozenset[Part]:
        """What an instruction may load from."""
        return self.loads.get(index, frozenset())

    def stored(self, index: int) -> frozenset[Part]:
        """What an instruction may store to."""
        return self.stores.get(index, frozenset())


def reach_spaces(flow: Flow, bound: BoundLaunch) -> Reach:
    """What instructions may reach as far as their forms tell: whole spaces."""

    def list_parts(choose: Callable[[Marks], Space | None]) -> dict[int, frozenset[Part]]:
        chosen = ((index, choose(marks)) for index, marks in flow.marks.items())
        return {index: parts_of(space, bound) for index, space in chosen if space is not None}

    return Reach(list_parts(lambda marks: marks.loads), list_parts(lambda marks: marks.stores))


def parts_of(space: Space, bound: BoundLaunch) -> frozenset[Part]:
    """All parts of a space."""
    buffers = range(len(bound.allocations))
    match space:
        case Space.GENERIC:
            return frozenset((Space.SHARED, Space.LOCAL, Space.GLOBAL, *buffers))
        case Space.GLOBAL:
            return frozenset((Space.GLOBAL, *buffers))
        case _:
            return frozenset((space,))


def find_reach(flow: Flow, bound: BoundLaunch) -> Reach:
    """What instructions may reach, by the origins of their addresses."""
    port = OriginPort(bound, _find_pointers(bound), _find_held(bound))
    while True:
        before = port.memory.copy(), port.everywhere.copy()
        _follow(flow, port)
        if before == (port.memory, port.everywhere):
            return Reach(port.loads, port.stores)


def _find_pointers(bound: BoundLaunch) -> dict[tuple[int, int], Origins]:
    """Words of constant banks, by bank and offset, that are halves of pointers to buffers."""
    found: dict[tuple[int, int], Origins] = {}
    for bank, content in bound.banks.items():
        words = np.frombuffer(content[: len(content) // 4 * 4], "<u4").astype(np.uint64)
        values = words[:-1] | words[1:] << np.uint64(32)
        for number, allocation in enumerate(bound.allocations):
            for place in np.flatnonzero(_points_into(values, allocation)).tolist():
                for offset in (4 * place, 4 * place + 4):
                    found[bank, offset] = found.get((bank, offset), _NONE) | {number}
    return found


def _find_held(bound: BoundLaunch) -> dict[Part, Origins]:
    """Buffers that the pointers which a buffer holds at the start point to; patterns of numbers hold none."""
    found: dict[Part, Origins] = {}
    for holder, holding in enumerate(bound.allocations):
        if holding.buffer.contents.kind not in {"array", "file"}:
            continue
        content = materialise(holding.buffer).reshape(-1).view(np.uint8)
        values = content[: len(content) // 8 * 8].view("<u8")
        pointed = frozenset(number for number, each in enumerate(bound.allocations) if _points_into(values, each).any())
        if pointed:
            found[holder] = pointed
    return found


def _points_into(values: npt.NDArray[np.uint64], allocation: Allocation) -> npt.NDArray[np.bool_]:
    first, last = np.uint64(allocation.base), np.uint64(allocation.base + allocation.size_bytes)
    pointing: npt.NDArray[np.bool_] = (values >= first) & (values <= last)
    return pointing


class OriginAlgebra:
    """An algebra over origins: a result may point to where any of its operands may.

    Numbers that stand in an instruction are kept as they are, for places in constant banks.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any operation of the algebra."""
        match name:
            case "word":
                return lambda value: value
            case "add":
                return lambda a, b: a + b if isinstance(a, int) and isinstance(b, int) else _join((a, b))
            case "multiply_matrices":
                return lambda a, b, c, _form: [_join((*a, *b, *c))] * len(c)
            case _:
                return lambda *values, **options: _join((*values, *options.values()))


def _join(values: Iterable[object]) -> Origins:
    found: set[int] = set()
    for value in values:
        if isinstance(value, frozenset):
            found |= value
        elif isinstance(value, list | tuple):
            found |= _join(value)
    return frozenset(found)


class OriginPort(Struct):
    """A port whose values are origins, and which notes what instructions reach.

    `pointers` are the words of constant banks that point to buffers; `memory` is what parts of memory hold,
    `everywhere` what a register holds anywhere in the kernel, which is what other lanes may show of it.
    """

    bound: BoundLaunch
    pointers: Mapping[tuple[int, int], Origins]
    memory: dict[Part, Origins] = field(default_factory=dict)
    everywhere: dict[int, Origins] = field(default_factory=dict)
    loads: dict[int, frozenset[Part]] = field(default_factory=dict)
    stores: dict[int, frozenset[Part]] = field(default_factory=dict)
    registers: dict[int, Origins] = field(default_factory=dict)
    index: int = 0
    is_guarded: bool = False
    sees_others: bool = False
    algebra: Any = field(default_factory=OriginAlgebra)

    def begin(self, step: Step) -> None:
        """The instruction that reads and writes from now on."""
        self.index = step.instruction.index
        self.is_guarded, self.sees_others = step.guard_slot is not None, sees_others(step)

    def write_slot(self, slot: int, value: Origins | int) -> None:
        """Sets a register; where a guard may not hold, what it held stays too."""
        origins = _join((value,))
        kept = self.registers.get(slot, _NONE) if self.is_guarded else _NONE
        self.registers[slot] = origins | kept
        self.everywhere[slot] = self.everywhere.get(slot, _NONE) | origins

    def read_register(self, index: int, *, uniform: bool = False) -> Origins | int:
        """Origins of a register."""
        if index == ZERO_REGISTER:
            return 0
        held = self.everywhere if self.sees_others else self.registers
        return held.get(index + UNIFORM if uniform else index, _NONE)

    def read_predicate(self, index: int, *, uniform: bool = False) -> Origins:
        """A choice points nowhere: what is chosen does."""
        del index, uniform
        return _NONE

    def write_register(self, index: int, value: Origins | int, *, uniform: bool = False) -> None:
        """Sets the origins of a register."""
        if index != ZERO_REGISTER:
            self.write_slot(index + UNIFORM if uniform else index, value)

    def write_predicate(self, index: int, value: Origins, *, uniform: bool = False) -> None:
        """Predicates point nowhere."""

    def read_constant(self, bank: int, offset: Origins | int) -> Origins:
        """The buffer that a word points to; where the place is not known, any that the bank points to."""
        if isinstance(offset, int):
            return self.pointers.get((bank, offset & ~3), _NONE)
        return _join(origins for (other, _), origins in self.pointers.items() if other == bank)

    def read_special(self, name: str) -> Origins:
        """Special registers point to no buffer."""
        del name
        return _NONE

    def active(self) -> Origins:
        """Lanes point nowhere."""
        return _NONE

    def mark_inexact(self) -> None:
        """No matter."""

    def mark_unknown(self, reason: str) -> None:
        """No matter: an address that is not known ends machine code."""
        del reason

    def load(self, access: Access, address: Origins) -> Sequence[Origins]:
        """What the parts that it may read hold."""
        return [self._load(access.space, address)] * max(1, access.width_bytes // 4)

    def store(self, access: Access, address: Origins, words: Sequence[Origins]) -> None:
        """The parts that it may write hold the words too."""
        self._store(access.space, address, _join(words))

    def atomic(
        self,
        access: Access,
        address: Origins,
        update: Callable[[Any, Origins], Origins],
        words: int,
        *,
        inexact: bool = False,
    ) -> Sequence[Origins]:
        """A load and a store of what is made of it."""
        del inexact
        old = self._load(access.space, address)
        self._store(access.space, address, _join((update(self.algebra, old),)))
        return [old] * words

    def atomic_words(
        self, access: Access, address: Origins, updates: Sequence[Callable[[Any, Origins], Origins]]
    ) -> Sequence[Origins]:
        """As `atomic`."""
        return [self.atomic(access, address, update, 1)[0] for update in updates]

    def copy_async(
        self, access: Access, shared_address: Origins, global_address: Origins, source_bytes: Origins | None
    ) -> None:
        """A load from global memory, a store to shared memory."""
        del access, source_bytes
        self._store(Space.SHARED, shared_address, self._load(Space.GLOBAL, global_address))

    def load_matrix(self, access: Access, address: Origins) -> Sequence[Origins]:
        """As `load`."""
        return [self._load(access.space, address)] * access.matrices

    def store_matrix(self, access: Access, address: Origins, words: Sequence[Origins]) -> None:
        """As `store`."""
        self.store(access, address, words)

    def copy_apart(self, marks: Marks) -> None:
        """What instructions without a definition leave in registers points nowhere; they may reach whole spaces."""
        for slot in marks.writes:
            self.write_slot(slot, _NONE)
        for space, reached in ((marks.loads, self.loads), (marks.stores, self.stores)):
            if space is not None:
                reached[self.index] = parts_of(space, self.bound)

    def _load(self, space: Space, address: Origins) -> Origins:
        parts = self._find_parts(space, address)
        self.loads[self.index] = self.loads.get(self.index, frozenset()) | parts
        return _join(self.memory.get(part, _NONE) for part in parts)

    def _store(self, space: Space, address: Origins, origins: Origins) -> None:
        parts = self._find_parts(space, address)
        self.stores[self.index] = self.stores.get(self.index, frozenset()) | parts
        for part in parts:
            self.memory[part] = self.memory.get(part, _NONE) | origins

    def _find_parts(self, space: Space, address: Origins) -> frozenset[Part]:
        """The buffers that a global address points into; all of the space where it is not known to point anywhere."""
        pointed = _join((address,)) if space is Space.GLOBAL else _NONE
        return frozenset(pointed) if pointed else parts_of(space, self.bound)


def _follow(flow: Flow, port: OriginPort) -> None:
    """Origins along the flow graph, to a fixed point for what memory holds now."""
    begins: dict[int, dict[int, Origins]] = {0: {}}
    waiting = [0]
    while waiting:
        start = waiting.pop()
        port.registers = dict(begins[start])
        for step in flow.blocks[start].all_steps:
            port.begin(step)
            if step.action is not None:
                step.action(port)
            else:
                port.copy_apart(flow.marks[step.instruction.index])
        for successor in flow.leads[start]:
            if successor not in begins:
                begins[successor] = dict(port.registers)
                waiting.append(successor)
            elif _add(begins[successor], port.registers):
                waiting.append(successor)


def _add(known: dict[int, Origins], more: Mapping[int, Origins]) -> bool:
    """Adds what another way brings to a place; says whether that changed anything."""
    changed = False
    for slot, origins in more.items():
        joined = known.get(slot, _NONE) | origins
        if joined != known.get(slot, _NONE):
            known[slot] = joined
            changed = True
    return changed
