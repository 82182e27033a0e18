from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.counting.request import Access, Operation, Space
from sectorwise.machine.forms import access_of
from sectorwise.machine.semantics.table import decode
from tests.machine.lanes import FLAT_BYTES, LanePort, instruction, register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import signed, singles, words
from tests.machine.test_floats import read

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

LANE = np.arange(32, dtype=np.uint32).reshape(1, 32)
NOISE = np.random.default_rng(5).integers(0, 256, FLAT_BYTES).astype(np.uint8)

ACCESSES = [
    ("LDG.E.128.CONSTANT R4, desc[UR4][R2.64+0x10]", Space.GLOBAL, Operation.LOAD, 16, 0),
    ("LDG.E.U16.CONSTANT R4, desc[UR4][R2.64]", Space.GLOBAL, Operation.LOAD, 2, 0),
    ("LDG.E.LTC128B R4, desc[UR4][R2.64]", Space.GLOBAL, Operation.LOAD, 4, 0),
    ("STG.E.64 desc[UR4][R2.64], R4", Space.GLOBAL, Operation.STORE, 8, 0),
    ("LDS.S8 R4, [R2+UR4]", Space.SHARED, Operation.LOAD, 1, 0),
    ("STS.128 [R2+-0x10], R4", Space.SHARED, Operation.STORE, 16, 0),
    ("LDL.LU R4, [R1+0x10]", Space.LOCAL, Operation.LOAD, 4, 0),
    ("STL.64 [R1], R4", Space.LOCAL, Operation.STORE, 8, 0),
    ("LD.E.STRONG.SYS R4, desc[UR4][R2.64]", Space.GENERIC, Operation.LOAD, 4, 0),
    ("ATOMG.E.ADD.64.STRONG.GPU PT, R4, desc[UR4][R2.64], R6", Space.GLOBAL, Operation.ATOMIC, 8, 0),
    ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR4][R2.64], R6", Space.GLOBAL, Operation.REDUCTION, 8, 0),
    ("ATOMS.POPC.INC.32 RZ, [R2+URZ]", Space.SHARED, Operation.ATOMIC, 4, 0),
    ("ATOMS.CAST.SPIN.64 R6, [R3], R4, R6", Space.SHARED, Operation.ATOMIC, 8, 0),
    ("LDGSTS.E.BYPASS.LTC128B.128 [R9], desc[UR6][R2.64], P1", Space.GLOBAL, Operation.ASYNC_COPY, 16, 0),
    ("LDSM.16.MT88.4 R4, [R2]", Space.SHARED, Operation.MATRIX_LOAD, 16, 4),
    ("LDSM.16.M88 R4, [R2]", Space.SHARED, Operation.MATRIX_LOAD, 16, 1),
    ("STSM.16.M88.2 [R2], R4", Space.SHARED, Operation.MATRIX_STORE, 16, 2),
]


@pytest.mark.parametrize(("text", "space", "operation", "width", "matrices"), ACCESSES)
def test_accesses_have_space_operation_and_width(
    text: str, space: Space, operation: Operation, width: int, matrices: int
) -> None:
    code = instruction(text)
    assert access_of(code) == Access(space, operation, width, code.opcode, code.modifiers, matrices)


@pytest.mark.parametrize(
    ("predicate", "taken"),
    [("", None), (", P0", False), (", !P0", True), (", P1", None), (", !P6", None)],
)
def test_what_the_profiler_misreads_of_a_copy(predicate: str, taken: bool | None) -> None:  # noqa: FBT001
    for form in ("E.BYPASS.128", "E.128"):
        access = access_of(instruction(f"LDGSTS.{form} [R9], desc[UR6][R2.64]{predicate}"))
        assert access is not None
        assert access.taken_to_read is (taken if "BYPASS" in form else None)
    sized = access_of(instruction(f"LDGSTS.E.BYPASS.128.ZFILL [R9], desc[UR6][R2.64]{predicate}"))
    assert sized is not None
    assert sized.taken_to_read is None


