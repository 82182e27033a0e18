"""Turns nothing by itself: what a planner says of one launch, for those who execute it, here or on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "sources"
MOST_BLOCKS: Final = (1 << 31) - 1
"""Blocks along the first axis of a grid (CUDA programming guide, compute capabilities)."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of element 0 of an operand, by the operand's name (`from`), and bytes from there."""

    operand: str
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number passed by value, in 4 or 8 bytes."""

    value: int
    size_bytes: int = 8


@dataclass(frozen=True, slots=True)
class Numbers:
    """A struct of 64-bit whole numbers, passed by value."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A matrix that is copied in boxes: a `CUtensorMap` of cuda.h, passed by value, that is made at the launch.

    `kind` of its elements is bf16 or f16; `extents` are elements of a line, and lines; `step_bytes` is from line to
    line; `box` are elements and lines of a box, which has 128 bytes a line in shared memory, swizzled.
    """

    operand: str
    kind: str
    extents: tuple[int, int]
    step_bytes: int
    box: tuple[int, int]


Argument = Pointer | Number | Numbers | TensorMap


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One launch: the kernel of a source file (`transpose.cu`), as its template is spelled, and what it is given.

    `specific` is a kernel with instructions of one architecture alone: compiled for sm_90a, not sm_90.
    One that `overlaps` may begin before what is ahead on the stream has ended: its kernel waits itself.
    """

    source: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    dynamic_shared_bytes: int = 0
    specific: bool = False
    overlaps: bool = False


@dataclass(frozen=True, slots=True)
class Operand:
    """Where an array lies: the address of its element 0, its shape, its strides in bytes, and bytes an element."""

    address: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    item_bytes: int


def divide_up(count: int, by: int) -> int:
    """How many groups of `by` hold `count` things."""
    return -(-count // by)


def pack(argument: Number | Numbers) -> bytes:
    """The bytes of an argument that is passed by value."""
    match argument:
        case Number(value=value, size_bytes=size_bytes):
            return value.to_bytes(size_bytes, "little", signed=True)
        case Numbers(values=values):
            return b"".join(value.to_bytes(8, "little", signed=True) for value in values)
