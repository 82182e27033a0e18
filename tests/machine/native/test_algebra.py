"""The LLVM algebra computes what the NumPy algebra computes, operation by operation, bit by bit."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import structs

from sectorwise.machine.native.algebra import LlvmAlgebra
from sectorwise.machine.native.compiler import Host, Library, compile_module, find_host, load
from sectorwise.machine.native.routines import find_routines
from sectorwise.machine.native.values import FLOATS, Kind, Operand, type_text
from sectorwise.machine.native.writer import Writer
from sectorwise.machine.numpy_algebra import NumpyAlgebra
from tests.machine.native.operations import Case, all_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

Lanes = npt.NDArray[Any]

ROUNDS = 24
SLOT_BYTES = 256

WORD_EDGES = np.array(
    [
        0,
        1,
        2,
        3,
        31,
        32,
        33,
        63,
        64,
        0x7FFFFFFF,
        0x80000000,
        0x80000001,
        0xFFFFFFFF,
        0xFFFFFFFE,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x7F800001,
        0xFFC12345,
        0x00800000,
        0x007FFFFF,
        0x3F800000,
        0xBF800000,
        0x4F000000,
        0xCF000000,
        0x4F800000,
        0x5F000000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x33800000,
        0x3F000000,
        0x40200000,
    ],
    np.uint32,
)
LONG_EDGES = np.concatenate(
    [
        WORD_EDGES.astype(np.uint64),
        np.array([1 << 63, (1 << 63) - 1, (1 << 64) - 1, 1 << 32, (1 << 32) - 1], np.uint64),
        np.array([1.0, -1.0, 0.5, 2.5, 1e300, -1e-300, 65504.0, 3.4028235e38, 2**31, 2**63], np.float64).view(
            np.uint64
        ),
        np.array([0x7FF0000000000001, 0xFFF8000000000123, 0x7FF8000000000ABC, 1], np.uint64),
        np.array([0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF], np.uint64),
    ]
)
HALF_EDGES = np.array(
    [
        0,
        0x8000,
        1,
        0x8001,
        0x3FF,
        0x400,
        0x3C00,
        0xBC00,
        0x7BFF,
        0xFBFF,
        0x7C00,
        0xFC00,
        0x7E00,
        0x7C01,
        0xFE55,
        0x7800,
    ],
    np.uint16,
)

EDGES: dict[Kind, tuple[Lanes, Any, Any]] = {
    Kind.WORD: (WORD_EDGES, np.uint32, None),
    Kind.SINGLE: (WORD_EDGES, np.uint32, np.float32),
    Kind.LONG: (LONG_EDGES, np.uint64, None),
    Kind.DOUBLE: (LONG_EDGES, np.uint64, np.float64),
    Kind.HALF: (HALF_EDGES, np.uint16, np.float16),
}


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A case, compiled for operands that are one a lane or one a warp."""

    case: Case
    shapes: tuple[bool, ...]
    function: str
    result: str


def _hosts() -> list[Host]:
    host = find_host()
    assert host is not None, "the tests need llvmlite"
    short = ",".join(
        f"-{name[1:]}" if name[1:].startswith(("avx512", "avx10", "amx")) else name for name in host.features.split(",")
    )
    return [host, structs.replace(host, features=short)]


@pytest.fixture(scope="module", params=[0, 1], ids=["host", "short-vectors"])
def compiled(request: pytest.FixtureRequest) -> tuple[list[Compiled], Library]:
    host = _hosts()[request.param]
    texts: list[str] = []
    needed: dict[str, None] = {}
    found: list[Compiled] = []
    for case in all_cases():
        for shapes in itertools.product((True, False), repeat=len(case.kinds)):
            name = f"f{len(found)}"
            writer = Writer()
            result = _write(writer, name, case, shapes)
            texts.append("\n".join(writer.emitter.lines))
            needed |= writer.emitter.needed
            found.append(Compiled(case, shapes, name, result))
    code = compile_module(find_routines(needed) + "\n".join(texts), host, 0)
    return found, load(code, tuple(each.function for each in found))


def _write(writer: Writer, name: str, case: Case, shapes: tuple[bool, ...]) -> str:
    """Writes a function that loads operands, does the operation and stores the result; returns how that is stored."""
    emitter, algebra = writer.emitter, LlvmAlgebra(writer)
    emitter.lines.append(f"define void @{name}(ptr %in, ptr %out) {{")
    operands = [
        _load(writer, kind, place, lanes=lanes)
        for place, (kind, lanes) in enumerate(zip(case.kinds, shapes, strict=True))
    ]
    value = case.run(algebra, *operands)
    if value.kind in FLOATS:
        value = algebra.view_bits(value)
    if value.kind is Kind.PREDICATE:
        emitter.effect(f"store i32 {writer.mask(value)}, ptr %out")
    else:
        emitter.effect(f"store {writer.typed(value, lanes=True)}, ptr %out, align 4")
    emitter.lines.append("  ret void\n}")
    return str(value.kind)


