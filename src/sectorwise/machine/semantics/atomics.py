"""Turns atomics and reductions (ATOM, ATOMG, ATOMS, RED) into updates of memory, one lane after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sectorwise.binary.ir import Register
from sectorwise.counting.atomics import is_done_in_shared
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.forms import access_of
from sectorwise.machine.operands import raw_words, unsupported, write_predicate, write_words
from sectorwise.machine.semantics.half import add_packed
from sectorwise.machine.semantics.memory import address_operand, read_address
from sectorwise.machine.semantics.minima import less

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port

Update = Callable[["Algebra[Value]", "Value", "Value"], "Value"]
"""Old value and operand to new value; words or longs by the width of the access."""

_INTEGER_OPERATIONS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH")


def update_memory(instruction: Instruction) -> Action:
    """ATOM, ATOMG, ATOMS, RED, REDG: reads, computes, writes; the old value goes to the destination if there is one."""
    access = access_of(instruction)
    if access is None:
        return lambda _port: None
    is_wide = access.width_bytes > 8
    if _VECTORS & set(instruction.modifiers) or (is_wide and instruction.has("EXCH")):
        return _update_vector(instruction, access)
    if is_wide:
        raise unsupported(instruction, "of atomics wider than 8 bytes only exchanges are known")
    if instruction.has("CAS") or instruction.has("CAST"):
        return _compare_and_swap(instruction, access)
    address = read_address(access, address_operand(instruction))
    destination, sources = _destination_and_sources(instruction)
    words = access.width_bytes // 4
    if instruction.has("ARRIVE"):
        return _arrive(access, address, destination)
    adds_one = instruction.has("POPC") and not sources
    operand = None if adds_one else _joined(sources[-1], words)
    update = _update_of(instruction, access)
    inexact = any(name.startswith(("F32", "F64", "F16", "BF16")) for name in instruction.modifiers)
    write = write_words(destination, words) if destination is not None else None
    write_done = write_predicate(instruction.operands[0])
    in_shared_too = is_done_in_shared(access.width_bytes, access.modifiers)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        place = address(port)
        shared = None
        if write_done is not None:
            # It is written before the operand is read, as it is as sure as the address.
            done = algebra.predicate(True)  # noqa: FBT003 - a value, not a switch
            if not in_shared_too:
                shared = algebra.equal(algebra.high(place), port.read_special("SR_SWINHI"))
                done = algebra.invert(shared)
            write_done(port, done)
        value = algebra.word(1) if operand is None else operand(port)

        def partial(inner: Algebra[Value], before: Value) -> Value:
            after = update(inner, before, value)
            return after if shared is None else inner.select(shared, before, after)

        old = port.atomic(access, place, partial, words, inexact=inexact)
        if write:
            write(port, list(old))

    return run


def _arrive(access: Access, address: Reader, destination: Register | None) -> Action:
    """ATOMS.ARRIVE.64: one arrival at an mbarrier as it is before sm_90, see `machine.arrivals`.

    The arrivals awaited are a negative number in bits 32 to 62. The last one carries into the phase, bit 63, and the
    arrivals of a whole phase, bits 0 to 29, are awaited again.
    """
    write = write_words(destination, 2) if destination is not None else None

    def update(inner: Algebra[Value], old: Value) -> Value:
        new = inner.add(old, inner.long(1 << 32))
        ends = inner.less_signed(inner.bit_xor(old, new), inner.long(0))
        expected = inner.bit_and(old, inner.long((1 << 30) - 1))
        again = inner.shift_left(inner.bit_or(expected, inner.long(1 << 30)), inner.word(32))
        return inner.select(ends, inner.add(new, again), new)

    def run(port: Port[Value]) -> None:
        old = port.atomic(access, address(port), update, 2)
        if write:
            write(port, list(old))

    return run


def _update_vector(instruction: Instruction, access: Access) -> Action:
    """Sums of several words a lane (`F32x4`, `F16x8`), and exchanges of 16 bytes: one request that updates each word.

    Lanes take their turns with every word in the same order, so that an exchange gives and leaves whole values.
    """
    address = read_address(access, address_operand(instruction))
    destination, sources = _destination_and_sources(instruction)
    count = access.width_bytes // 4
    operands = raw_words(sources[-1], count)
    update = _update_of(instruction, access)
    write = write_words(destination, count) if destination is not None else None

    def run(port: Port[Value]) -> None:
        given = [operand(port) for operand in operands]
        updates = [lambda inner, before, value=value: update(inner, before, value) for value in given]
        old = port.atomic_words(access, address(port), updates)
        if write:
            write(port, list(old))

    return run


def _destination_and_sources(instruction: Instruction) -> tuple[Register | None, list[Register]]:
    """Registers before the memory operand, and after it."""
    place = instruction.operands.index(address_operand(instruction))
    before = [operand for operand in instruction.operands[:place] if isinstance(operand, Register)]
    after = [operand for operand in instruction.operands[place:] if isinstance(operand, Register)]
    return (before[0] if before else None), after


def _joined(register: Register, words: int) -> Reader:
    readers = raw_words(register, words)
    if words == 1:
        return readers[0]
    return lambda port: port.algebra.join(readers[0](port), readers[1](port))


def _compare_and_swap(instruction: Instruction, access: Access) -> Action:
    """CAS gives the old value; CAST.SPIN tells in a register or predicate whether it has stored.

    The predicate of a generic CAS of 64 bits says that it was done, in shared memory too (`generic_updates`).
    """
    address = read_address(access, address_operand(instruction))
    destination, sources = _destination_and_sources(instruction)
    words = access.width_bytes // 4
    expected, replacement = _joined(sources[0], words), _joined(sources[1], words)
    write = write_words(destination, words) if destination is not None else None
    tests = instruction.has("CAST")
    write_stored = write_predicate(instruction.operands[0])

    def run(port: Port[Value]) -> None:
        algebra, place = port.algebra, address(port)
        if write_stored and not tests:
            write_stored(port, algebra.predicate(True))  # noqa: FBT003 - a value, not a switch
        compared, new = expected(port), replacement(port)

        def update(inner: Algebra[Value], old: Value) -> Value:
            return inner.select(inner.equal(old, compared), new, old)

        old = list(port.atomic(access, place, update, words))
        if tests:
            before = old[0] if words == 1 else algebra.join(old[0], old[1])
            stored = algebra.equal(before, compared)
            old = [algebra.from_predicate(stored), algebra.word(0)][:words]
            if write_stored:
                write_stored(port, stored)
        if write:
            write(port, old)

    return run


def _update_of(instruction: Instruction, access: Access) -> Update:
    operation = next((name for name in instruction.modifiers if name in _INTEGER_OPERATIONS), None)
    if instruction.has("POPC"):
        # POPC.INC adds the number of lanes with one address, and has no bound as INC has.
        operation = "ADD"
    if operation is None:
        raise unsupported(instruction, "the operation is not known")
    for name, update in _FLOAT_ADDITIONS.items():
        if instruction.has(name):
            if operation != "ADD":
                raise unsupported(instruction, "only sums of floats are known")
            return update(instruction)
    if access.width_bytes not in (4, 8) and operation != "EXCH":
        raise unsupported(instruction, "the width is not known")
    signed = instruction.has("S32") or instruction.has("S64")
    return lambda algebra, old, value: _integer(algebra, operation, old, value, signed=signed)


def _integer(algebra: Algebra[Value], operation: str, old: Value, value: Value, *, signed: bool) -> Value:
    match operation:
        case "ADD":
            return algebra.add(old, value)
        case "MIN":
            return algebra.select(less(algebra, value, old, signed=signed), value, old)
        case "MAX":
            return algebra.select(less(algebra, old, value, signed=signed), value, old)
        case "AND":
            return algebra.bit_and(old, value)
        case "OR":
            return algebra.bit_or(old, value)
        case "XOR":
            return algebra.bit_xor(old, value)
        case "INC":
            zero, one = algebra.word(0), algebra.word(1)
            return algebra.select(algebra.less_unsigned(old, value), algebra.add(old, one), zero)
        case "DEC":
            zero, one = algebra.word(0), algebra.word(1)
            outside = algebra.bit_or(algebra.equal(old, zero), algebra.less_unsigned(value, old))
            return algebra.select(outside, value, algebra.subtract(old, one))
        case _:
            return value


def _add_single(instruction: Instruction) -> Update:
    flushes = instruction.has("FTZ")

    def update(algebra: Algebra[Value], old: Value, value: Value) -> Value:
        a, b = algebra.view_float(old, Float.F32), algebra.view_float(value, Float.F32)
        if flushes:
            a, b = algebra.flush_denormals(a), algebra.flush_denormals(b)
        total = algebra.float_add(a, b, Rounding.NEAREST)
        return algebra.view_bits(algebra.flush_denormals(total) if flushes else total)

    return update


def _add_double(_instruction: Instruction) -> Update:
    def update(algebra: Algebra[Value], old: Value, value: Value) -> Value:
        a, b = algebra.view_float(old, Float.F64), algebra.view_float(value, Float.F64)
        total = algebra.view_bits(algebra.float_add(a, b, Rounding.NEAREST))
        # The memory's own adder leaves a NaN as it is.
        kept = algebra.select(algebra.is_nan(a), old, total)
        return algebra.select(algebra.is_nan(b), value, kept)

    return update


def _add_halves(kind: Float) -> Callable[[Instruction], Update]:
    def make(_instruction: Instruction) -> Update:
        return lambda algebra, old, value: add_packed(algebra, old, value, kind)

    return make


_FLOAT_ADDITIONS: dict[str, Callable[[Instruction], Update]] = {
    "F32": _add_single,
    "F64": _add_double,
    "F16x2": _add_halves(Float.F16),
    "BF16x2": _add_halves(Float.BF16),
    "BF16_V2": _add_halves(Float.BF16),
    "F32x2": _add_single,
    "F32x4": _add_single,
    "F16x4": _add_halves(Float.F16),
    "F16x8": _add_halves(Float.F16),
    "BF16x4": _add_halves(Float.BF16),
    "BF16x8": _add_halves(Float.BF16),
}
_VECTORS = frozenset({"F32x2", "F32x4", "F16x4", "F16x8", "BF16x4", "BF16x8"})
