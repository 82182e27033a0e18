"""Turns the spelling of a kernel parameter's type (`const float4 * __restrict__`) into what an argument must be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.launch.config import BufferArgument, PointerArgument, ScalarArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES

if TYPE_CHECKING:
    from sectorwise.launch.config import Argument

_NAMED = {
    "float": "f32",
    "double": "f64",
    "__half": "f16",
    "half": "f16",
    "__nv_bfloat16": "bf16",
    "nv_bfloat16": "bf16",
    "bool": "u8",
    "size_t": "u64",
    "ptrdiff_t": "i64",
    "uchar": "u8",
    "ushort": "u16",
    "uint": "u32",
    "longlong": "i64",
    "ulonglong": "u64",
    "ulong": "u64",
    "__half2": "f16",
    "half2": "f16",
    "__nv_bfloat162": "bf16",
    "nv_bfloat162": "bf16",
}
_QUALIFIERS = frozenset(
    {"const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "std", "__grid_constant__"}
)
_INTEGER_WORDS = frozenset({"signed", "unsigned", "char", "short", "int", "long"})
_VECTOR = re.compile(r"(?P<base>u?(?:char|short|int|long|longlong)|float|double)[1-4]")
_FIXED = re.compile(r"(?P<unsigned>u?)int(?P<bits>8|16|32|64)_t")


@dataclass(frozen=True, slots=True)
class ParameterType:
    """What is known of a parameter's type: whether it is a pointer, and the type of its elements or of its number."""

    text: str
    is_pointer: bool
    dtype: str | None
    is_vector: bool = False


def read_parameter_type(text: str) -> ParameterType:
    """Return what the spelling of a C++ type says; of structs and other names, only that they are no pointer."""
    plain = text
    while (without := re.sub(r"<[^<>]*>", "", plain)) != plain:
        plain = without
    packed = "".join(word for word in re.findall(r"\w+|[*\]]", plain) if word not in _QUALIFIERS)
    if packed.count("*") > 1:
        return ParameterType(text, is_pointer=True, dtype="u64")
    is_pointer = packed.endswith(("*", "]"))
    words = [word for word in re.findall(r"\w+", plain.partition("[")[0]) if word not in _QUALIFIERS]
    vector = _VECTOR.fullmatch(words[0]) if len(words) == 1 else None
    dtype = _name_number([vector["base"]] if vector else words)
    is_pair = bool(words) and words[0].endswith("2") and words[0].startswith(("__half", "half", "__nv_b", "nv_b"))
    return ParameterType(text, is_pointer, dtype, is_vector=vector is not None or is_pair)


def find_mismatch(argument: Argument, declared: ParameterType) -> str | None:
    """Return why an argument is not for a parameter of this type, None if it is or nothing is known against it."""
    match argument:
        case BufferArgument(dtype=dtype):
            if not declared.is_pointer:
                return _unless_address(declared, f"{dtype}[{argument.count}]")
            return _find_element_mismatch(dtype, declared)
        case PointerArgument():
            return None if declared.is_pointer else _unless_address(declared, "a pointer")
        case ScalarArgument(value=value, dtype=dtype):
            if declared.is_pointer:
                example = f"{declared.dtype or 'f32'}[count]"
                return (
                    None if value == 0 else f"expected a buffer for '{declared.text}', such as {example}, got {value}"
                )
            if declared.dtype is None or declared.is_vector:
                return None
            return _find_number_mismatch(value, dtype, declared)
        case _:
            return None


def _name_number(words: list[str]) -> str | None:
    if len(words) == 1 and words[0] in _NAMED:
        return _NAMED[words[0]]
    fixed = _FIXED.fullmatch(words[0]) if len(words) == 1 else None
    if fixed:
        return f"{'u' if fixed['unsigned'] else 'i'}{fixed['bits']}"
    if not words or not set(words) <= _INTEGER_WORDS:
        return None
    bits = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else 32
    return f"{'u' if 'unsigned' in words else 'i'}{bits}"


def _unless_address(declared: ParameterType, given: str) -> str | None:
    """Eight-byte whole numbers may carry addresses, as may types of which nothing is known."""
    if declared.dtype in {None, "i64", "u64"}:
        return None
    return f"expected a number for '{declared.text}', got {given}"


def _find_element_mismatch(dtype: str, declared: ParameterType) -> str | None:
    """Bytes and vectors (`uint4`) are views of anything, 16-bit words of half precision; all else is as declared."""
    if declared.dtype is None or declared.is_vector:
        return None
    given, wanted = ELEMENT_TYPES[dtype], ELEMENT_TYPES[declared.dtype]
    if 1 in {given.size_bytes, wanted.size_bytes}:
        return None
    same_kind = given.is_float == wanted.is_float or given.name == f"u{8 * given.size_bytes}"
    if given.size_bytes == wanted.size_bytes and same_kind:
        return None
    return f"expected a buffer of {wanted.name} for '{declared.text}', got one of {dtype}"


def _find_number_mismatch(value: float, dtype: str | None, declared: ParameterType) -> str | None:
    wanted = ELEMENT_TYPES[declared.dtype or "i32"]
    if dtype is None:
        is_fraction = not wanted.is_float and isinstance(value, float)
        return f"expected a whole number for '{declared.text}', got {value}" if is_fraction else None
    given = ELEMENT_TYPES[dtype]
    if given.size_bytes == wanted.size_bytes and given.is_float == wanted.is_float:
        return None
    return f"expected {wanted.name} for '{declared.text}', got {dtype}({value})"
