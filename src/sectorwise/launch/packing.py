"""Turns launch arguments and the addresses of their buffers into the bytes that a kernel gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    TensorMapArgument,
)
from sectorwise.launch.dtypes import ELEMENT_TYPES, find_misfit
from sectorwise.launch.encoding import encode_scalar
from sectorwise.launch.map_bytes import MAP_ALIGNMENT_BYTES, MAP_BYTES, encode_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sectorwise.launch.config import Argument

    Path = tuple[int | str, ...]
    AddressOf = Callable[[PointerArgument | BufferArgument, Path], int]

POINTER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Extent:
    """Size and alignment of a value in memory, in bytes."""

    size_bytes: int
    alignment_bytes: int


class MisfitError(ValueError):
    """A value does not fit the place that it is for; the text says what was expected and given."""


def walk_buffers(argument: Argument, path: Path) -> Iterator[tuple[Path, BufferArgument]]:
    """Yield the buffers of an argument, those inside structs too, each with the way that leads to it."""
    match argument:
        case BufferArgument():
            yield path, argument
        case StructArgument(fields=fields):
            for index, member in enumerate(fields):
                yield from walk_buffers(member, (*path, index))
        case TensorMapArgument(buffer=buffer):
            yield (*path, 0), buffer
        case _:
            return


def measure_member(argument: Argument) -> Extent:
    """Return what a value takes inside a struct, with C's alignment.

    A number without a type is an `int` there if it fits, else 64 bits wide; a fraction is a `float`.
    """
    match argument:
        case BufferArgument() | PointerArgument():
            return Extent(POINTER_BYTES, POINTER_BYTES)
        case ScalarArgument():
            size_bytes = ELEMENT_TYPES[_member_dtype(argument)].size_bytes
            return Extent(size_bytes, size_bytes)
        case BytesArgument(data=data):
            return Extent(len(data), 1)
        case TensorMapArgument():
            return Extent(MAP_BYTES, MAP_ALIGNMENT_BYTES)
        case StructArgument(fields=fields):
            size_bytes, alignment_bytes = 0, 1
            for extent in map(measure_member, fields):
                alignment_bytes = max(alignment_bytes, extent.alignment_bytes)
                size_bytes = _align(size_bytes, extent.alignment_bytes) + extent.size_bytes
            return Extent(_align(size_bytes, alignment_bytes), alignment_bytes)


def pack_argument(
    argument: Argument, size_bytes: int, address_of: AddressOf, path: Path, declared: str | None = None
) -> bytes:
    """Return the `size_bytes` bytes of an argument; a number without a type gets the type `declared`, or the size's.

    Raises MisfitError if the argument has another size, or its value is out of range.
    """
    match argument:
        case ScalarArgument(value=value, dtype=dtype):
            name = dtype or declared or _dtype_of_size(value, size_bytes)
            element = ELEMENT_TYPES[name]
            if element.size_bytes != size_bytes:
                raise MisfitError(f"expected {_count_bytes(size_bytes)}, got {name}, which has {element.size_bytes}")
            trouble = find_misfit(value, element)
            if trouble:
                raise MisfitError(trouble)
            return encode_scalar(value, element)
        case BufferArgument() | PointerArgument():
            if size_bytes != POINTER_BYTES:
                raise MisfitError(f"expected {_count_bytes(size_bytes)}, got an address, which has {POINTER_BYTES}")
            return address_of(argument, path).to_bytes(POINTER_BYTES, "little")
        case BytesArgument(data=data):
            if size_bytes != len(data):
                raise MisfitError(f"expected {_count_bytes(size_bytes)}, got {len(data)}")
            return data
        case TensorMapArgument(buffer=buffer):
            if size_bytes != MAP_BYTES:
                raise MisfitError(f"expected {_count_bytes(size_bytes)}, got a tensor map, which has {MAP_BYTES}")
            return encode_map(argument, address_of(buffer, (*path, 0)))
        case StructArgument():
            extent = measure_member(argument)
            if size_bytes != extent.size_bytes:
                raise MisfitError(f"expected {_count_bytes(size_bytes)}, got a struct of {extent.size_bytes}")
            return _pack_struct(argument, address_of, path)


def _pack_struct(struct: StructArgument, address_of: AddressOf, path: Path) -> bytes:
    packed = bytearray()
    for index, member in enumerate(struct.fields):
        extent = measure_member(member)
        packed += bytes(_align(len(packed), extent.alignment_bytes) - len(packed))
        dtype = _member_dtype(member) if isinstance(member, ScalarArgument) else None
        packed += pack_argument(member, extent.size_bytes, address_of, (*path, index), dtype)
    return bytes(packed) + bytes(measure_member(struct).size_bytes - len(packed))


def _member_dtype(scalar: ScalarArgument) -> str:
    if scalar.dtype is not None:
        return scalar.dtype
    if isinstance(scalar.value, float):
        return "f32"
    names = ("i32", "i64", "u64")
    return next((name for name in names if find_misfit(scalar.value, ELEMENT_TYPES[name]) is None), "u64")


def _dtype_of_size(value: float, size_bytes: int) -> str:
    """Return the type of a plain number for a parameter of which only the size is known."""
    if isinstance(value, float):
        if size_bytes not in {4, 8}:
            hint = "; write f16(...) or bf16(...)" if size_bytes == 2 else ""
            raise MisfitError(f"expected {_count_bytes(size_bytes)}, got {value}{hint}")
        return "f32" if size_bytes == 4 else "f64"
    if size_bytes not in {1, 2, 4, 8}:
        raise MisfitError(f"expected {_count_bytes(size_bytes)}, as {{...}} or bytes(...), got the number {value}")
    return f"{'i' if value < 0 else 'u'}{8 * size_bytes}"


def _count_bytes(size_bytes: int) -> str:
    return f"{size_bytes} byte{'s' if size_bytes != 1 else ''}"


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
