"""Turns the name of an element type into its bits and what decoding it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.layout.reader import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Dtype:
    """An element type; `decode_instructions` an element turn it into fp32 (shift, mask or convert), `peak` its rate."""

    name: str
    bits: int
    decode_instructions: float
    peak: str


DTYPES: Final[Mapping[str, Dtype]] = {
    each.name: each
    for each in (
        Dtype("fp64", 64, 0.0, "fp64"),
        Dtype("fp32", 32, 0.0, "fp32"),
        Dtype("tf32", 32, 0.0, "tf32"),
        # A bf16 is the upper half of an fp32: a shift or a mask each.
        Dtype("bf16", 16, 1.0, "bf16"),
        # One conversion each.
        Dtype("fp16", 16, 1.0, "fp16"),
        # Two in one conversion to halves, then one each.
        Dtype("fp8", 8, 1.5, "fp8"),
        # A permute puts the byte into a float's mantissa, a subtraction takes the offset away.
        Dtype("int8", 8, 2.0, "int8"),
        # A three-way logic operation takes two at a time, a subtraction each.
        Dtype("int4", 4, 1.5, "fp16"),
        Dtype("fp4", 4, 1.5, "fp4"),
    )
}
_ALIASES: Final = {
    "f64": "fp64",
    "double": "fp64",
    "f32": "fp32",
    "float": "fp32",
    "float32": "fp32",
    "f16": "fp16",
    "half": "fp16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "i8": "int8",
    "u8": "int8",
    "i4": "int4",
    "u4": "int4",
    "u16": "fp16",
    "i32": "fp32",
    "u32": "fp32",
}


def find_dtype(name: str) -> Dtype:
    """The element type of that name (`bf16`, `f32`, `half`); raises `ArgumentError` with the nearest."""
    known = _ALIASES.get(name.lower(), name.lower())
    if known not in DTYPES:
        raise ArgumentError(f"there is no element type '{name}'{suggest(name, DTYPES)}")
    return DTYPES[known]


def find_width(name: str) -> int:
    """Whole bytes of an element; raises `ArgumentError` for types that are smaller than a byte."""
    dtype = find_dtype(name)
    if dtype.bits % 8:
        raise ArgumentError(f"an element of {dtype.name} is {dtype.bits} bits, no whole byte")
    return dtype.bits // 8
