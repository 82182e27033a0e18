"""Turns the bytes of a cubin into its sections, symbols and relocations, or says at which byte they stop making sense.

The container is ELF64, little endian, of machine 190 (EM_CUDA); the layout of headers, symbols and relocations is the
System V ABI's. Every count, offset and size is checked against the bytes before it is used, so that a truncated or
corrupt file ends in an error that names the place, however it is broken.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from sectorwise.errors import CorruptBinaryError

MACHINE_CUDA = 190
RELOCATABLE = 1
"""Kind of a file that still has to be linked (`nvcc -dc`)."""
SECTION_NULL = 0
SECTION_PROGBITS = 1
SECTION_SYMTAB = 2
SECTION_NOBITS = 8
SYMBOL_OBJECT = 1
SYMBOL_FUNCTION = 2
UNDEFINED_SECTION = 0
_KINDS_OF_OLD_COMPILERS = {
    0x70000007: SECTION_NOBITS,
    0x70000008: SECTION_PROGBITS,
    0x70000009: SECTION_NOBITS,
    0x7000000A: SECTION_NOBITS,
}
"""Up to CUDA 11, `.nv.global`, `.nv.global.init`, `.nv.local` and `.nv.shared` had kinds of their own."""
ENTRY_POINT = 0x10
"""Bit of a function symbol's `other` byte that marks a kernel (printed as STO_CUDA_ENTRY)."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_REL = struct.Struct("<QQ")
_MAGIC = b"\x7fELF"
_CLASS_64_LITTLE = b"\x02\x01"
_LARGEST_SECTION_BYTES = 1 << 31


class Section(Struct, frozen=True):
    """One section: its header, and where its bytes lie in the file (`size_bytes` of a NOBITS section has none)."""

    index: int
    name: str
    kind: int
    file_offset: int
    size_bytes: int
    flags: int
    link: int
    info: int


class Symbol(Struct, frozen=True):
    """One symbol: `value` is an offset into the section `section`."""

    index: int
    name: str
    kind: int
    other: int
    section: int
    value: int
    size_bytes: int

    @property
    def is_kernel(self) -> bool:
        """Whether this is a function that a host can launch."""
        return self.kind == SYMBOL_FUNCTION and bool(self.other & ENTRY_POINT) and self.section != UNDEFINED_SECTION


class Relocation(Struct, frozen=True):
    """One place in section `section`, at byte `offset`, that receives the address of a symbol plus `addend`."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


class ElfImage(Struct, frozen=True):
    """A cubin's container: everything that its tables say, nothing interpreted."""

    data: bytes
    origin: str
    kind: int
    flags: int
    abi_version: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]

    def content(self, section: Section) -> bytes:
        """Return the bytes of `section`; a NOBITS section has none."""
        if section.kind == SECTION_NOBITS:
            return b""
        return self.data[section.file_offset : section.file_offset + section.size_bytes]

    def section_named(self, name: str) -> Section | None:
        """Return the first section called `name`."""
        return next((section for section in self.sections if section.name == name), None)


def read_elf(data: bytes, origin: str) -> ElfImage:
    """Read the container of a cubin; `origin` is the name that errors give it.

    Raises:
        CorruptBinaryError: the bytes are no cubin, or end early, or contradict themselves; the text has the offset.
    """
    sections, kind, flags, abi_version = _read_container(data, origin)
    return ElfImage(
        data=data,
        origin=origin,
        kind=kind,
        flags=flags,
        abi_version=abi_version,
        sections=sections,
        symbols=_read_symbols(data, origin, sections),
        relocations=_read_relocations(data, origin, sections),
    )


def read_kernel_names(data: bytes, origin: str) -> tuple[str, ...]:
    """Return the symbols of a cubin's kernels, in the order of its table, reading no more than that takes.

    Raises:
        CorruptBinaryError: as `read_elf`.
    """
    sections, *_ = _read_container(data, origin)
    return tuple(symbol.name for symbol in _read_symbols(data, origin, sections) if symbol.is_kernel)


def corrupt_at(image: ElfImage, file_offset: int, why: str) -> CorruptBinaryError:
    """Make the error for byte `file_offset` of `image`."""
    return _corrupt(image.origin, file_offset, why)


def _read_container(data: bytes, origin: str) -> tuple[tuple[Section, ...], int, int, int]:
    """Return the sections, and kind, flags and version of the ABI from the header."""
    if len(data) < _HEADER.size:
        raise _corrupt(origin, len(data), f"a cubin's header has {_HEADER.size} bytes and the file ends here")
    ident, kind, machine, _, _, _, section_table, flags, *_, entry_bytes, count, names_index = _HEADER.unpack_from(data)
    if ident[:4] != _MAGIC:
        raise _corrupt(origin, 0, f"a cubin starts with {_MAGIC!r}, this file with {ident[:4]!r}")
    if ident[4:6] != _CLASS_64_LITTLE:
        raise _corrupt(origin, 4, "a cubin is 64-bit little-endian ELF, this file is not")
    if machine != MACHINE_CUDA:
        raise _corrupt(origin, 18, f"ELF machine {machine} is not CUDA's ({MACHINE_CUDA})")
    return _read_sections(data, origin, section_table, entry_bytes, count, names_index), kind, flags, ident[8]


