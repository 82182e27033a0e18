"""Turns the bytes of a cubin into kernels: instructions, parameters, resources, constants and variables."""

from __future__ import annotations

from dataclasses import replace

from sectorwise.binary.control import INSTRUCTION_BYTES, read_control
from sectorwise.binary.disassembly import disassemble
from sectorwise.binary.elf import ElfImage, Section, Symbol, corrupt_at, read_elf
from sectorwise.binary.ir import Cubin, Instruction, Kernel, Operand, Resources, Target
from sectorwise.binary.listing import CodeSection, Listing, Statement, read_listing
from sectorwise.binary.names import read_kernel_name
from sectorwise.binary.nvinfo import FunctionTable, read_function_table, read_kernel_table
from sectorwise.binary.parser import parse_statement
from sectorwise.binary.variables import read_banks, read_externals, read_variables

_RESERVED_SHARED_BYTES = 1024
_FIRST_TARGET_WITH_RESERVED_SHARED = 90
_SECTION_INFO_REGISTERS_SHIFT = 24
_FUNCTION_ALIGNMENT_BYTES = 128
_CALLS = frozenset({"CALL", "JMP", "JCAL"})
_OLD_ABI_VERSION = 7


def read_cubin(data: bytes, origin: str) -> Cubin:
    """Read all kernels of a cubin; `origin` is what errors call it.

    Raises:
        CorruptBinaryError: the bytes are no sound cubin; the text names the byte offset.
        MissingToolError: no disassembler is installed.
    """
    image = read_elf(data, origin)
    number = read_target_number(image)
    kernels = [symbol for symbol in image.symbols if symbol.is_kernel]
    code = [_code_of(image, kernel) for kernel in kernels]
    listing = read_listing(disassemble(data, origin, min((s.file_offset for s in code), default=0)))
    target = listing.target or f"sm_{number}"
    if number != int("".join(filter(str.isdigit, target))):
        raise corrupt_at(image, 48, f"the header says sm_{number}, the disassembler {target}")
    table = read_function_table(image)
    return Cubin(target, tuple(_read_kernel(image, listing, table, kernel, target, number) for kernel in kernels))


def read_target_number(image: ElfImage) -> int:
    """Return 90 for sm_90: bits 0 to 7 of the ELF flags up to ABI version 7, bits 8 to 15 after it."""
    number = image.flags & 0xFF if image.abi_version <= _OLD_ABI_VERSION else image.flags >> 8 & 0xFF
    if not number:
        raise corrupt_at(image, 48, f"the flags 0x{image.flags:x} name no target")
    return number


def _code_of(image: ElfImage, kernel: Symbol) -> Section:
    if kernel.section >= len(image.sections):
        raise corrupt_at(image, 0, f"kernel {kernel.name} is in section {kernel.section}, which is not there")
    section = image.sections[kernel.section]
    if section.size_bytes % INSTRUCTION_BYTES:
        raise corrupt_at(image, section.file_offset, f"{section.name} holds no whole number of 16-byte instructions")
    return section


def _read_kernel(
    image: ElfImage, listing: Listing, table: FunctionTable, kernel: Symbol, target: str, number: int
) -> Kernel:
    own = read_kernel_table(image, kernel.name)
    instructions, functions = _join_code(image, listing, kernel)
    section = _code_of(image, kernel)
    name = read_kernel_name(kernel.name)
    types = name.parameter_types
    return Kernel(
        name=kernel.name,
        target=target,
        instructions=instructions,
        parameters=own.parameters,
        parameter_base=own.parameter_base or 0,
        resources=Resources(
            registers_per_thread=table.registers.get(kernel.index, section.info >> _SECTION_INFO_REGISTERS_SHIFT),
            static_shared_bytes=_static_shared_bytes(image, kernel.name, number),
            local_bytes_per_thread=max(table.frame_bytes.get(kernel.index, 0), table.stack_bytes.get(kernel.index, 0)),
            barriers=own.barriers,
            max_threads_per_block=own.max_threads_per_block,
        ),
        functions=functions,
        constants=read_banks(image, kernel.name),
        variables=read_variables(image),
        externals=read_externals(image),
        readable_name=name.readable,
        parameter_types=types if types is not None and len(types) == len(own.parameters) else None,
    )


