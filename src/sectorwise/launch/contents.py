"""Turns what a buffer is said to hold (`arange`, `perm(7)`, `@file.npy`) into its elements, on demand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.launch.carets import launch_error
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.launch.encoding import encode_values

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.launch.config import BufferArgument, Contents
    from sectorwise.launch.dtypes import ElementType

    Values = npt.NDArray[np.generic]

GREATEST_UNIFORM = 1 << 31
"""Whole numbers of `uniform` without a bound stay below this and below the greatest value of their type."""


def materialise(buffer: BufferArgument, start: int = 0, stop: int | None = None) -> Values:
    """Return elements `start` to `stop` of what the buffer holds at the start, in its storage type; do not write to it.

    Shape `(stop - start,)`. bf16 comes as the 16-bit words of its bits. zeros, arange, noise and the floats of uniform
    are made for the range alone; `needs_whole` tells for which contents the whole is made each time.
    Random contents are those of `numpy.random.default_rng(seed)`: `permutation(count)`, `random(count, float32)`, and
    `integers(0, min(2**31, greatest))`, each then converted to the type. Raises LaunchError for a file that cannot be
    read or does not fit.
    """
    stop = buffer.count if stop is None else stop
    if not 0 <= start <= stop <= buffer.count:
        message = f"elements {start} to {stop} of {buffer.count}"
        raise ValueError(message)
    element = ELEMENT_TYPES[buffer.dtype]
    contents = buffer.contents
    match contents.kind:
        case "zeros":
            return np.zeros(stop - start, element.storage)
        case "arange":
            return encode_values(np.arange(start, stop), element)
        case "perm":
            return encode_values(np.random.default_rng(contents.seed).permutation(buffer.count)[start:stop], element)
        case "uniform":
            return encode_values(_draw_uniform(contents, element, buffer.count, start, stop), element)
        case "noise":
            return encode_values(_make_noise(element, start, stop), element)
        case _:
            return open_values(buffer)[start:stop]


def needs_whole(buffer: BufferArgument) -> bool:
    """Whether any part of these contents costs as much as the whole: ask for all of it, once."""
    contents = buffer.contents
    return contents.kind == "perm" or (contents.kind == "uniform" and not ELEMENT_TYPES[buffer.dtype].is_float)


def is_assumed(buffer: BufferArgument) -> bool:
    """Whether these values are made up (`noise`): what they decide, an address or a branch, is assumed, not exact."""
    return buffer.contents.kind == "noise"


def open_values(buffer: BufferArgument) -> Values:
    """Return all elements of a file or array, in the buffer's storage type, mapped rather than read where possible.

    Raises LaunchError if the file cannot be read, or its number of elements or its type is not the buffer's.
    """
    contents = buffer.contents
    element = ELEMENT_TYPES[buffer.dtype]
    where = f"{contents.path}" if contents.kind == "file" else "the array"
    values = contents.array
    if contents.path is not None:
        try:
            values = np.load(contents.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            # NumPy's own text for a wrong file speaks of pickles; the system's text is the useful one.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no .npy file"
            message = f"cannot read {where}: {reason}"
            raise launch_error(message, buffer.span) from error
    if not isinstance(values, np.ndarray):
        if isinstance(values, np.lib.npyio.NpzFile):
            values.close()
        message = f"cannot read {where}: expected one array"
        raise launch_error(message, buffer.span)
    if values.size != buffer.count:
        message = f"expected {buffer.count} elements, got {values.size} in {where}"
        raise launch_error(message, buffer.span)
    if not _holds(values.dtype, element):
        message = f"expected elements of type {element.name}, got {values.dtype} in {where}"
        raise launch_error(message, buffer.span)
    native = values.reshape(-1).astype(values.dtype.newbyteorder("="), copy=False)
    return native.view(element.storage)


def _holds(stored: np.dtype[np.generic], element: ElementType) -> bool:
    """Whether an array of this type holds such elements: the same type, or its bits as unsigned words."""
    if stored.itemsize != element.size_bytes:
        return False
    native = stored.newbyteorder("=")
    return native == element.storage or stored.kind == "u" or (stored.kind == "b" and not element.is_float)


def _draw_uniform(contents: Contents, element: ElementType, count: int, start: int, stop: int) -> Values:
    generator = np.random.default_rng(contents.seed)
    if not element.is_float:
        bound = min(GREATEST_UNIFORM, element.high) if contents.below is None else contents.below
        # Rejection makes the place of a number in the stream depend on all before it: only the whole is right.
        return generator.integers(0, bound, count, dtype=np.uint64 if bound > 1 << 63 else np.int64)[start:stop]
    # A float32 takes one 32-bit half of each 64-bit step of PCG64, the lower half first.
    bits = generator.bit_generator
    if isinstance(bits, np.random.PCG64):
        bits.advance(start // 2)
        return generator.random(stop - start + start % 2, dtype=np.float32)[start % 2 :]
    return generator.random(count, dtype=np.float32)[start:stop]


def _make_noise(element: ElementType, start: int, stop: int) -> Values:
    """Return values that look random and depend on the index alone: floats from 0 to 1, any whole number from 0 up."""
    bits = _mix(np.arange(start, stop, dtype=np.uint64))
    if not element.is_float:
        return bits >> np.uint64(64 - element.high.bit_length())
    mantissa = 53 if element.size_bytes == 8 else 24
    return (bits >> np.uint64(64 - mantissa)).astype(np.float64) * math.ldexp(1.0, -mantissa)


def _mix(indices: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a 64-bit word for each index: that output of SplitMix64 with seed 0 (Steele, Lea, Flood, 2014)."""
    words = (indices + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
