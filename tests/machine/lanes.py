"""Turns SASS statements and start values into what straight-line code leaves in registers: a small port for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sectorwise.binary.ir import Control, Instruction
from sectorwise.binary.parser import parse_statement
from sectorwise.machine.numpy_algebra import NumpyAlgebra
from sectorwise.machine.semantics.table import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra

Lanes = npt.NDArray[Any]

CONTROL = Control(0, yield_hint=False, write_barrier=7, read_barrier=7, wait_mask=0, reuse_mask=0)

FLAT_BYTES = 1 << 16


def instruction(text: str, encoding: int = 0) -> Instruction:
    """One instruction from its printed form."""
    parsed = parse_statement(text)
    return Instruction(
        index=0,
        offset=0,
        opcode=parsed.opcode,
        modifiers=parsed.modifiers,
        guard=parsed.guard,
        operands=parsed.operands,
        text=text,
        encoding=encoding,
        control=CONTROL,
        location=None,
    )


def words(values: Iterable[int]) -> Lanes:
    """A register from integers, any sign, padded with zeros to whole warps: uint32 [warps, 32]."""
    flat = [value & 0xFFFFFFFF for value in values]
    flat += [0] * (-len(flat) % 32)
    return np.array(flat, np.uint32).reshape(-1, 32)


class LanePort:
    """`Port` over one array a register. Memory is one flat array of bytes, whatever the space."""

    def __init__(self, warps: int) -> None:
        self.algebra: Algebra[Any] = NumpyAlgebra()
        self.warps = warps
        self.registers: dict[tuple[int, bool], Lanes] = {}
        self.predicates: dict[tuple[int, bool], Lanes] = {}
        self.special: dict[str, Lanes] = {}
        self.banks: dict[int, bytes] = {}
        self.memory = np.zeros(FLAT_BYTES, np.uint8)
        self.base = 0
        self.mask = np.ones((warps, 32), np.bool_)
        self.inexact = False
        self.unknown: list[str] = []
        self.asynchronous: list[tuple[Lanes, Lanes, Lanes | None]] = []

    def read_register(self, index: int, *, uniform: bool = False) -> Lanes:
        return self.registers[index, uniform]

    def write_register(self, index: int, value: Lanes, *, uniform: bool = False) -> None:
        assert value.dtype == np.uint32
        assert not uniform or value.shape[1] == 1, "a uniform register takes one value a warp"
        self.registers[index, uniform] = self._merge(self.registers.get((index, uniform)), value, uniform=uniform)

    def read_predicate(self, index: int, *, uniform: bool = False) -> Lanes:
        return self.predicates[index, uniform]

    def write_predicate(self, index: int, value: Lanes, *, uniform: bool = False) -> None:
        assert value.dtype == np.bool_
        self.predicates[index, uniform] = self._merge(self.predicates.get((index, uniform)), value, uniform=uniform)

    def _merge(self, old: Lanes | None, value: Lanes, *, uniform: bool) -> Lanes:
        width = 1 if uniform else 32
        new = np.broadcast_to(value, (self.warps, width)).copy()
        if uniform:
            return new
        before = np.zeros_like(new) if old is None else old
        return np.where(self.mask, new, before)

    def read_constant(self, bank: int, offset: Lanes | int) -> Lanes:
        data = np.frombuffer(self.banks[bank], np.uint8)
        at = np.asarray(offset).reshape(-1, np.shape(offset)[-1] if np.ndim(offset) else 1).astype(np.intp)
        gathered = data[at[..., None] + np.arange(4)]
        return np.ascontiguousarray(gathered).view("<u4")[..., 0]

    def read_special(self, name: str) -> Lanes:
        return self.special[name]

    def active(self) -> Lanes:
        return self.mask

    def mark_inexact(self) -> None:
        self.inexact = True

    def mark_unknown(self, reason: str) -> None:
        self.unknown.append(reason)

    def _places(self, address: Lanes) -> npt.NDArray[np.int64]:
        return np.broadcast_to(address, (self.warps, 32)).astype(np.int64) - self.base

    def load(self, access: Access, address: Lanes) -> Sequence[Lanes]:
        places, width = self._places(address), access.width_bytes
        data = np.zeros((self.warps, 32, max(4, width)), np.uint8)
        data[self.mask, :width] = self.memory[places[self.mask][:, None] + np.arange(width)]
        return [data[..., 4 * i : 4 * i + 4].copy().view("<u4")[..., 0] for i in range(max(1, width // 4))]

    def store(self, access: Access, address: Lanes, words: Sequence[Lanes]) -> None:
        places, width = self._places(address), access.width_bytes
        columns = [np.broadcast_to(word, (self.warps, 32)) for word in words]
        data = np.stack(columns, axis=-1).astype("<u4").view(np.uint8)[..., :width]
        self.memory[places[self.mask][:, None] + np.arange(width)] = data[self.mask]

    def atomic(
        self,
        access: Access,
        address: Lanes,
        update: Callable[[Algebra[Any], Lanes], Lanes],
        words: int,
        *,
        inexact: bool = False,
    ) -> Sequence[Lanes]:
        self.inexact = self.inexact or inexact
        dtype = np.dtype("<u4" if words == 1 else "<u8")
        places = self._places(address)
        result = np.zeros((self.warps, 32), dtype)
        for warp, lane in np.argwhere(self.mask):
            at = places[warp, lane]
            cell = self.memory[at : at + min(access.width_bytes, 4 * words)].view(dtype)
            old = np.full((self.warps, 32), cell[0], dtype)
            result[warp, lane] = cell[0]
            cell[0] = np.broadcast_to(update(self.algebra, old), old.shape)[warp, lane]
        if words == 1:
            return [result]
        return [result.astype(np.uint32), (result >> np.uint64(32)).astype(np.uint32)]

    def atomic_words(
        self, access: Access, address: Lanes, updates: Sequence[Callable[[Algebra[Any], Lanes], Lanes]]
    ) -> Sequence[Lanes]:
        steps = [np.asarray(address) + np.asarray(4 * k, np.asarray(address).dtype) for k in range(len(updates))]
        return [
            self.atomic(access, place, update, 1, inexact=True)[0] for place, update in zip(steps, updates, strict=True)
        ]

    def copy_async(
        self, access: Access, shared_address: Lanes, global_address: Lanes, source_bytes: Lanes | None
    ) -> None:
        del access
        self.asynchronous.append((shared_address, global_address, source_bytes))

    def load_matrix(self, access: Access, address: Lanes) -> Sequence[Lanes]:
        places = self._places(address)
        lane = np.arange(32)
        results = []
        for matrix in range(access.matrices):
            rows = places[:, 8 * matrix + lane // 4] + 4 * (lane % 4)
            results.append(self.memory[rows[..., None] + np.arange(4)].copy().view("<u4")[..., 0])
        return results

    def store_matrix(self, access: Access, address: Lanes, words: Sequence[Lanes]) -> None:
        places = self._places(address)
        lane = np.arange(32)
        for matrix in range(access.matrices):
            rows = places[:, 8 * matrix + lane // 4] + 4 * (lane % 4)
            data = words[matrix].astype("<u4")[..., None].view(np.uint8)
            self.memory[rows[..., None] + np.arange(4)] = data


def step(port: LanePort, code: Instruction) -> None:
    """Runs one instruction under its guard."""
    action = decode(code)
    assert action is not None, f"not known: {code.text}"
    whole = port.mask
    if code.guard is not None:
        holds = code.guard.index == 7 or port.predicates[code.guard.index, code.guard.uniform]
        port.mask = whole & (holds ^ code.guard.negate)
    with np.errstate(all="ignore"):
        action(port)
    port.mask = whole


def run(
    text: str,
    registers: Mapping[str, Lanes] | None = None,
    predicates: Mapping[str, Lanes] | None = None,
    port: LanePort | None = None,
) -> LanePort:
    """Runs statements separated by semicolons on registers `R2`, `UR4` and predicates `P0`, `UP1`."""
    given, flags = registers or {}, predicates or {}
    shapes = [value.shape[0] for value in (*given.values(), *flags.values())]
    port = port or LanePort(max(shapes, default=1))
    for name, value in given.items():
        port.registers[int(name.lstrip("UR")), name.startswith("U")] = value
    for name, value in flags.items():
        port.predicates[int(name.lstrip("UP")), name.startswith("U")] = value
    for statement in text.split(";"):
        if statement.strip():
            step(port, instruction(statement.strip()))
    return port


def register(port: LanePort, name: str) -> list[int]:
    """A register's words, lane after lane."""
    value = port.registers[int(name.lstrip("UR")), name.startswith("U")]
    return [int(word) for word in value.ravel()]


def predicate(port: LanePort, name: str) -> list[bool]:
    """A predicate, lane after lane."""
    value = port.predicates[int(name.lstrip("UP")), name.startswith("U")]
    return [bool(flag) for flag in np.broadcast_to(value, (port.warps, 32)).ravel()]
