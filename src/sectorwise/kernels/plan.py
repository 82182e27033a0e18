"""Turns nothing by itself: what a planner says of one launch, for those who execute it, here or on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "sources"
MOST_BLOCKS: Final = (1 << 31) - 1
"""Blocks along the first axis of a grid (CUDA programming guide, compute capabilities)."""

SCRATCH_ZEROS_BYTES: Final = 1 << 16
SCRATCH_BLOCK_BYTES: Final = 128 * 256 * 4
"""What blocks hand on through: words that are zeros before and after a launch, and a float for each of the results
that a block has at a time, for as many blocks as there are SMs."""


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
    """A struct of whole numbers of 4 or 8 bytes, passed by value."""

    values: tuple[int, ...]
    size_bytes: int = 8


@dataclass(frozen=True, slots=True)
class TensorMap:
    """Matrices that are copied in boxes: a `CUtensorMap` of cuda.h, passed by value, that is made at the launch.

    `kind` of their elements is bf16, f16 or u8; `extents` are elements of a line, lines, and matrices; `steps_bytes`
    are from line to line and from matrix to matrix; `box` are elements and lines of a box of one matrix, which has 128
    bytes a line in shared memory, swizzled.
    """

    operand: str
    kind: str
    extents: tuple[int, int, int]
    steps_bytes: tuple[int, int]
    box: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scratch:
    """The address of memory that blocks of a launch hand something on through, and bytes from there.

    No two launches that may run at a time have the same. It begins with `SCRATCH_ZEROS_BYTES` of zeros.
    """

    offset_bytes: int


Argument = Pointer | Number | Numbers | TensorMap | Scratch


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
        case Numbers(values=values, size_bytes=size_bytes):
            return b"".join(value.to_bytes(size_bytes, "little", signed=True) for value in values)
