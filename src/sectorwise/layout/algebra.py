"""Turns layouts (shape and stride, nested tuples) into others by CuTe's algebra: compose, complement, divide, product.

A layout is a function from coordinates, or from one index that counts the first mode fastest, to offsets. The rules
are those of CuTe's documentation (NVIDIA CUTLASS, media/docs/cpp/cute/02_layout_algebra.md); tests hold each operation
against its definition, index by index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

import numpy as np

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

IntTuple = Union[int, tuple["IntTuple", ...]]  # noqa: UP007 - it names itself
"""A whole number or a nested tuple of them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A shape and strides of the same nesting; `str()` writes CuTe's notation, `(32,4):(4,128)`.

    Raises `ArgumentError` where the two are not congruent, an extent is less than 1 or a stride is negative.

    >>> layout = Layout((32, 4), (4, 128))
    >>> layout(1, 2), layout(33), layout.size, layout.cosize
    (260, 132, 128, 509)
    """

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        """Check that shape and stride belong together."""
        _check_congruent(self.shape, self.stride, self)

    @property
    def size(self) -> int:
        """How many coordinates it has."""
        return math.prod(flatten(self.shape))

    @property
    def cosize(self) -> int:
        """The largest offset, plus one."""
        return 1 + sum((extent - 1) * step for extent, step in self.modes)

    @property
    def rank(self) -> int:
        """Modes at the top level."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def modes(self) -> tuple[tuple[int, int], ...]:
        """Extent and stride of each mode, without nesting."""
        return tuple(zip(flatten(self.shape), flatten(self.stride), strict=True))

    def mode(self, number: int) -> Layout:
        """The mode of that number at the top level, as a layout of its own."""
        if not isinstance(self.shape, tuple) or not isinstance(self.stride, tuple):
            if number == 0:
                return self
            raise ArgumentError(f"{self} has one mode, not a mode {number}")
        if not 0 <= number < len(self.shape):
            raise ArgumentError(f"{self} has modes 0 to {len(self.shape) - 1}, not a mode {number}")
        return Layout(self.shape[number], self.stride[number])

    def __call__(self, *coordinate: IntTuple) -> int:
        """The offset of an index, or of a coordinate of as many parts as there are modes; parts may be nested."""
        if len(coordinate) == 1:
            return _offset(coordinate[0], self.shape, self.stride, self)
        return _offset(tuple(coordinate), self.shape, self.stride, self)

    def offsets(self, indices: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """Offsets of indices, an int64 array of their shape; of all indices in order, if none are given."""
        rest = np.arange(self.size, dtype=np.int64) if indices is None else np.asarray(indices, dtype=np.int64)
        found = np.zeros_like(rest)
        modes = self.modes
        for number, (extent, step) in enumerate(modes):
            inside = rest if number == len(modes) - 1 else rest % extent
            found = found + inside * step
            rest = rest // extent
        return found

    def __str__(self) -> str:
        """CuTe's notation."""
        return f"{write_tuple(self.shape)}:{write_tuple(self.stride)}"


def make_layout(shape: IntTuple, stride: IntTuple | None = None) -> Layout:
    """A layout; without strides it is compact, the first mode fastest, as in CuTe."""
    return Layout(shape, column_major_strides(shape) if stride is None else stride)


def flatten(value: IntTuple) -> tuple[int, ...]:
    """The numbers of a nested tuple, in order."""
    if isinstance(value, int):
        return (value,)
    return tuple(number for part in value for number in flatten(part))


def column_major_strides(shape: IntTuple, first: int = 1) -> IntTuple:
    """Strides of a compact layout, the first mode fastest, beginning with `first`."""
    if isinstance(shape, int):
        return first
    strides: list[IntTuple] = []
    for part in shape:
        strides.append(column_major_strides(part, first))
        first *= math.prod(flatten(part))
    return tuple(strides)


def write_tuple(value: IntTuple) -> str:
    """`(4,(2,2))`."""
    return str(value) if isinstance(value, int) else f"({','.join(write_tuple(part) for part in value)})"


def join(*layouts: Layout) -> Layout:
    """One layout with these as its modes."""
    return Layout(tuple(each.shape for each in layouts), tuple(each.stride for each in layouts))


def coalesce(layout: Layout) -> Layout:
    """The same function of an index with the fewest modes."""
    merged: list[tuple[int, int]] = []
    for extent, step in layout.modes:
        if extent == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == step:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, step))
    return _from_modes(merged)


def compose(outer: Layout, inner: Layout) -> Layout:
    """The layout of `outer(inner(i))`, in the shape of `inner`.

    Raises `ArgumentError` where an extent or stride of `inner` cuts a mode of `outer` unevenly: modes are composed one
    by one, so that offsets of one must not carry into another.
    """
    modes = coalesce(outer).modes
    return _compose(modes, inner.shape, inner.stride, f"{outer} with {inner}")


