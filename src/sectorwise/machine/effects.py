"""Turns an instruction into the registers and predicates that it writes and reads, for opcodes known or not."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from sectorwise.binary.ir import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Address,
    Constant,
    Immediate,
    Operand,
    Predicate,
    Register,
)
from sectorwise.counting.request import Operation
from sectorwise.machine.forms import access_of, is_never_executed
from sectorwise.machine.registers import PREDICATE, UNIFORM, UNIFORM_PREDICATE

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction


class File(StrEnum):
    """A register file."""

    REGISTER = "R"
    UNIFORM = "UR"
    PREDICATE = "P"
    UNIFORM_PREDICATE = "UP"


Slot = tuple[File, int]
"""A register or predicate: its file, and its index there. RZ, URZ, PT and UPT are never listed."""

_BASES = {File.REGISTER: 0, File.UNIFORM: UNIFORM, File.PREDICATE: PREDICATE, File.UNIFORM_PREDICATE: UNIFORM_PREDICATE}

CALL_RESULTS = (4, 5, 6, 7)
"""Registers in which a function outside of the kernel gives its result (as compiled callers read it)."""

# fmt: off
_WITHOUT_RESULT = frozenset((
    "ACQBULK", "BAR", "BPT", "BRA", "BREAK", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "CCTL", "CCTLL", "CCTLT",
    "DEPBAR", "ENDCOLLECTIVE", "ERRBAR", "EXIT", "FENCE", "JMP", "JMX", "JMXU", "KILL", "LDGDEPBAR", "LDGSTS",
    "MEMBAR", "NANOSLEEP", "NOP", "PREEXIT", "RED", "REDG", "REDS", "RET", "RTT", "ST", "STG", "STL",
    "STAS", "STS", "STSM", "SURED", "SUST", "UBLKCP", "UBLKPF", "UBLKRED", "UCGABAR_ARV", "UCGABAR_WAIT",
    "STTM", "UTCBAR", "UTCCP", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "UTCSHIFT", "UTMACCTL",
    "UTMACMDFLUSH", "UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG", "WARPGROUP", "WARPSYNC",
    "YIELD",
))
# fmt: on

_DOUBLES = frozenset(("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"))
_PACKED_SINGLES = frozenset(("FADD2", "FMUL2", "FFMA2"))
_WARPGROUP_TENSOR = frozenset(("HGMMA", "IGMMA", "QGMMA", "BGMMA"))
_TENSOR = frozenset(("HMMA", "IMMA", "DMMA", "BMMA", "OMMA", "QMMA", "LDTM")) | _WARPGROUP_TENSOR
_TENSOR_MEMORY = (("256", 4), ("128", 2))
"""Words of a lane for each row of tensor memory that an LDTM reads, by what its shape contains."""

_CONVERSIONS = frozenset(("F2F", "F2I", "I2F", "FRND"))
_TEXTURES = frozenset(("TEX", "TLD", "TLD4", "TXD"))
_CONSTANT_LOADS = frozenset(("LDC", "ULDC", "LDCU"))
_PREDICATE_SETTERS = frozenset(("ISETP", "UISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "UPLOP3", "FCHK", "PSETP"))
_TWO_WORD_TYPES = ("F64", "S64", "U64", "64")


def slot_number(slot: Slot) -> int:
    """A register or predicate as the register file numbers it."""
    file, index = slot
    return _BASES[file] + index


def result_words(instruction: Instruction) -> int:
    """How many consecutive registers the instruction's register result takes."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    access = access_of(instruction)
    if access is not None:
        if access.operation is Operation.MATRIX_LOAD:
            return access.matrices
        return max(1, access.width_bytes // 4)
    if opcode in _TENSOR:
        return _accumulator_words(instruction)
    if opcode in _DOUBLES or opcode in _PACKED_SINGLES:
        return 2
    if opcode in _CONVERSIONS:
        return 2 if _result_type(instruction) in _TWO_WORD_TYPES else 1
    if opcode in _CONSTANT_LOADS:
        return next((int(name) // 32 for name in modifiers if name in ("64", "128")), 1)
    if opcode == "CS2R":
        return 1 if "32" in modifiers else 2
    if "WIDE" in modifiers or ("64" in modifiers and opcode not in ("SHF", "USHF")):
        return 2
    return 1


def _result_type(instruction: Instruction) -> str | None:
    """The result's type of a conversion: the first float of F2F and I2F, the integer of F2I."""
    floats = [name for name in instruction.modifiers if name in ("F16", "BF16", "F32", "F64")]
    if instruction.opcode == "F2I":
        return next((name for name in instruction.modifiers if name in ("S64", "U64")), None)
    return floats[0] if floats else None


def _accumulator_words(instruction: Instruction) -> int:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _WARPGROUP_TENSOR:
        columns = next((int(name.split("x")[1]) for name in modifiers if name.count("x") == 2), 8)
        # A warp has 16 of the 64 rows; half precision packs two columns into a word.
        is_half = opcode == "HGMMA" and "F16" in modifiers and "F32" not in modifiers
        return columns // 4 if is_half else columns // 2
    if opcode == "LDTM":
        count = next((int(name[1:]) for name in modifiers if name[:1] == "x" and name[1:].isdigit()), 1)
        return count * next((times for wide, times in _TENSOR_MEMORY if any(wide in name for name in modifiers)), 1)
    if opcode == "DMMA":
        return 4 if "8x8x4" in modifiers or "884" in modifiers else 8
    if opcode == "HMMA":
        return 2 if "F16" in modifiers else 4
    if opcode == "IMMA" and "8816" in modifiers:
        return 2
    return 4


def _registers(register: Register, count: int) -> list[Slot]:
    if register.index == ZERO_REGISTER:
        return []
    file = File.UNIFORM if register.uniform else File.REGISTER
    return [(file, register.index + step) for step in range(count)]


def _predicates(predicate: Predicate) -> list[Slot]:
    if predicate.index == TRUE_PREDICATE:
        return []
    return [(File.UNIFORM_PREDICATE if predicate.uniform else File.PREDICATE, predicate.index)]


def _written_operands(instruction: Instruction) -> tuple[int, ...]:
    """Places of the operands that are written: predicates and registers up to the first that is read."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _WITHOUT_RESULT or is_never_executed(instruction):
        return ()
    if opcode in _PREDICATE_SETTERS:
        return (0,) if opcode == "FCHK" else (0, 1)
    if opcode in ("VOTE", "VOTEU", "MATCH", "ELECT"):
        return tuple(range(len(operands) - 1))
    places: list[int] = []
    found = False
    for place, operand in enumerate(operands):
        if isinstance(operand, Predicate):
            if found and not _may_carry_out(instruction, place):
                break
            places.append(place)
        elif isinstance(operand, Register) and not found:
            found = True
            places.append(place)
        else:
            break
    return tuple(places)


def _may_carry_out(instruction: Instruction, place: int) -> bool:
    """Whether a predicate right after the destination is written: it is, unless nothing but predicates follows it."""
    return any(not isinstance(operand, Predicate) for operand in instruction.operands[place:])


def _masked_predicates(instruction: Instruction) -> tuple[Slot, ...]:
    """The predicates that P2R and R2P move, by the mask that comes last."""
    mask = instruction.operands[-1]
    value = mask.value if isinstance(mask, Immediate) else 0x7F
    return tuple((File.PREDICATE, bit) for bit in range(TRUE_PREDICATE) if value >> bit & 1)


def destinations(instruction: Instruction) -> tuple[Slot, ...]:
    """Registers and predicates that the instruction writes where its guard holds."""
    if instruction.opcode == "R2P":
        return _masked_predicates(instruction)
    slots: list[Slot] = []
    if instruction.opcode in _TEXTURES:
        return _texture_destinations(instruction)
    count = result_words(instruction)
    for place in _written_operands(instruction):
        operand = instruction.operands[place]
        if isinstance(operand, Register):
            slots += _registers(operand, count)
        elif isinstance(operand, Predicate):
            slots += _predicates(operand)
    return tuple(slots)


def _texture_destinations(instruction: Instruction) -> tuple[Slot, ...]:
    """Two registers for the first two components of the mask, at the second operand, the others at the first."""
    registers = [operand for operand in instruction.operands if isinstance(operand, Register)]
    masks = [operand.value for operand in instruction.operands if isinstance(operand, Immediate)]
    components = (masks[-1] & 0xF).bit_count() if masks else 4
    slots: list[Slot] = []
    for register, count in zip(registers[:2], (components - 2, min(components, 2)), strict=False):
        slots += _registers(register, max(count, 0))
    for operand in instruction.operands[:1]:
        slots += _predicates(operand) if isinstance(operand, Predicate) else []
    return tuple(slots)


def sources(instruction: Instruction) -> tuple[Slot, ...]:
    """Registers and predicates that the instruction reads, its guard included."""
    slots: list[Slot] = [] if instruction.guard is None else _predicates(instruction.guard)
    if instruction.opcode == "P2R":
        slots += _masked_predicates(instruction)
    written = _written_operands(instruction)
    for place, operand in enumerate(instruction.operands):
        if place not in written:
            slots += _read_slots(instruction, place, operand)
    return tuple(dict.fromkeys(slots))


def _read_slots(instruction: Instruction, place: int, operand: Operand) -> list[Slot]:
    match operand:
        case Register():
            return _registers(operand, _source_words(instruction, place, operand))
        case Predicate():
            return _predicates(operand)
        case Constant():
            slots = [] if operand.index is None else _registers(operand.index, 1)
            return slots if operand.descriptor is None else slots + _registers(operand.descriptor, 1)
        case Address():
            return _address_slots(instruction, operand)
        case _:
            return []


def _address_slots(instruction: Instruction, address: Address) -> list[Slot]:
    slots: list[Slot] = []
    long_base = address.base_is_wide or (instruction.has("E") and "U32" not in address.base_suffixes)
    if instruction.opcode == "LDGSTS":
        long_base = address.base_is_wide
    if address.base is not None:
        slots += _registers(address.base, 2 if long_base else 1)
    if address.uniform is not None:
        slots += _registers(address.uniform, 2 if instruction.has("E") else 1)
    if address.descriptor is not None:
        slots += _registers(address.descriptor, 2)
    return slots


def _source_words(instruction: Instruction, place: int, operand: Register) -> int:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if "64" in operand.suffixes or opcode in _DOUBLES or opcode in _PACKED_SINGLES:
        return 2
    access = access_of(instruction)
    if access is not None:
        return access.matrices or max(1, access.width_bytes // 4)
    last = max(i for i, other in enumerate(instruction.operands) if isinstance(other, Register))
    if opcode in ("IMAD", "UIMAD") and ("WIDE" in modifiers or "HI" in modifiers):
        return 2 if place == last else 1
    if opcode in _TENSOR:
        return 4
    if opcode in _CONVERSIONS:
        types = [name for name in modifiers if name in ("F16", "BF16", "F32", "F64", "S64", "U64")]
        if opcode != "FRND" and types and types[0] == _result_type(instruction):
            types = types[1:]
        return 2 if types and types[-1] in _TWO_WORD_TYPES else 1
    if ("64" in modifiers or "U64" in modifiers or "S64" in modifiers) and opcode not in ("SHF", "USHF"):
        return 2
    return 1