def _static_shared_bytes(image: ElfImage, kernel: str, number: int) -> int:
    section = image.section_named(f".nv.shared.{kernel}")
    if section is None:
        return 0
    reserved = _RESERVED_SHARED_BYTES if number >= _FIRST_TARGET_WITH_RESERVED_SHARED else 0
    return max(0, section.size_bytes - reserved)


def _join_code(image: ElfImage, listing: Listing, kernel: Symbol) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    """Lay the kernel's section and those of the functions that it calls one after the other."""
    homes = {s.name: s.section for s in image.symbols if s.kind == 2 and 0 < s.section < len(image.sections)}
    order = [image.sections[kernel.section]]
    bases = {kernel.section: 0}
    instructions: list[Instruction] = []
    functions: dict[str, int] = {}
    for section in order:
        code = listing.sections.get(section.name)
        if code is None or len(code.statements) != section.size_bytes // INSTRUCTION_BYTES:
            room, shown = section.size_bytes // INSTRUCTION_BYTES, len(code.statements) if code else 0
            why = f"{section.name} has room for {room} instructions, the disassembler shows {shown}"
            raise corrupt_at(image, section.file_offset, why)
        for name in _called_names(code):
            home = homes.get(name)
            if home is not None and home not in bases:
                last = order[-1]
                end = bases[last.index] + last.size_bytes
                bases[home] = -(-end // _FUNCTION_ALIGNMENT_BYTES) * _FUNCTION_ALIGNMENT_BYTES
                order.append(image.sections[home])
    for symbol in image.symbols:
        if symbol.kind == 2 and symbol.section in bases:
            functions[symbol.name] = bases[symbol.section] + symbol.value
    for section in order:
        code = listing.sections[section.name]
        content = image.content(section)
        base = bases[section.index]
        places = functions | {label: base + offset for label, offset in code.labels.items()}
        for statement in code.statements:
            instructions.append(_make_instruction(image, section, statement, content, base, places, len(instructions)))
    return tuple(instructions), functions


def _called_names(code: CodeSection) -> set[str]:
    return {
        operand.symbol
        for statement in code.statements
        if "`(" in statement.text and "`(." not in statement.text
        for operand in parse_statement(statement.text).operands
        if isinstance(operand, Target) and operand.symbol is not None
    }


def _make_instruction(
    image: ElfImage,
    section: Section,
    statement: Statement,
    content: bytes,
    base: int,
    places: dict[str, int],
    index: int,
) -> Instruction:
    parsed = parse_statement(statement.text)
    if statement.offset + INSTRUCTION_BYTES > len(content):
        raise corrupt_at(image, section.file_offset, f"{section.name} ends before 0x{statement.offset:x}")
    encoding = int.from_bytes(content[statement.offset : statement.offset + INSTRUCTION_BYTES], "little")
    return Instruction(
        index=index,
        offset=base + statement.offset,
        opcode=parsed.opcode,
        modifiers=parsed.modifiers,
        guard=parsed.guard,
        operands=tuple(_place_target(operand, places) for operand in parsed.operands),
        text=statement.text,
        encoding=encoding,
        control=read_control(encoding),
        location=statement.location,
        branch_targets=tuple(places[label] for label in statement.branch_targets if label in places),
    )


def _place_target(operand: Operand, places: dict[str, int]) -> Operand:
    if not isinstance(operand, Target) or operand.symbol is None:
        return operand
    name = operand.symbol
    return replace(operand, offset=places.get(name), symbol=None if name.startswith(".L") and name in places else name)