def _load(writer: Writer, kind: Kind, place: int, *, lanes: bool) -> Operand:
    emitter = writer.emitter
    pointer = emitter.result(f"getelementptr i8, ptr %in, i64 {SLOT_BYTES * place}")
    if kind is Kind.PREDICATE:
        mask = emitter.result(f"load i32, ptr {pointer}")
        return Operand(kind, lanes, mask if lanes else emitter.result(f"trunc i32 {mask} to i1"))
    return Operand(kind, lanes, emitter.result(f"load {type_text(kind, lanes=lanes)}, ptr {pointer}, align 2"))


def _make_values(random: np.random.Generator, kind: Kind, *, lanes: bool) -> Lanes:
    """Values `[ROUNDS, 32]` or `[ROUNDS, 1]`: edges, small numbers, any bits."""
    shape = (ROUNDS, 32 if lanes else 1)
    if kind is Kind.PREDICATE:
        return random.random(shape) < 0.5
    edges, dtype, form = EDGES[kind]
    bits = random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    chosen = random.random(shape)
    if form is None:
        near = random.integers(0, 70, shape).astype(dtype)
    else:
        near = random.normal(size=shape).astype(form).view(dtype)
    values: Lanes = np.where(chosen < 0.4, random.choice(edges, shape), np.where(chosen < 0.6, near, bits))
    return values if form is None else values.view(form)


def _bytes_of(row: Lanes) -> npt.NDArray[np.uint8]:
    if row.dtype == np.bool_:
        row = np.packbits(row, bitorder="little") if row.size > 1 else row.astype(np.uint32)
    return np.ascontiguousarray(row).view(np.uint8)


def _run(each: Compiled, library: Library, values: list[Lanes]) -> Iterator[Lanes]:
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address_of(each.function))
    memory = np.zeros(SLOT_BYTES * 4, np.uint8)
    out = np.zeros(SLOT_BYTES, np.uint8)
    for turn in range(ROUNDS):
        for place, value in enumerate(values):
            octets = _bytes_of(value[turn])
            memory[SLOT_BYTES * place : SLOT_BYTES * place + octets.size] = octets
        function(memory.ctypes.data, out.ctypes.data)
        match each.result:
            case "i1":
                yield np.unpackbits(out[:4], bitorder="little").astype(np.bool_)
            case "i64":
                yield out.view(np.uint64).copy()
            case _:
                yield out[:128].view(np.uint32).copy()


def _expect(each: Compiled, values: list[Lanes]) -> Lanes:
    algebra = NumpyAlgebra()
    with np.errstate(all="ignore"):
        result = each.case.run(algebra, *values)
        if result.dtype.kind == "f":
            result = algebra.view_bits(result)
    return np.broadcast_to(result, (ROUNDS, 32))


def test_every_operation_gives_the_bits_that_numpy_gives(compiled: tuple[list[Compiled], Library]) -> None:
    cases, library = compiled
    random = np.random.default_rng(5)
    wrong: list[str] = []
    for each in cases:
        values = [
            _make_values(random, kind, lanes=lanes) for kind, lanes in zip(each.case.kinds, each.shapes, strict=True)
        ]
        expected = _expect(each, values)
        for turn, got in enumerate(_run(each, library, values)):
            lanes = np.flatnonzero(got != expected[turn])
            if lanes.size:
                lane = int(lanes[0])
                given = [value[turn, lane if value.shape[1] > 1 else 0] for value in values]
                wrong.append(f"{each.case.name} {each.shapes}: {given} gave {got[lane]}, not {expected[turn, lane]}")
                break
    assert wrong == []


def test_constants_are_computed_before_anything_is_written() -> None:
    writer = Writer()
    algebra = LlvmAlgebra(writer)
    lanes = algebra.bit_xor(algebra.shift_left(algebra.lane(), algebra.word(2)), algebra.word(4))
    assert lanes.constant is not None
    assert lanes.constant.tolist() == [[(4 * lane) ^ 4 for lane in range(32)]]
    assert writer.emitter.lines == []


def test_equal_operations_are_written_once() -> None:
    writer = Writer()
    algebra = LlvmAlgebra(writer)
    a, b = Operand(Kind.WORD, lanes=True, text="%a"), Operand(Kind.WORD, lanes=True, text="%b")
    assert algebra.add(a, b) == algebra.add(a, b)
    assert len(writer.emitter.lines) == 1


def test_a_pair_that_was_taken_apart_is_put_together_without_an_operation() -> None:
    writer = Writer()
    algebra = LlvmAlgebra(writer)
    whole = algebra.multiply_wide(
        Operand(Kind.WORD, lanes=True, text="%a"), Operand(Kind.WORD, lanes=True, text="%b"), signed=True
    )
    assert algebra.join(algebra.low(whole), algebra.high(whole)) is whole
