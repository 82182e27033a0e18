"""Turns the `.nv.info` attributes of a cubin into parameters, registers, stack and barriers.

An attribute is a format byte, a code byte and a value: none (1), a byte (2) or a half word (3) in the next two bytes,
or a half word of length followed by that many bytes (4).
"""

from __future__ import annotations

import struct

from msgspec import Struct

from sectorwise.binary.elf import ElfImage, Section, corrupt_at
from sectorwise.binary.ir import Parameter

_FORMAT_SIZED = 4
_FORMATS = frozenset({1, 2, 3})
_FRAME_BYTES = 0x11
_STACK_BYTES = 0x12
_REGISTERS = 0x2F
_PARAMETER_LAYOUT = struct.Struct("<IHHI")
_BANK_LAYOUT = struct.Struct("<IHH")
_PAIR_LAYOUT = struct.Struct("<II")
_THREADS_LAYOUT = struct.Struct("<III")
_SIZE_SHIFT = 18
_UNKNOWN = 0xFFFFFFFF
"""What compilers before 12.8 write for the stack of a function that recurs."""
_MOST_REGISTERS = 255
_MOST_LOCAL_BYTES = 1 << 20
_MOST_THREADS = 1024


class Attribute(Struct, frozen=True):
    """One attribute: its code, its value, and where the value lies in the file."""

    code: int
    value: bytes
    file_offset: int


class FunctionTable(Struct, frozen=True):
    """What the module-wide `.nv.info` says of each function, by symbol index."""

    registers: dict[int, int]
    frame_bytes: dict[int, int]
    stack_bytes: dict[int, int]


class KernelTable(Struct, frozen=True):
    """What a kernel's own `.nv.info.<name>` says; `parameter_base` is an offset in constant bank 0, None if unsaid."""

    parameters: tuple[Parameter, ...]
    parameter_base: int | None
    max_threads_per_block: int | None
    barriers: int
    cluster: tuple[int, int, int] | None


def read_function_table(image: ElfImage) -> FunctionTable:
    """Read the module-wide attributes: registers, frame and stack bytes of each function.

    Raises:
        CorruptBinaryError: an attribute is cut off or of an unknown format.
    """
    found: dict[int, dict[int, int]] = {_REGISTERS: {}, _FRAME_BYTES: {}, _STACK_BYTES: {}}
    section = image.section_named(".nv.info")
    for attribute in _read_attributes(image, section) if section else []:
        if attribute.code in found:
            symbol, value = _unpack(image, attribute, _PAIR_LAYOUT)
            if value == _UNKNOWN:
                continue
            most = _MOST_REGISTERS if attribute.code == _REGISTERS else _MOST_LOCAL_BYTES
            if value > most:
                why = f"attribute 0x{attribute.code:02x} says {value} for a thread, {most} is the most there can be"
                raise corrupt_at(image, attribute.file_offset, why)
            found[attribute.code][symbol] = value
    return FunctionTable(found[_REGISTERS], found[_FRAME_BYTES], found[_STACK_BYTES])


def read_kernel_table(image: ElfImage, kernel: str) -> KernelTable:
    """Read a kernel's own attributes; a kernel without any has no parameters.

    Raises:
        CorruptBinaryError: an attribute is cut off, of an unknown format, or describes parameters that overlap.
    """
    parameters: list[Parameter] = []
    base: int | None = None
    max_threads: int | None = None
    barriers = 0
    cluster: tuple[int, int, int] | None = None
    section = image.section_named(f".nv.info.{kernel}")
    for attribute in _read_attributes(image, section) if section else []:
        match attribute.code:
            case 0x17:  # a parameter
                _, ordinal, offset, packed = _unpack(image, attribute, _PARAMETER_LAYOUT)
                parameters.append(Parameter(ordinal, offset, packed >> _SIZE_SHIFT))
            case 0x0A:  # where parameters begin in their constant bank
                _, base, _ = _unpack(image, attribute, _BANK_LAYOUT)
            case 0x05 | 0x10:  # the most threads of a block, or its very threads
                x, y, z = _unpack(image, attribute, _THREADS_LAYOUT)
                max_threads = x * y * z
                if not 0 < max_threads <= _MOST_THREADS:
                    why = f"a block of at most {x} x {y} x {z} threads is none that can be launched"
                    raise corrupt_at(image, attribute.file_offset, why)
            case 0x3D:  # the blocks of a cluster
                x, y, z = _unpack(image, attribute, _THREADS_LAYOUT)
                cluster = (x, y, z)
            case 0x4C:  # named barriers
                barriers = attribute.value[0]
            case _:
                pass
    parameters.sort(key=lambda parameter: parameter.ordinal)
    _check_parameters(image, section, parameters)
    return KernelTable(tuple(parameters), base, max_threads, barriers, cluster)


def _check_parameters(image: ElfImage, section: Section | None, parameters: list[Parameter]) -> None:
    end = 0
    for expected, parameter in enumerate(parameters):
        if section is not None and (parameter.ordinal != expected or parameter.offset_bytes < end):
            why = f"{section.name} places parameter {parameter.ordinal} at {parameter.offset_bytes}, after {end} bytes"
            raise corrupt_at(image, section.file_offset, why)
        end = parameter.offset_bytes + parameter.size_bytes


def _unpack(image: ElfImage, attribute: Attribute, layout: struct.Struct) -> tuple[int, ...]:
    if len(attribute.value) < layout.size:
        why = f"attribute 0x{attribute.code:02x} has {len(attribute.value)} bytes, {layout.size} are needed"
        raise corrupt_at(image, attribute.file_offset, why)
    return layout.unpack_from(attribute.value)


def _read_attributes(image: ElfImage, section: Section) -> list[Attribute]:
    content = image.content(section)
    attributes: list[Attribute] = []
    at = 0
    while at < len(content):
        place = section.file_offset + at
        if at + 4 > len(content):
            raise corrupt_at(image, place, f"{section.name} ends within an attribute")
        kind, code = content[at], content[at + 1]
        if kind == _FORMAT_SIZED:
            size = int.from_bytes(content[at + 2 : at + 4], "little")
            value = content[at + 4 : at + 4 + size]
            if len(value) < size:
                raise corrupt_at(image, place, f"attribute 0x{code:02x} of {section.name} goes past its section's end")
            at += 4 + size
        elif kind in _FORMATS:
            value = content[at + 2 : at + 4]
            at += 4
        else:
            raise corrupt_at(image, place, f"attribute 0x{code:02x} of {section.name} has the unknown format {kind}")
        attributes.append(Attribute(code, value, place))
    return attributes
