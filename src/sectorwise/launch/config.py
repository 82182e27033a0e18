"""Turns what the author of a launch wrote into frozen data, before it is bound to a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Span:
    """Where a piece of launch text stands, for the caret: the whole text, start and end columns, its origin."""

    text: str
    start: int
    end: int
    origin: str
    """`--launch`, `transpose.cu:3`, `transpose.json: case k_copy`."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a buffer holds at the start: `kind` one of zeros, arange, perm, uniform, noise, file, array.

    `seed` for perm and uniform (numpy's default_rng), `below` for whole numbers of uniform that stay under a bound,
    `path` for file, `array` for values given from Python (a one-dimensional array in the buffer's storage type).
    """

    kind: str = "zeros"
    seed: int | None = None
    path: str | None = None
    array: npt.NDArray[np.generic] | None = None
    below: int | None = None

    def __eq__(self, other: object) -> bool:
        """Equal recipes are equal; arrays count as equal only where they are the same object."""
        if not isinstance(other, Contents):
            return NotImplemented
        return self.array is other.array and self._recipe() == other._recipe()

    def __hash__(self) -> int:
        """Hash of the recipe and of the array's identity."""
        return hash((self._recipe(), id(self.array)))

    def _recipe(self) -> tuple[str, int | None, str | None, int | None]:
        return (self.kind, self.seed, self.path, self.below)


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A device array of `count` elements; `dtype` is one of f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8.

    `shape` is that of a matrix or a higher array (rows last to change), None for a plain buffer: Numba's and CuPy's
    arrays pass it to the kernel. `strides`, in elements, are given where the array is not contiguous. The first `skip`
    elements lie before the address that is passed. The first `before` and the last `behind` elements are not the
    array's own: they are around a view, in the memory that was allocated, where a kernel may read without fault.
    """

    dtype: str
    count: int
    contents: Contents
    name: str | None = None
    span: Span | None = field(default=None, compare=False)
    shape: tuple[int, ...] | None = None
    skip: int = 0
    before: int = 0
    behind: int = 0
    strides: tuple[int, ...] | None = None

    @property
    def passed(self) -> int:
        """How many elements the array itself has, from the first to the last; gaps count as well."""
        return self.count - self.before - self.behind


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number passed by value; `dtype` is None where the notation does not say (`n=512`)."""

    value: int | float
    dtype: str | None = None
    name: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class BytesArgument:
    """Raw bytes passed by value, `bytes(00ff...)`."""

    data: bytes
    name: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StructArgument:
    """A struct passed by value, `{f32[1024], n=5}`; laid out with C alignment."""

    fields: tuple[Argument, ...]
    name: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """An alias into another buffer argument of the same launch, `ptr(name, offset_bytes)`."""

    target: str
    offset_bytes: int
    name: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TensorMapArgument:
    """A `CUtensorMap` passed by value: which tiles of a buffer are copied at once, in the driver's words.

    As in `cuTensorMapEncodeTiled`, tuples begin with the axis whose elements lie next to each other: `shape` in
    elements, `strides_bytes` of every axis but that one, `box` and `steps` (element strides) of a tile. The sizes
    `swizzle_bytes`, `interleave_bytes` and `promotion_bytes` (of L2) are 0 where there is none; out of bounds a tile
    gets zeros, or with `fill_nan` NaN.
    """

    buffer: BufferArgument
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle_bytes: int = 0
    interleave_bytes: int = 0
    promotion_bytes: int = 0
    fill_nan: bool = False
    name: str | None = None
    span: Span | None = field(default=None, compare=False)


Argument = BufferArgument | ScalarArgument | BytesArgument | StructArgument | PointerArgument | TensorMapArgument


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """One launch: which kernel, its grid and block, dynamic shared bytes, arguments, and module variables to set.

    `constants` pairs the name of a module variable with its value; a buffer there is the variable's own contents,
    not a pointer (`{f32[1024]}`, a struct of one buffer, is a pointer). The spans are None where no text was written.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    arguments: tuple[Argument, ...]
    constants: tuple[tuple[str, Argument], ...] = ()
    case: str | None = None
    span: Span | None = field(default=None, compare=False)
    grid_span: Span | None = field(default=None, compare=False)
    block_span: Span | None = field(default=None, compare=False)
    shared_span: Span | None = field(default=None, compare=False)
    arguments_span: Span | None = field(default=None, compare=False)
    """The closing parenthesis: where an argument that is missing would stand."""

    @property
    def blocks_total(self) -> int:
        """Number of blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        """Number of threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]