def _corrupt(origin: str, file_offset: int, why: str) -> CorruptBinaryError:
    return CorruptBinaryError(f"{origin}: not a readable cubin at byte 0x{file_offset:x}: {why}")


def _read_sections(
    data: bytes, origin: str, table: int, entry_bytes: int, count: int, names_index: int
) -> tuple[Section, ...]:
    if count == 0:
        raise _corrupt(origin, 60, "the header counts no sections")
    if entry_bytes != _SECTION.size:
        raise _corrupt(origin, 58, f"a section header has {_SECTION.size} bytes, this file says {entry_bytes}")
    if table + count * _SECTION.size > len(data):
        raise _corrupt(origin, len(data), f"the table of {count} sections at 0x{table:x} goes past the end of the file")
    rows = [_read_row(data, table + i * _SECTION.size) for i in range(count)]
    if names_index >= count:
        raise _corrupt(origin, 62, f"section {names_index} should hold the names, there are {count}")
    for i, (_, kind, _, _, offset, size, *_) in enumerate(rows):
        at = table + i * _SECTION.size
        if kind not in (SECTION_NULL, SECTION_NOBITS) and offset + size > len(data):
            why = f"section {i} claims 0x{size:x} bytes at 0x{offset:x}, past the end of the file"
            raise _corrupt(origin, at + 24, why)
        if size > _LARGEST_SECTION_BYTES:
            raise _corrupt(origin, at + 32, f"section {i} claims 0x{size:x} bytes")
    names = data[rows[names_index][4] : rows[names_index][4] + rows[names_index][5]]
    sections = []
    for i, (name, kind, row_flags, _, offset, size, link, info, *_) in enumerate(rows):
        spelled = _read_name(origin, names, name, table + i * _SECTION.size)
        sections.append(Section(i, spelled, kind, offset, size, row_flags, link, info))
    return tuple(sections)


def _read_row(data: bytes, at: int) -> tuple[int, ...]:
    name, kind, *rest = _SECTION.unpack_from(data, at)
    return name, _KINDS_OF_OLD_COMPILERS.get(kind, kind), *rest


def _read_name(origin: str, names: bytes, offset: int, at: int) -> str:
    end = names.find(b"\0", offset)
    if offset >= len(names) or end < 0:
        raise _corrupt(origin, at, f"the name at 0x{offset:x} lies outside its string table of 0x{len(names):x} bytes")
    try:
        return names[offset:end].decode()
    except UnicodeDecodeError:
        raise _corrupt(origin, at, f"the name at 0x{offset:x} of the string table is not UTF-8") from None


def _rows_of(data: bytes, origin: str, section: Section, layout: struct.Struct) -> list[tuple[int, tuple[int, ...]]]:
    if section.size_bytes % layout.size:
        why = f"{section.name} has 0x{section.size_bytes:x} bytes, no multiple of its entries' {layout.size}"
        raise _corrupt(origin, section.file_offset, why)
    places = range(section.file_offset, section.file_offset + section.size_bytes, layout.size)
    return [(place, layout.unpack_from(data, place)) for place in places]


def _read_symbols(data: bytes, origin: str, sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    table = next((section for section in sections if section.kind == SECTION_SYMTAB), None)
    if table is None:
        raise _corrupt(origin, len(data), "there is no symbol table")
    if table.link >= len(sections):
        why = f"the symbols' names should be in section {table.link}, which is not there"
        raise _corrupt(origin, table.file_offset, why)
    strings = sections[table.link]
    names = data[strings.file_offset : strings.file_offset + strings.size_bytes]
    return tuple(
        Symbol(i, _read_name(origin, names, name, place), info & 0xF, other, section, value, size)
        for i, (place, (name, info, other, section, value, size)) in enumerate(_rows_of(data, origin, table, _SYMBOL))
    )


def _read_relocations(data: bytes, origin: str, sections: tuple[Section, ...]) -> tuple[Relocation, ...]:
    found: list[Relocation] = []
    for section in sections:
        match section.kind:
            case 4:
                rows = _rows_of(data, origin, section, _RELA)
            case 9:
                rows = _rows_of(data, origin, section, _REL)
            case _:
                continue
        for _, (offset, info, *addend) in rows:
            found.append(Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend[0] if addend else 0))
    return tuple(found)
