"""Turns moves, selections and special registers into reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Constant, Predicate, SpecialRegister, Target
from sectorwise.machine.operands import (
    read_long,
    read_predicate,
    read_word,
    split_predicates,
    unsupported,
    write_long,
    write_predicate,
    write_word,
)

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Value
    from sectorwise.machine.operands import Action
    from sectorwise.machine.port import Port

_CLOCKS = ("SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI")


def do_nothing(_instruction: Instruction) -> Action:
    """NOP and what only orders, waits or hints: it changes no value."""
    return lambda _port: None


def take_registers(instruction: Instruction) -> Action:
    """USETMAXREG: warps give registers back, or take some; TRY_ALLOC says whether it got them, which it does."""
    write = write_predicate(next((each for each in instruction.operands if isinstance(each, Predicate)), None))
    if write is None:
        return do_nothing(instruction)
    return lambda port: write(port, port.algebra.predicate(True))  # noqa: FBT003 - a value


def move(instruction: Instruction) -> Action:
    """MOV, UMOV, RPCMOV: a word, or a pair with 64."""
    destination, source = instruction.operands[:2]
    if instruction.has("64"):
        read, write = read_long(source, signed=True), write_long(destination)
    else:
        read, write = read_word(source), write_word(destination)
    return lambda port: write(port, read(port))


def choose(instruction: Instruction) -> Action:
    """SEL, USEL: the first word where the predicate holds, else the second; pairs with 64."""
    destination, a, b, predicate = instruction.operands
    condition = read_predicate(predicate)
    if instruction.has("64"):
        first, second, write = read_long(a, signed=True), read_long(b, signed=True), write_long(destination)
    else:
        first, second, write = read_word(a), read_word(b), write_word(destination)
    return lambda port: write(port, port.algebra.select(condition(port), first(port), second(port)))


def to_uniform(instruction: Instruction) -> Action:
    """R2UR: a register of the lowest active lane, for the whole warp; a predicate tells lanes that hold another value.

    With OR the predicate stays true where it is: so several registers are compared.
    """
    predicates, rest = split_predicates(instruction)
    read, write = read_word(rest[1]), write_word(rest[0])
    write_other = write_predicate(predicates[0]) if predicates else None
    before = read_predicate(predicates[0]) if predicates and instruction.has("OR") else None

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, read(port)
        chosen = algebra.first_active(value, port.active())
        write(port, chosen)
        if write_other:
            other = algebra.invert(algebra.equal(value, chosen))
            write_other(port, other if before is None else algebra.bit_or(other, before(port)))

    return run


def load_code_address(instruction: Instruction) -> Action:
    """LEPC: the address of a place in the code, as a long; kernels start at 0."""
    targets = [operand.offset for operand in instruction.operands if isinstance(operand, Target)]
    if None in targets:
        raise unsupported(instruction, "the place is not in this kernel")
    offset = targets[0] if targets else instruction.offset
    write = write_long(instruction.operands[0])
    return lambda port: write(port, port.algebra.long(offset or 0))


def _read_special(port: Port[Value], name: str) -> Value:
    if name == "SRZ":
        return port.algebra.word(0)
    if name in _CLOCKS:
        port.mark_unknown("a clock depends on the schedule")
        return port.algebra.word(0)
    return port.read_special(name)


def _special_name(instruction: Instruction) -> str:
    source = instruction.operands[1]
    if not isinstance(source, SpecialRegister):
        raise unsupported(instruction, "a special register is expected")
    return source.name


def read_special(instruction: Instruction) -> Action:
    """S2R: a special register."""
    write, name = write_word(instruction.operands[0]), _special_name(instruction)
    return lambda port: write(port, _read_special(port, name))


def read_special_uniform(instruction: Instruction) -> Action:
    """S2UR: a special register of the warp, of its lowest active lane where lanes differ."""
    write, name = write_word(instruction.operands[0]), _special_name(instruction)
    return lambda port: write(port, port.algebra.first_active(_read_special(port, name), port.active()))


def read_special_pair(instruction: Instruction) -> Action:
    """CS2R: a special register and its upper half; 32 takes one word."""
    name = _special_name(instruction)
    low = write_word(instruction.operands[0])
    if instruction.has("32"):
        return lambda port: low(port, _read_special(port, name))
    high = write_word(instruction.operands[0], 1)
    upper = f"{name.removesuffix('LO')}HI" if name.endswith("LO") else "SRZ"

    def run(port: Port[Value]) -> None:
        low(port, _read_special(port, name))
        high(port, _read_special(port, upper))

    return run


def load_constant(instruction: Instruction) -> Action:
    """LDC, ULDC, LDCU: a value of 1 to 16 bytes from a constant bank, at a byte offset that may differ by lane."""
    rest = [operand for operand in instruction.operands if not isinstance(operand, Predicate)]
    destination, source = rest[0], rest[1]
    if not isinstance(source, Constant):
        raise unsupported(instruction, "a constant bank is expected")
    narrow = next((name for name in instruction.modifiers if name in ("U8", "S8", "U16", "S16")), None)
    if narrow:
        return _load_narrow_constant(instruction, source, narrow)
    count = next((int(name) // 32 for name in instruction.modifiers if name in ("64", "128")), 1)
    bank, offset = source.bank, source.offset
    index = read_word(source.index) if source.index is not None else None
    writers = [write_word(destination, place) for place in range(count)]

    def run(port: Port[Value]) -> None:
        if bank is None:
            port.mark_unknown("a bindless constant bank is not known")
        base = index(port) if index else None
        algebra = port.algebra
        for place, write in enumerate(writers):
            if bank is None:
                write(port, algebra.word(0))
                continue
            at = offset + 4 * place
            write(port, port.read_constant(bank, at if base is None else algebra.add(base, algebra.word(at))))

    return run


def _load_narrow_constant(instruction: Instruction, source: Constant, form: str) -> Action:
    bank, write = source.bank, write_word(instruction.operands[0])
    if bank is None:
        raise unsupported(instruction, "a bindless constant bank is not known")
    index = read_word(source.index) if source.index is not None else None
    bits, signed, offset = int(form[1:]), form[0] == "S", source.offset

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        at = algebra.word(offset) if index is None else algebra.add(index(port), algebra.word(offset))
        word = port.read_constant(bank, algebra.bit_and(at, algebra.word(0xFFFFFFFC)))
        count = algebra.shift_left(algebra.bit_and(at, algebra.word(3)), algebra.word(3))
        rest = algebra.word(32 - bits)
        top = algebra.shift_left(algebra.shift_right(word, count), rest)
        write(port, algebra.shift_right_signed(top, rest) if signed else algebra.shift_right(top, rest))

    return run
