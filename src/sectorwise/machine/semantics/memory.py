"""Turns loads, stores, async copies and matrix accesses into requests to the port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import ZERO_REGISTER, Address, Predicate, Register
from sectorwise.counting.request import Space
from sectorwise.machine.forms import access_of
from sectorwise.machine.operands import (
    predicate_value,
    raw_register,
    raw_words,
    read_predicate,
    unsupported,
    write_predicate,
    write_words,
)

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port


_RANK_SHIFT = 24
"""Shared memory of a cluster's block begins its rank times 16 MiB behind where the window begins."""


def _do_nothing(_port: Port[Value]) -> None:
    return


def address_operand(instruction: Instruction, place: int = 0) -> Address:
    """The instruction's memory operand, the first or a later one."""
    found = [operand for operand in instruction.operands if isinstance(operand, Address)]
    if len(found) <= place:
        raise unsupported(instruction, "a memory operand is expected")
    return found[place]


def _present(register: Register | None) -> Register | None:
    return None if register is None or register.index == ZERO_REGISTER else register


def read_short_address(address: Address) -> Reader:
    """A reader of a 32-bit address: base * scale + uniform + offset, modulo 2**32 (shared and local memory)."""
    base, uniform, offset = _present(address.base), _present(address.uniform), address.offset
    first = raw_register(base) if base else None
    second = raw_register(uniform) if uniform else None
    shift = address.scale.bit_length() - 1

    def run(port: Port[Value]) -> Value:
        algebra = port.algebra
        total = None
        if first:
            total = first(port)
            if shift:
                total = algebra.shift_left(total, algebra.word(shift))
        if second:
            value = second(port)
            total = value if total is None else algebra.add(total, value)
        if total is None:
            return algebra.word(offset)
        return algebra.add(total, algebra.word(offset)) if offset else total

    return run


def read_long_address(address: Address) -> Reader:
    """A reader of a 64-bit address (global and generic memory).

    The base is a pair unless it is marked U32; a uniform register is a pair where it is all there is besides a U32.
    """
    base, uniform, offset = _present(address.base), _present(address.uniform), address.offset
    narrow_base = "U32" in address.base_suffixes
    readers: list[Reader] = []
    if base:
        readers.append(_extended(base) if narrow_base else _pair(base))
    if uniform:
        wide = address.uniform_is_wide or base is None or narrow_base
        readers.append(_pair(uniform) if wide else _extended(uniform))

    def run(port: Port[Value]) -> Value:
        algebra = port.algebra
        if not readers:
            return algebra.long(offset)
        total = readers[0](port)
        for read in readers[1:]:
            total = algebra.add(total, read(port))
        return algebra.add(total, algebra.long(offset)) if offset else total

    return run


def _pair(register: Register) -> Reader:
    low, high = raw_words(register, 2)
    return lambda port: port.algebra.join(low(port), high(port))


def _extended(register: Register) -> Reader:
    low = raw_register(register)
    return lambda port: port.algebra.extend_zero(low(port))


def read_address(access: Access, address: Address) -> Reader:
    """A reader of the address that an access of this space takes."""
    short = access.space in (Space.SHARED, Space.LOCAL)
    return read_short_address(address) if short else read_long_address(address)