def complement(layout: Layout, extent: int | None = None) -> Layout:
    """The layout that reaches, added to `layout`, every offset below `extent` (its cosize, if None) once.

    Raises `ArgumentError` where a stride is no multiple of what the smaller ones cover.
    """
    bound = layout.cosize if extent is None else extent
    covered = 1
    found: list[tuple[int, int]] = []
    used = sorted((step, size) for size, step in layout.modes if size > 1 and step > 0)
    for step, size in used:
        if step % covered:
            raise ArgumentError(
                f"{layout} has no complement: stride {step} is no multiple of {covered}, which the smaller ones cover"
            )
        found.append((step // covered, covered))
        covered = step * size
    found.append((-(-bound // covered), covered))
    return coalesce(_from_modes(found))


def logical_divide(layout: Layout, tiler: Layout | tuple[Layout | None, ...]) -> Layout:
    """A layout in two modes: inside of a tile, and from tile to tile; of tuples, mode by mode (None: undivided)."""
    if isinstance(tiler, tuple):
        if len(tiler) > layout.rank:
            raise ArgumentError(f"{layout} has {layout.rank} modes, the tiler {len(tiler)}")
        parts = [layout.mode(number) for number in range(layout.rank)]
        tilers = (*tiler, *([None] * (layout.rank - len(tiler))))
        return join(
            *(part if each is None else logical_divide(part, each) for part, each in zip(parts, tilers, strict=True))
        )
    return compose(layout, join(tiler, complement(tiler, layout.size)))


def zipped_divide(layout: Layout, tiler: Layout | tuple[Layout, ...]) -> Layout:
    """As `logical_divide`, with all the tiles' modes in the first mode and all the rests in the second."""
    divided = logical_divide(layout, tiler)
    if not isinstance(tiler, tuple):
        return divided
    parts = [divided.mode(number) for number in range(divided.rank)]
    inside = [part.mode(0) for part in parts[: len(tiler)]]
    outside = [part.mode(1) for part in parts[: len(tiler)]] + parts[len(tiler) :]
    return join(join(*inside), join(*outside))


def logical_product(layout: Layout, copies: Layout) -> Layout:
    """A layout in two modes: `layout` itself, and where its copies go, in the order of `copies`."""
    return join(layout, compose(complement(layout, layout.size * copies.cosize), copies))


def _from_modes(modes: list[tuple[int, int]]) -> Layout:
    if not modes:
        return Layout(1, 0)
    if len(modes) == 1:
        return Layout(*modes[0])
    return Layout(tuple(extent for extent, _ in modes), tuple(step for _, step in modes))


def _check_congruent(shape: IntTuple, stride: IntTuple, layout: Layout) -> None:
    match shape, stride:
        case (bool(), _) | (_, bool()):
            raise ArgumentError(f"{layout.shape!r}:{layout.stride!r} is no layout: extents and strides are numbers")
        case int(), int():
            if shape < 1:
                raise ArgumentError(f"{layout} is no layout: an extent is {shape}; it must be at least 1")
            if stride < 0:
                raise ArgumentError(f"{layout} is no layout: a stride is {stride}; it must not be negative")
        case tuple(), tuple() if len(shape) == len(stride) > 0:
            for extent, step in zip(shape, stride, strict=True):
                _check_congruent(extent, step, layout)
        case _:
            raise ArgumentError(
                f"{layout.shape!r}:{layout.stride!r} is no layout: shape and stride must be nested alike"
            )


def _offset(coordinate: IntTuple, shape: IntTuple, stride: IntTuple, layout: Layout) -> int:
    match coordinate, shape, stride:
        case int(), int(), int():
            return coordinate * stride
        case int(), tuple(), tuple():
            found, rest = 0, coordinate
            for number, (extent, step) in enumerate(zip(shape, stride, strict=True)):
                size = math.prod(flatten(extent))
                found += _offset(rest if number == len(shape) - 1 else rest % size, extent, step, layout)
                rest //= size
            return found
        case tuple(), tuple(), tuple() if len(coordinate) == len(shape):
            return sum(
                _offset(part, extent, step, layout)
                for part, extent, step in zip(coordinate, shape, stride, strict=True)
            )
        case _:
            raise ArgumentError(f"{coordinate!r} is no coordinate of {layout}")


def _compose(modes: tuple[tuple[int, int], ...], shape: IntTuple, stride: IntTuple, what: str) -> Layout:
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        return join(*(_compose(modes, extent, step, what) for extent, step in zip(shape, stride, strict=True)))
    if not isinstance(shape, int) or not isinstance(stride, int):
        raise ArgumentError(f"cannot compose {what}: shape and stride must be nested alike")
    if shape == 1 or stride == 0:
        return Layout(shape, 0)
    return _from_modes(_compose_mode(modes, shape, stride, what))


def _compose_mode(modes: tuple[tuple[int, int], ...], extent: int, step: int, what: str) -> list[tuple[int, int]]:
    """The modes of `outer` that `extent` steps of `step` indices run through."""
    found: list[tuple[int, int]] = []
    for size, stride in modes[:-1]:
        if extent == 1:
            break
        if step % size == 0:
            step //= size
            continue
        if size % step:
            raise ArgumentError(f"cannot compose {what}: a stride of {step} does not divide an extent of {size}")
        taken = min(size // step, extent)
        if extent % taken:
            raise ArgumentError(f"cannot compose {what}: an extent of {extent} is no multiple of {taken}")
        found.append((taken, stride * step))
        extent //= taken
        step = 1
    if extent > 1:
        found.append((extent, modes[-1][1] * step))
    return found
