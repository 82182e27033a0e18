"""Turns the data sections of a cubin into constant banks, module variables and the functions that it expects outside.

A relocation of kind 2 or 4 (64-bit address of data; in this project's cubins the only kinds outside debug sections)
marks eight bytes that the loader fills with the address of a symbol.
"""

from __future__ import annotations

import re

from sectorwise.binary.elf import (
    SECTION_NOBITS,
    SYMBOL_FUNCTION,
    SYMBOL_OBJECT,
    UNDEFINED_SECTION,
    ElfImage,
    Relocation,
    Symbol,
    corrupt_at,
)
from sectorwise.binary.ir import External, Variable

_MODULE_BANK = re.compile(r"\.nv\.constant(?P<bank>\d+)$")
_FIRST_DATA_BANK = 2
_CONSTANT_SPACE = "constant"
_GLOBAL_SPACE = "global"


def read_banks(image: ElfImage, kernel: str) -> dict[int, bytes]:
    """Return the initial bytes of constant banks 2 and up, by bank: the module's, and the kernel's own."""
    banks: dict[int, bytes] = {}
    for section in image.sections:
        if found := re.match(rf"\.nv\.constant(\d+)(?:\.{re.escape(kernel)})?$", section.name):
            bank = int(found[1])
            if bank >= _FIRST_DATA_BANK:
                banks[bank] = image.content(section)
    return banks


def read_variables(image: ElfImage) -> tuple[Variable, ...]:
    """Return the module's `__constant__` and `__device__` variables, with what the loader must fill in.

    Raises:
        CorruptBinaryError: a variable lies outside its section.
    """
    receivers = _receivers_by_symbol(image)
    found: list[Variable] = []
    for symbol in image.symbols:
        if symbol.kind != SYMBOL_OBJECT or not 0 < symbol.section < len(image.sections):
            continue
        section = image.sections[symbol.section]
        bank = _MODULE_BANK.match(section.name)
        if bank is None and not section.name.startswith(".nv.global"):
            continue
        if symbol.value + symbol.size_bytes > section.size_bytes:
            place = f"{symbol.size_bytes} bytes at 0x{symbol.value:x}"
            why = f"variable {symbol.name}, {place}, lies outside {section.name}"
            raise corrupt_at(image, section.file_offset, why)
        content = image.content(section)[symbol.value : symbol.value + symbol.size_bytes]
        found.append(
            Variable(
                name=symbol.name,
                space=_CONSTANT_SPACE if bank else _GLOBAL_SPACE,
                size_bytes=symbol.size_bytes,
                bank=int(bank["bank"]) if bank else None,
                offset_bytes=symbol.value if bank else None,
                initial=None if section.kind == SECTION_NOBITS else content,
                relocations=receivers.get(symbol.index, ()),
                pointers=_pointers_within(image, symbol),
            )
        )
    return tuple(found)


def read_externals(image: ElfImage) -> tuple[External, ...]:
    """Return the functions that the cubin expects from the driver (`vprintf`, `__assertfail`)."""
    receivers = _receivers_by_symbol(image)
    return tuple(
        External(symbol.name, receivers.get(symbol.index, ()))
        for symbol in image.symbols
        if symbol.kind == SYMBOL_FUNCTION and symbol.section == UNDEFINED_SECTION and symbol.name
    )


def _receivers_by_symbol(image: ElfImage) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return, for each symbol, the (bank, offset) of the module's constant words that receive its address."""
    receivers: dict[int, tuple[tuple[int, int], ...]] = {}
    for relocation in image.relocations:
        if relocation.section >= len(image.sections):
            continue
        if bank := _MODULE_BANK.match(image.sections[relocation.section].name):
            word = (int(bank["bank"]), relocation.offset)
            receivers[relocation.symbol] = (*receivers.get(relocation.symbol, ()), word)
    return receivers


def _pointers_within(image: ElfImage, symbol: Symbol) -> tuple[tuple[int, str, int], ...]:
    end = symbol.value + symbol.size_bytes
    return tuple(
        (relocation.offset - symbol.value, _symbol_name(image, relocation), relocation.addend)
        for relocation in image.relocations
        if relocation.section == symbol.section and symbol.value <= relocation.offset < end
    )


def _symbol_name(image: ElfImage, relocation: Relocation) -> str:
    if relocation.symbol >= len(image.symbols):
        section = image.sections[relocation.section]
        raise corrupt_at(image, section.file_offset, f"{section.name} points to symbol {relocation.symbol}, not there")
    return image.symbols[relocation.symbol].name
