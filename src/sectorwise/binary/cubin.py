"""Turns the bytes of a cubin into kernels: instructions, parameters, resources, constants and variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.binary.control import INSTRUCTION_BYTES, read_control
from sectorwise.binary.disassembly import disassemble
from sectorwise.binary.elf import RELOCATABLE, SYMBOL_FUNCTION, ElfImage, Section, Symbol, corrupt_at, read_elf
from sectorwise.binary.ir import AddressHalf, Cubin, Immediate, Instruction, Kernel, Operand, Resources, Target
from sectorwise.binary.listing import CodeSection, Listing, Statement, read_listing
from sectorwise.binary.names import read_kernel_name
from sectorwise.binary.nvinfo import FunctionTable, KernelTable, read_function_table, read_kernel_table
from sectorwise.binary.parser import parse_statement
from sectorwise.binary.variables import read_banks, read_externals, read_variables
from sectorwise.errors import UnsupportedDeviceError

if TYPE_CHECKING:
    from sectorwise.binary.ir import External, Variable

_RESERVED_SHARED_BYTES = 1024
_FIRST_TARGET_WITH_RESERVED_SHARED = 90
_SECTION_INFO_REGISTERS_SHIFT = 24
_FUNCTION_ALIGNMENT_BYTES = 128
_OLD_ABI_VERSION = 7
_FIRST_TARGET = 75
_SECTION_FLAGS_BARRIERS_SHIFT = 20
_SECTION_FLAGS_BARRIERS_MASK = 0x7F
_ADDRESS_TERM = re.compile(r"\(?(?P<name>[^\s()]+)(?: \+ (?P<addend>[^\s()]+))?\)?")


class _Module(Struct, frozen=True):
    """What all kernels of one cubin share."""

    image: ElfImage
    listing: Listing
    number: int
    target: str
    table: FunctionTable
    functions: tuple[Symbol, ...]
    variables: tuple[Variable, ...]
    externals: tuple[External, ...]


def read_cubin(data: bytes, origin: str, only: tuple[str, ...] = ()) -> Cubin:
    """Read the kernels of a cubin, those with the symbols `only` alone if all of these are there.

    `origin` is what errors call the cubin.

    Raises:
        CorruptBinaryError: the bytes are no sound cubin; the text names the byte offset.
        UnsupportedDeviceError: the cubin is for a target whose code is not read.
        MissingToolError: no disassembler is installed.
    """
    image = read_elf(data, origin)
    number = read_target_number(image)
    _refuse_unsupported(image, number)
    found = [symbol for symbol in image.symbols if symbol.is_kernel]
    kernels = [symbol for symbol in found if symbol.name in only]
    if len(kernels) == len(found) or not {symbol.name for symbol in kernels}.issuperset(only):
        kernels = []
    wanted = _list_wanted(image, kernels)
    kernels = kernels or found
    code = [_code_of(image, kernel) for kernel in kernels]
    code_offset = min((section.file_offset for section in code), default=0)
    listing = read_listing(disassemble(data, origin, code_offset, wanted))
    target = listing.target or f"sm_{number}"
    if number != int("".join(filter(str.isdigit, target))):
        raise corrupt_at(image, 48, f"the header says sm_{number}, the disassembler {target}")
    module = _Module(
        image=image,
        listing=listing,
        number=number,
        target=target,
        table=read_function_table(image),
        functions=tuple(s for s in image.symbols if s.kind == SYMBOL_FUNCTION and 0 < s.section < len(image.sections)),
        variables=read_variables(image),
        externals=read_externals(image),
    )
    return Cubin(target, tuple(_read_kernel(module, kernel) for kernel in kernels))


def _list_wanted(image: ElfImage, kernels: list[Symbol]) -> tuple[int, ...]:
    """Return the symbols of the functions to be disassembled: these kernels, and functions in sections of their own.

    None where there are no kernels: then all are.
    """
    if not kernels:
        return ()
    of_kernels = {symbol.section for symbol in image.symbols if symbol.is_kernel}
    functions = [symbol for symbol in image.symbols if symbol.kind == SYMBOL_FUNCTION and symbol.section > 0]
    shared = [symbol.index for symbol in functions if symbol.section not in of_kernels]
    return (*(kernel.index for kernel in kernels), *shared)


def read_target_number(image: ElfImage) -> int:
    """Return 90 for sm_90: bits 0 to 7 of the ELF flags up to ABI version 7, bits 8 to 15 after it."""
    number = image.flags & 0xFF if image.abi_version <= _OLD_ABI_VERSION else image.flags >> 8 & 0xFF
    if not number:
        raise corrupt_at(image, 48, f"the flags 0x{image.flags:x} name no target")
    return number


def _refuse_unsupported(image: ElfImage, number: int) -> None:
    if number < _FIRST_TARGET:
        message = f"{image.origin} is compiled for sm_{number}: code for sm_{_FIRST_TARGET} and later is read"
        raise UnsupportedDeviceError(message)
    if image.kind == RELOCATABLE:
        raise corrupt_at(image, 16, "it is a relocatable object (nvcc -dc), which has to be linked first (nvcc -dlink)")


def _code_of(image: ElfImage, kernel: Symbol) -> Section:
    if kernel.section >= len(image.sections):
        raise corrupt_at(image, 0, f"kernel {kernel.name} is in section {kernel.section}, which is not there")
    section = image.sections[kernel.section]
    if section.size_bytes % INSTRUCTION_BYTES:
        raise corrupt_at(image, section.file_offset, f"{section.name} holds no whole number of 16-byte instructions")
    return section


def _read_kernel(module: _Module, kernel: Symbol) -> Kernel:
    own = read_kernel_table(module.image, kernel.name)
    bases = _lay_out(module, kernel)
    functions = {s.name: bases[s.section] + s.value for s in module.functions if s.section in bases}
    name = read_kernel_name(kernel.name)
    types = name.parameter_types
    return Kernel(
        name=kernel.name,
        target=module.target,
        instructions=_join_code(module, bases, functions),
        parameters=own.parameters,
        parameter_base=own.parameter_base or 0,
        resources=_read_resources(module, kernel, own),
        functions=functions,
        constants=read_banks(module.image, kernel.name),
        variables=module.variables,
        externals=module.externals,
        readable_name=name.readable,
        parameter_types=types if types is not None and len(types) == len(own.parameters) else None,
    )


def _read_resources(module: _Module, kernel: Symbol, own: KernelTable) -> Resources:
    table, section = module.table, _code_of(module.image, kernel)
    in_flags = section.flags >> _SECTION_FLAGS_BARRIERS_SHIFT & _SECTION_FLAGS_BARRIERS_MASK
    shared = module.image.section_named(f".nv.shared.{kernel.name}")
    reserved_bytes = _RESERVED_SHARED_BYTES if module.number >= _FIRST_TARGET_WITH_RESERVED_SHARED else 0
    return Resources(
        registers_per_thread=table.registers.get(kernel.index, section.info >> _SECTION_INFO_REGISTERS_SHIFT),
        static_shared_bytes=max(0, shared.size_bytes - reserved_bytes) if shared else 0,
        local_bytes_per_thread=max(table.frame_bytes.get(kernel.index, 0), table.stack_bytes.get(kernel.index, 0)),
        barriers=own.barriers or in_flags,
        max_threads_per_block=own.max_threads_per_block,
        cluster=own.cluster,
    )


def _lay_out(module: _Module, kernel: Symbol) -> dict[int, int]:
    """Give each section of code that the kernel needs, by index, its first offset: its own at 0, callees after it."""
    homes = {symbol.name: symbol.section for symbol in module.functions}
    bases = {kernel.section: 0}
    waiting = [_code_of(module.image, kernel)]
    end = 0
    for section in waiting:
        bases[section.index] = end
        end = -(-(end + section.size_bytes) // _FUNCTION_ALIGNMENT_BYTES) * _FUNCTION_ALIGNMENT_BYTES
        for name in _called_names(_find_code(module, section)):
            home = homes.get(name)
            if home is not None and home not in bases:
                bases[home] = 0
                waiting.append(module.image.sections[home])
    return bases


def _find_code(module: _Module, section: Section) -> CodeSection:
    code = module.listing.sections.get(section.name)
    room, shown = section.size_bytes // INSTRUCTION_BYTES, len(code.statements) if code else 0
    if code is None or shown != room:
        why = f"{section.name} has room for {room} instructions, the disassembler shows {shown}"
        raise corrupt_at(module.image, section.file_offset, why)
    return code


def _called_names(code: CodeSection) -> list[str]:
    names = {
        operand.symbol: None
        for statement in code.statements
        if "`(" in statement.text and "`(." not in statement.text
        for operand in parse_statement(statement.text).operands
        if isinstance(operand, Target) and operand.symbol is not None
    }
    return list(names)


def _join_code(module: _Module, bases: dict[int, int], functions: dict[str, int]) -> tuple[Instruction, ...]:
    instructions: list[Instruction] = []
    for index, base in bases.items():
        section = module.image.sections[index]
        code = _find_code(module, section)
        content = module.image.content(section)
        places = functions | {label: base + offset for label, offset in code.labels.items()}
        for statement in code.statements:
            if statement.offset + INSTRUCTION_BYTES > len(content):
                why = f"{section.name} ends before 0x{statement.offset:x}"
                raise corrupt_at(module.image, section.file_offset, why)
            word = content[statement.offset : statement.offset + INSTRUCTION_BYTES]
            instructions.append(_make_instruction(statement, word, base, places, len(instructions)))
    return tuple(instructions)


def _make_instruction(statement: Statement, word: bytes, base: int, places: dict[str, int], index: int) -> Instruction:
    parsed = parse_statement(statement.text)
    encoding = int.from_bytes(word, "little")
    return Instruction(
        index=index,
        offset=base + statement.offset,
        opcode=parsed.opcode,
        modifiers=parsed.modifiers,
        guard=parsed.guard,
        operands=tuple(_place(operand, places) for operand in parsed.operands),
        text=statement.text,
        encoding=encoding,
        control=read_control(encoding),
        location=statement.location,
        branch_targets=tuple(places[label] for label in statement.branch_targets if label in places),
    )


def _place(operand: Operand, places: dict[str, int]) -> Operand:
    """Replace the names of labels and functions by their offsets in the joined code."""
    match operand:
        case Target(_, str(name)):
            is_label = name.startswith(".L") and name in places
            return replace(operand, offset=places.get(name), symbol=None if is_label else name)
        case AddressHalf(symbol, is_high):
            found = _ADDRESS_TERM.fullmatch(symbol)
            name, addend = (found["name"], found["addend"] or "0x0") if found else (symbol, "0x0")
            label = places.get(addend.removesuffix("@srel"))
            if name in places and (label is not None or addend == "0x0"):
                # The code of a kernel starts at 0 here, so the address of a place in it is its offset.
                offset = places[name] if label is None else label
                return Immediate(offset >> 32 if is_high else offset & 0xFFFFFFFF)
            return replace(operand, symbol=name, addend=int(addend, 16)) if addend.startswith("0x") else operand
        case _:
            return operand