def load(instruction: Instruction) -> Action:
    """LDG, LDS, LDL, LD: words into consecutive registers; bytes and halves are extended."""
    access = access_of(instruction)
    if access is None:
        return _do_nothing
    registers = [operand for operand in instruction.operands if isinstance(operand, Register)]
    predicates = [operand for operand in instruction.operands if isinstance(operand, Predicate)]
    if any(predicate_value(operand) is None for operand in predicates) or not registers:
        raise unsupported(instruction, "a predicated load is not known")
    address = read_address(access, address_operand(instruction))
    words = max(1, access.width_bytes // 4)
    share = words // len(registers)
    writers = [write_words(register, share) for register in registers]
    rest = 32 - 8 * access.width_bytes if instruction.has("S8") or instruction.has("S16") else 0

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        values = list(port.load(access, address(port)))
        if rest:
            count = algebra.word(rest)
            values = [algebra.shift_right_signed(algebra.shift_left(values[0], count), count)]
        for place, write in enumerate(writers):
            write(port, values[place * share : (place + 1) * share])

    return run


def store(instruction: Instruction) -> Action:
    """STG, STS, STL, ST: consecutive registers into memory."""
    access = access_of(instruction)
    if access is None:
        return _do_nothing
    address = read_address(access, address_operand(instruction))
    registers = [operand for operand in instruction.operands if isinstance(operand, Register)]
    if not registers:
        raise unsupported(instruction, "a register to store is expected")
    share = max(1, access.width_bytes // 4) // len(registers)
    readers = [read for register in registers for read in raw_words(register, max(1, share))]

    def run(port: Port[Value]) -> None:
        port.store(access, address(port), [read(port) for read in readers])

    return run


def copy_async(instruction: Instruction) -> Action:
    """LDGSTS: global memory into shared; where its predicate fails, zeros are stored instead.

    ZFILL stores zeros behind the source's last byte, too: the address modulo the width is how many (what the compiler
    makes of a source size that only the launch knows).
    """
    access = access_of(instruction)
    if access is None:
        return _do_nothing
    width = access.width_bytes
    target = read_short_address(address_operand(instruction))
    source = read_long_address(address_operand(instruction, 1))
    predicates = [operand for operand in instruction.operands if isinstance(operand, Predicate)]
    keeps = read_predicate(predicates[0]) if predicates and predicate_value(predicates[0]) is not True else None
    fills = instruction.has("ZFILL")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        address = source(port)
        kept = algebra.word(width) if keeps or fills else None
        if fills:
            missing = algebra.bit_and(algebra.low(address), algebra.word(width - 1))
            address = algebra.bit_and(address, algebra.long(-width))
            kept = algebra.subtract(algebra.word(width), missing)
        if keeps and kept is not None:
            kept = algebra.select(keeps(port), kept, algebra.word(0))
        port.copy_async(access, target(port), address, kept)

    return run


def load_matrix(instruction: Instruction) -> Action:
    """LDSM: 8x8 matrices of 16-bit elements, one word a lane and matrix; MT88 transposes each."""
    access = access_of(instruction)
    if access is None:
        return _do_nothing
    if "M88" not in instruction.modifiers and "MT88" not in instruction.modifiers:
        raise unsupported(instruction, "this matrix shape is not known")
    address = read_short_address(address_operand(instruction))
    write = write_words(instruction.operands[0], access.matrices)
    transposes = instruction.has("MT88")

    def run(port: Port[Value]) -> None:
        values = list(port.load_matrix(access, address(port)))
        if transposes:
            values = [transpose(port.algebra, value) for value in values]
        write(port, values)

    return run


def store_matrix(instruction: Instruction) -> Action:
    """STSM: the inverse of LDSM."""
    access = access_of(instruction)
    if access is None:
        return _do_nothing
    if "M88" not in instruction.modifiers and "MT88" not in instruction.modifiers:
        raise unsupported(instruction, "this matrix shape is not known")
    address = read_short_address(address_operand(instruction))
    readers = raw_words(instruction.operands[-1], access.matrices)
    transposes = instruction.has("MT88")

    def run(port: Port[Value]) -> None:
        values = [read(port) for read in readers]
        if transposes:
            values = [transpose(port.algebra, value) for value in values]
        port.store_matrix(access, address(port), values)

    return run


def transpose_matrix(instruction: Instruction) -> Action:
    """MOVM.16.MT88: transposes an 8x8 matrix of 16-bit elements that lies across the warp."""
    destination, source = instruction.operands[:2]
    if not instruction.has("MT88"):
        raise unsupported(instruction, "this matrix shape is not known")
    read, write = raw_words(source, 1)[0], write_words(destination, 1)
    return lambda port: write(port, [transpose(port.algebra, read(port))])


def transpose(algebra: Algebra[Value], value: Value) -> Value:
    """An 8x8 matrix of 16-bit elements, transposed; lane l holds elements 2 (l mod 4) and the next of row l / 4."""
    lane = algebra.lane()
    row, pair = algebra.shift_right(lane, algebra.word(2)), algebra.bit_and(lane, algebra.word(3))
    # Element (2 * pair, row) of the source lies in lane 8 * pair + row / 2, in its upper half where row is odd.
    holder = algebra.add(
        algebra.shift_left(pair, algebra.word(3)),
        algebra.shift_right(row, algebra.word(1)),
    )
    count = algebra.shift_left(algebra.bit_and(row, algebra.word(1)), algebra.word(4))
    first = algebra.shift_right(algebra.permute(value, holder), count)
    second = algebra.shift_right(algebra.permute(value, algebra.add(holder, algebra.word(4))), count)
    lower = algebra.bit_and(first, algebra.word(0xFFFF))
    return algebra.bit_or(lower, algebra.shift_left(second, algebra.word(16)))


def query_space(instruction: Instruction) -> Action:
    """QSPC: whether a generic address lies in the block's own shared memory (S), or in any of its cluster's (D).

    Or in local (L) or global (G) memory. Shared memory of the block with rank r begins r times 16 MiB behind the
    window's begin. Measured on an H200: `spaces.json` beside the tests of devices.
    """
    predicates = [operand for operand in instruction.operands if isinstance(operand, Predicate)]
    registers = [operand for operand in instruction.operands if isinstance(operand, Register)]
    space = next((name for name in instruction.modifiers if name in ("S", "D", "L", "G")), None)
    if space is None or _present(registers[0] if registers else None):
        raise unsupported(instruction, "this query is not known")
    address, write = read_long_address(address_operand(instruction)), write_predicate(predicates[0])

    def run(port: Port[Value]) -> None:
        if write is None:
            return
        algebra, place = port.algebra, address(port)
        upper = algebra.high(place)
        shared = algebra.equal(upper, port.read_special("SR_SWINHI"))
        local = algebra.equal(upper, port.read_special("SR_LWINHI"))
        match space:
            case "S":
                rank = algebra.shift_right(algebra.low(place), algebra.word(_RANK_SHIFT))
                inside = algebra.bit_and(shared, algebra.equal(rank, port.read_special("SR_CgaCtaId")))
            case "D":
                inside = shared
            case "L":
                inside = local
            case _:
                inside = algebra.invert(algebra.bit_or(shared, local))
        write(port, inside)

    return run


def touch_unknown(instruction: Instruction) -> Action:
    """Texture and surface accesses: neither where nor what they read or write is known."""
    raise unsupported(instruction, "texture and surface memory is not modelled")
