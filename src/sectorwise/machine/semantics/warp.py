"""Turns what lanes of a warp do together (SHFL, VOTE, MATCH, REDUX, ELECT) into permutes and ballots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Predicate, Register
from sectorwise.machine.algebra import Float
from sectorwise.machine.operands import (
    SIGN_WORD,
    raw_word,
    read_long,
    read_predicate,
    read_word,
    split_predicates,
    unsupported,
    write_predicate,
    write_word,
)
from sectorwise.machine.semantics.float32 import CANONICAL_NAN
from sectorwise.machine.semantics.floats import extreme_bits
from sectorwise.machine.semantics.minima import less

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action
    from sectorwise.machine.port import Port

_MODES = ("IDX", "UP", "DOWN", "BFLY")


def shuffle(instruction: Instruction) -> Action:
    """SHFL: a word of another lane, or the own one where the source falls outside the segment (PTX ISA, shfl).

    PTX leaves open what a lane that does not take part gives; an H200 gives zero, whether a branch parted it, it has
    ended or it never was (tests/machine/test_warp.py), and the predicate is that of any source within the segment.
    """
    leading = instruction.operands[0]
    write_inside = write_predicate(leading)
    rest = instruction.operands[1:] if isinstance(leading, Predicate) else instruction.operands
    write, (value, lane, control) = write_word(rest[0]), (read_word(operand) for operand in rest[1:4])
    mode = next((name for name in instruction.modifiers if name in _MODES), None)
    if mode is None:
        raise unsupported(instruction, "the mode is not known")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        source, inside = _source_lane(algebra, mode, lane(port), control(port))
        if write_inside:
            write_inside(port, inside)
        given = algebra.select(port.active(), value(port), algebra.word(0))
        write(port, algebra.permute(given, source))

    return run


def _source_lane(algebra: Algebra[Value], mode: str, lane: Value, control: Value) -> tuple[Value, Value]:
    own, five_bits = algebra.lane(), algebra.word(31)
    operand = algebra.bit_and(lane, five_bits)
    segment = algebra.bit_and(algebra.shift_right(control, algebra.word(8)), five_bits)
    clamp = algebra.bit_and(control, five_bits)
    free = algebra.bit_xor(segment, five_bits)
    first = algebra.bit_and(own, segment)
    last = algebra.bit_or(first, algebra.bit_and(clamp, free))
    match mode:
        case "UP":
            source = algebra.subtract(own, operand)
            outside = algebra.less_signed(source, last)
        case "DOWN":
            source = algebra.add(own, operand)
            outside = algebra.less_signed(last, source)
        case "BFLY":
            source = algebra.bit_xor(own, operand)
            outside = algebra.less_signed(last, source)
        case _:
            source = algebra.bit_or(first, algebra.bit_and(operand, free))
            outside = algebra.less_signed(last, source)
    return algebra.select(outside, own, source), algebra.invert(outside)


def vote(instruction: Instruction) -> Action:
    """VOTE, VOTEU: the ballot of a predicate over the active lanes, and whether any, all or equal."""
    operands = instruction.operands
    source = read_predicate(operands[-1])
    registers = [operand for operand in operands[:-1] if isinstance(operand, Register)]
    predicates = [operand for operand in operands[:-1] if isinstance(operand, Predicate)]
    write = write_word(registers[0]) if registers else None
    write_outcome = write_predicate(predicates[0]) if predicates else None
    mode = next((name for name in instruction.modifiers if name in ("ANY", "ALL", "EQ")), "ALL")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        active = port.active()
        ballot = algebra.ballot(algebra.bit_and(source(port), active))
        if write:
            write(port, ballot)
        if write_outcome is None:
            return
        none = algebra.equal(ballot, algebra.word(0))
        every = algebra.equal(ballot, algebra.ballot(active))
        match mode:
            case "ANY":
                write_outcome(port, algebra.invert(none))
            case "ALL":
                write_outcome(port, every)
            case _:
                write_outcome(port, algebra.bit_or(none, every))

    return run


def match_lanes(instruction: Instruction) -> Action:
    """MATCH: the active lanes whose value equals the own (ANY), or all of them where all are equal (ALL)."""
    leading = [operand for operand in instruction.operands if isinstance(operand, Predicate)]
    rest = [operand for operand in instruction.operands if not isinstance(operand, Predicate)]
    wide = instruction.has("U64") or instruction.has("64")
    read = read_long(rest[1]) if wide else read_word(rest[1])
    write, write_all = write_word(rest[0]), write_predicate(leading[0] if leading else None)
    every = instruction.has("ALL")

    def run(port: Port[Value]) -> None:
        algebra, value, active = port.algebra, read(port), port.active()
        members = algebra.ballot(active)
        if every:
            same = algebra.equal(value, algebra.first_active(value, active))
            agreed = algebra.equal(algebra.ballot(algebra.bit_and(same, active)), members)
            write(port, algebra.select(agreed, members, algebra.word(0)))
            if write_all:
                write_all(port, agreed)
            return
        result = algebra.word(0)
        for lane in range(32):
            same = algebra.equal(value, algebra.permute(value, algebra.word(lane)))
            result = algebra.bit_or(result, algebra.select(same, algebra.word(1 << lane), algebra.word(0)))
        write(port, algebra.bit_and(result, members))

    return run


def reduce_warp(instruction: Instruction) -> Action:
    """REDUX: one word for the warp from all active lanes, by a butterfly; inactive lanes give the neutral value."""
    if instruction.has("F32"):
        return _reduce_singles(instruction)
    _, rest = split_predicates(instruction)
    read, write = read_word(rest[1]), write_word(rest[0])
    signed = instruction.has("S32")
    operations = ("OR", "AND", "XOR", "SUM", "MIN", "MAX")
    operation = next((name for name in instruction.modifiers if name in operations), "AND")
    smallest, largest = (0x80000000, 0x7FFFFFFF) if signed else (0, 0xFFFFFFFF)
    neutral = {"AND": 0xFFFFFFFF, "MIN": largest, "MAX": smallest}.get(operation, 0)

    def run(port: Port[Value]) -> None:
        algebra, active = port.algebra, port.active()
        value = algebra.select(active, read(port), algebra.word(neutral))
        for distance in (1, 2, 4, 8, 16):
            other = algebra.permute(value, algebra.bit_xor(algebra.lane(), algebra.word(distance)))
            value = _join(algebra, operation, value, other, signed=signed)
        write(port, algebra.first_active(value, active))

    return run


def _reduce_singles(instruction: Instruction) -> Action:
    """CREDUX.MIN.F32 and its kin: as with FMNMX a NaN loses against a number, or wins with NAN (PTX ISA, redux)."""
    _, rest = split_predicates(instruction)
    read, write = raw_word(rest[1]), write_word(rest[0])
    name = next((name for name in instruction.modifiers if name in ("MIN", "MAX", "MINABS", "MAXABS")), None)
    if name is None:
        raise unsupported(instruction, "the operation is not known")
    keeps_nan, takes_sign, minimum = instruction.has("NAN"), name.endswith("ABS"), name.startswith("MIN")

    def run(port: Port[Value]) -> None:
        algebra, active = port.algebra, port.active()
        value = algebra.select(active, read(port), algebra.word(CANONICAL_NAN))
        if takes_sign:
            value = algebra.bit_and(value, algebra.word(~SIGN_WORD))
        for distance in (1, 2, 4, 8, 16):
            other = algebra.permute(value, algebra.bit_xor(algebra.lane(), algebra.word(distance)))
            a, b = algebra.view_float(value, Float.F32), algebra.view_float(other, Float.F32)
            value = extreme_bits(algebra, a, b, algebra.predicate(minimum))
        lost = algebra.is_nan(algebra.view_float(value, Float.F32))
        if keeps_nan:
            wrong = algebra.bit_and(algebra.is_nan(algebra.view_float(read(port), Float.F32)), active)
            lost = algebra.invert(algebra.equal(algebra.ballot(wrong), algebra.word(0)))
        result = algebra.select(lost, algebra.word(CANONICAL_NAN), value)
        write(port, algebra.first_active(result, active))

    return run


def _join(algebra: Algebra[Value], operation: str, a: Value, b: Value, *, signed: bool) -> Value:
    match operation:
        case "OR":
            return algebra.bit_or(a, b)
        case "AND":
            return algebra.bit_and(a, b)
        case "XOR":
            return algebra.bit_xor(a, b)
        case "SUM":
            return algebra.add(a, b)
        case "MIN":
            return algebra.select(less(algebra, b, a, signed=signed), b, a)
        case _:
            return algebra.select(less(algebra, a, b, signed=signed), b, a)


def elect(instruction: Instruction) -> Action:
    """ELECT: a predicate that holds in the lowest active lane only, and that lane's index."""
    predicates = [operand for operand in instruction.operands if isinstance(operand, Predicate)]
    registers = [operand for operand in instruction.operands if isinstance(operand, Register)]
    write_chosen = write_predicate(predicates[0])
    write_lane = write_word(registers[0]) if registers else None

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        leader = algebra.first_active(algebra.lane(), port.active())
        if write_chosen:
            write_chosen(port, algebra.equal(algebra.lane(), leader))
        if write_lane:
            write_lane(port, leader)

    return run