@pytest.mark.parametrize(
    "text", ["@!PT LDS RZ, [RZ]", "IADD3 R2, R2, 0x1, RZ", "LDC R1, c[0x0][0x28]", "MEMBAR.SC.GPU"]
)
def test_what_the_profiler_does_not_list_is_no_access(text: str) -> None:
    assert access_of(instruction(text)) is None


def memory_port(base: int = 0) -> LanePort:
    port = LanePort(1)
    port.memory, port.base = NOISE.copy(), base
    return port


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("", "<u4"), (".U8", "u1"), (".S8", "i1"), (".U16", "<u2"), (".S16", "<i2"), (".64", "<u8")],
)
def test_loads_extend_narrow_values(form: str, dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    port = run(f"LDS{form} R8, [R2.X4+UR3+0x20]", {"R2": 4 * LANE, "UR3": lanes([64])[:, :1]}, {}, memory_port())
    at = 16 * np.arange(32) + 64 + 32
    expected = np.array([NOISE[place : place + size].view(dtype)[0] for place in at]).astype(np.int64)
    assert register(port, "R8") == [int(value) & 0xFFFFFFFF for value in expected]
    if size == 8:
        assert register(port, "R9") == [int(value) >> 32 & 0xFFFFFFFF for value in expected]


ADDRESSES: list[tuple[str, Callable[[int], int]]] = [
    ("[R2.64+0x40]", lambda lane: lane * 16 + 0x40),
    ("[R2.64+-0x8]", lambda lane: lane * 16 - 8 + 64),
    ("[R6.U32+UR4+0x10]", lambda lane: lane * 4 + 0x110),
    ("[UR4+0x24]", lambda _: 0x124),
    ("[R2+0x8]", lambda lane: lane * 16 + 8),
]


@pytest.mark.parametrize(("operand", "place"), ADDRESSES)
def test_global_addresses_are_64_bits_wide(operand: str, place: Callable[[int], int]) -> None:
    base = 0x7_0000_0000
    near = "-0x8" in operand
    low = LANE * 16 + (64 if near else 0)
    registers = {
        "R2": low,
        "R3": np.full((1, 32), base >> 32, np.uint32),
        "R6": LANE * 4,
        "R7": np.full((1, 32), 0xDEAD, np.uint32),
        "UR4": lanes([0x100])[:, :1],
        "UR5": np.full((1, 1), base >> 32, np.uint32),
    }
    prefix = "" if operand == "[R2+0x8]" else "desc[UR8]"
    port = run(f"LDG.E R8, {prefix}{operand}", registers, {}, memory_port(base))
    assert register(port, "R8") == [int(NOISE[place(k) : place(k) + 4].view("<u4")[0]) for k in range(32)]


@pytest.mark.parametrize(("form", "size"), [(".U8", 1), (".U16", 2), ("", 4), (".64", 8), (".128", 16)])
def test_stores_write_their_width_and_no_more(form: str, size: int) -> None:
    values = {f"R{8 + k}": lanes(words(110 + k, 32)) for k in range(4)}
    port = run(f"STS{form} [R2], R8", {"R2": LANE * 32, **values}, {}, memory_port())
    expected = NOISE.copy()
    for lane in range(32):
        data = b"".join(int(values[f"R{8 + k}"][0, lane]).to_bytes(4, "little") for k in range(4))
        expected[32 * lane : 32 * lane + size] = list(data[:size])
    assert np.array_equal(port.memory, expected)


def test_zero_registers_store_zeros() -> None:
    port = run("STS.128 [R2], RZ", {"R2": LANE * 16}, {}, memory_port())
    assert not port.memory[:512].any()


def test_matrices_are_loaded_and_transposed() -> None:
    rows = np.random.default_rng(6).permutation(32).astype(np.uint32).reshape(1, 32) * 16
    plain = run("LDSM.16.M88.4 R8, [R2]", {"R2": rows}, {}, memory_port())
    turned = run("LDSM.16.MT88.4 R8, [R2]", {"R2": rows}, {}, memory_port())
    for matrix in range(4):
        places = [int(rows[0, 8 * matrix + k]) for k in range(8)]
        elements = np.array([NOISE[place : place + 16].view("<u2") for place in places])
        for port, content in ((plain, elements), (turned, elements.T)):
            pairs = np.ascontiguousarray(content).reshape(32, 2).astype(np.uint32)
            assert register(port, f"R{8 + matrix}") == (pairs[:, 0] | pairs[:, 1] << 16).tolist()


def test_a_transposed_store_undoes_a_transposed_load() -> None:
    rows = LANE * 16
    port = run("LDSM.16.MT88.4 R8, [R2]", {"R2": rows}, {}, memory_port())
    port.memory[:512] = 0
    run("STSM.16.MT88.4 [R2], R8", {"R2": rows}, {}, port)
    assert np.array_equal(port.memory, NOISE)


def test_a_matrix_in_registers_is_transposed() -> None:
    values = words(120, 32)
    port = run("MOVM.16.MT88 R8, R2", {"R2": lanes(values)})
    elements = np.array(values, "<u4").view("<u2").reshape(8, 8).T
    assert register(port, "R8") == np.ascontiguousarray(elements).view("<u4").ravel().tolist()


def test_async_copies_say_how_much_they_read() -> None:
    flags = {"P0": LANE % 2 == 0}
    registers = {"R2": LANE * 16, "R3": LANE * 0, "R9": LANE * 32}
    port = run("LDGSTS.E.BYPASS.128 [R9+0x10], desc[UR6][R2.64+0x40], P0", registers, flags)
    ((shared, source, size),) = port.asynchronous
    assert np.array_equal(shared, LANE * 32 + 16)
    assert np.array_equal(source, LANE.astype(np.uint64) * 16 + 64)
    assert size is not None
    assert np.array_equal(size, np.where(LANE % 2 == 0, 16, 0))


OLD, VALUE = words(121, 32), words(122, 32)

ATOMICS: dict[str, Callable[[int, int], int]] = {
    "ADD": lambda old, value: old + value,
    "MIN.S32": lambda old, value: min(signed(old), signed(value)),
    "MAX.S32": lambda old, value: max(signed(old), signed(value)),
    "MIN": min,
    "MAX": max,
    "INC": lambda old, value: 0 if old >= value else old + 1,
    "DEC": lambda old, value: value if old == 0 or old > value else old - 1,
    "AND": lambda old, value: old & value,
    "OR": lambda old, value: old | value,
    "XOR": lambda old, value: old ^ value,
    "EXCH": lambda _old, value: value,
}


def stored(port: LanePort, dtype: str = "<u4") -> npt.NDArray[np.int64]:
    return port.memory[: 32 * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics_update_memory_and_give_the_old_value(operation: str) -> None:
    port = LanePort(1)
    port.memory[:128] = np.array(OLD, "<u4").view(np.uint8)
    run(f"ATOMS.{operation} R8, [R2], R4", {"R2": LANE * 4, "R4": lanes(VALUE)}, {}, port)
    assert register(port, "R8") == OLD
    expected = [ATOMICS[operation](old, value) & 0xFFFFFFFF for old, value in zip(OLD, VALUE, strict=True)]
    assert stored(port).tolist() == expected


def test_lanes_with_one_address_take_turns() -> None:
    port = LanePort(1)
    run("ATOMS.ADD R8, [RZ+0x40], R4 ; ATOMS.POPC.INC.32 R9, [RZ+0x80]", {"R4": lanes(VALUE)}, {}, port)
    sums = [sum(VALUE[:k]) & 0xFFFFFFFF for k in range(33)]
    assert register(port, "R8") == sums[:32]
    assert int(port.memory[0x40:0x44].view("<u4")[0]) == sums[32]
    assert register(port, "R9") == list(range(32))


def test_64_bit_atomics() -> None:
    old = [a << 32 | b for a, b in zip(OLD, VALUE, strict=True)]
    port = LanePort(1)
    port.memory[:256] = np.array(old, "<u8").view(np.uint8)
    registers = {"R2": LANE * 8, "R3": LANE * 0, "R4": lanes(VALUE), "R5": lanes(OLD)}
    run("ATOMG.E.MAX.S64.STRONG.GPU PT, R8, desc[UR4][R2.64], R4", registers, {}, port)
    assert register(port, "R9") == OLD
    rows = zip(old, (a << 32 | b for a, b in zip(OLD, VALUE, strict=True)), strict=True)
    assert stored(port, "<u8").tolist() == [max(signed(x, 64), signed(y, 64)) & (2**64 - 1) for x, y in rows]


def test_swaps_compare_first() -> None:
    expected = [old if k % 2 else VALUE[k] ^ 1 for k, old in enumerate(OLD)]
    new = words(123, 32)
    after = [new[k] if k % 2 else OLD[k] for k in range(32)]
    for text in ("ATOMS.CAS R8, [R2], R4, R6", "ATOMS.CAST.SPIN R8, [R2], R4, R6", "ATOMS.CAST.SPIN P0, [R2], R4, R6"):
        port = LanePort(1)
        port.memory[:128] = np.array(OLD, "<u4").view(np.uint8)
        run(text, {"R2": LANE * 4, "R4": lanes(expected), "R6": lanes(new)}, {}, port)
        assert stored(port).tolist() == after, text
        done = [k % 2 for k in range(32)]
        if "P0" in text:
            assert port.predicates[0, False].ravel().tolist() == [bool(flag) for flag in done]
        else:
            assert register(port, "R8") == (OLD if "CAS " in text else done)


def test_float_sums_are_marked_as_dependent_on_order() -> None:
    one, other = singles(124, 32), singles(125, 32)
    port = LanePort(1)
    port.memory[:128] = np.array(one, "<u4").view(np.uint8)
    text = "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R4"
    run(text, {"R2": LANE * 4, "R3": LANE * 0, "R4": lanes(other)}, {}, port)
    assert port.inexact
    numbers = [(read(a), read(b)) for a, b in zip(one, other, strict=True)]
    with np.errstate(all="ignore"):
        for got, (a, b) in zip(stored(port).tolist(), numbers, strict=True):
            total = float(np.float32(a) + np.float32(b))
            assert abs(total) < 2.0**-126 or np.isnan(total) or read(got) == total


def test_constants_of_every_width() -> None:
    port = LanePort(1)
    port.banks = {0: NOISE[:4096].tobytes(), 3: NOISE[4096:8192].tobytes()}
    run(
        "LDC R8, c[0x0][0x28] ; LDC.64 R10, c[0x0][R2+0x10] ; LDC.U16 R12, c[0x3][R2] ; LDC.S8 R13, c[0x3][R2+0x1]"
        " ; IADD3 R14, R2, -c[0x0][0x30], RZ ; ULDC.64 UR4, c[0x0][0x40]",
        {"R2": LANE * 8 + 2},
        {},
        port,
    )
    bank, third = NOISE[:4096], NOISE[4096:8192]
    places = [8 * lane + 2 for lane in range(32)]
    assert register(port, "R8") == [int(bank[0x28:0x2C].view("<u4")[0])] * 32
    assert register(port, "R11") == [int(bank[at + 0x14 : at + 0x18].copy().view("<u4")[0]) for at in places]
    assert register(port, "R12") == [int(third[at : at + 2].copy().view("<u2")[0]) for at in places]
    assert register(port, "R13") == [int(third[at + 1 : at + 2].view("i1")[0]) & 0xFFFFFFFF for at in places]
    constant = int(bank[0x30:0x34].view("<u4")[0])
    assert register(port, "R14") == [at - constant & 0xFFFFFFFF for at in places]
    assert register(port, "UR5") == [int(bank[0x44:0x48].view("<u4")[0])]


def test_clocks_are_not_known() -> None:
    port = run("CS2R R8, SR_CLOCKLO ; CS2R R10, SRZ")
    assert port.unknown == ["a clock depends on the schedule"] * 2
    assert register(port, "R11") == [0] * 32


@pytest.mark.parametrize(
    "text",
    [
        "HGMMA.64x64x16.F32 R24, gdesc[UR8], R24, gsb0",
        "ATOMG.E.CAS.128.STRONG.GPU PT, R4, [R8], R4, R4",
        "IADD3",
        "LOP3.LUT R2, R3, R4",
        "F2F R2, R3",
        "SHFL P0, R2, R3, R4, R5",
    ],
)
def test_what_is_not_known_is_said(text: str) -> None:
    assert decode(instruction(text)) is None
