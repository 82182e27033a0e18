"""Turns what is written of a tensor map into its data, checked as the driver checks it, and back into notation."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from sectorwise.launch.config import TensorMapArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES, size_of
from sectorwise.launch.expressions import parse_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.launch.config import BufferArgument
    from sectorwise.launch.expressions import Scope
    from sectorwise.tokens import Cursor

MOST_AXES: Final = 5
SWIZZLES: Final = (0, 32, 64, 128)
INTERLEAVES: Final = (0, 16, 32)
PROMOTIONS: Final = (0, 64, 128, 256)
LISTS: Final = ("shape", "strides", "box", "steps")
SIZES: Final = ("swizzle", "interleave", "promotion")
KEYS: Final = (*LISTS, *SIZES, "fill")
FILLS: Final = ("zeros", "nan")

_MOST_BOX = 256
_MOST_STEP = 8
_MOST_STRIDE_BYTES = 1 << 40
_MOST_ELEMENTS = 1 << 32
_UNIT_BYTES = 16
_FEWEST_INTERLEAVED = 3


def make_tensor_map(
    buffer: BufferArgument, lists: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int], fill: str = "zeros"
) -> TensorMapArgument:
    """Return a tensor map of what was written: `lists` may have LISTS, `sizes` SIZES; not checked yet.

    Without `shape` it is the buffer's, without `strides` rows lie one behind the other, without `steps` they are 1.
    """
    rows_first = buffer.shape or (buffer.count,)
    shape = lists.get("shape") or tuple(reversed(rows_first))
    width = ELEMENT_TYPES[buffer.dtype].size_bytes
    packed = tuple(width * size for size in itertools.accumulate(shape[:-1], int.__mul__))
    return TensorMapArgument(
        buffer,
        shape,
        lists.get("strides", packed),
        lists.get("box", ()),
        lists.get("steps") or (1,) * len(shape),
        sizes.get("swizzle", 0),
        sizes.get("interleave", 0),
        sizes.get("promotion", 0),
        fill_nan=fill == "nan",
    )


def find_map_trouble(made: TensorMapArgument) -> tuple[str, str] | None:
    """Return the key that the driver would refuse, and why; None where it takes the map.

    The rules are those that CUDA's driver API lists under `cuTensorMapEncodeTiled`.
    """
    axes = len(made.shape)
    width = ELEMENT_TYPES[made.buffer.dtype].size_bytes
    if not 1 <= axes <= MOST_AXES:
        return "shape", f"expected one to {MOST_AXES} sizes, got {axes}"
    for key, given, wanted in (
        ("strides", made.strides_bytes, axes - 1),
        ("box", made.box, axes),
        ("steps", made.steps, axes),
    ):
        if len(given) != wanted:
            return key, f"expected {wanted} number{'s' if wanted != 1 else ''} for {axes} axes, got {len(given)}"
    bounds = (("shape", made.shape, _MOST_ELEMENTS), ("box", made.box, _MOST_BOX), ("steps", made.steps, _MOST_STEP))
    for key, given, most in bounds:
        odd = next((number for number in given if not 1 <= number <= most), None)
        if odd is not None:
            return key, f"expected numbers from 1 to {most:,}, got {odd:,}"
    unit = max(_UNIT_BYTES, made.interleave_bytes)
    for stride in made.strides_bytes:
        if stride % unit or not 0 < stride < _MOST_STRIDE_BYTES:
            return "strides", f"expected multiples of {unit} bytes below 2^40, got {stride:,}"
    return _find_tile_trouble(made, width)


def _find_tile_trouble(made: TensorMapArgument, width: int) -> tuple[str, str] | None:
    for key, size, known in (
        ("swizzle", made.swizzle_bytes, SWIZZLES),
        ("interleave", made.interleave_bytes, INTERLEAVES),
        ("promotion", made.promotion_bytes, PROMOTIONS),
    ):
        if size not in known:
            return key, f"expected one of {', '.join(map(str, known))} bytes, got {size}"
    if made.interleave_bytes and len(made.shape) < _FEWEST_INTERLEAVED:
        return "interleave", f"expected {_FEWEST_INTERLEAVED} axes or more, got {len(made.shape)}"
    row_bytes = made.box[0] * width
    if not made.interleave_bytes and row_bytes % _UNIT_BYTES:
        return "box", f"expected rows of a multiple of {_UNIT_BYTES} bytes, got {row_bytes}"
    if made.swizzle_bytes and row_bytes > made.swizzle_bytes:
        return "box", f"expected rows of at most the {made.swizzle_bytes} bytes of the swizzle, got {row_bytes}"
    if made.fill_nan and not ELEMENT_TYPES[made.buffer.dtype].is_float:
        return "fill", f"expected zeros for whole numbers ({made.buffer.dtype}), got nan"
    needed = width * made.shape[0]
    needed += sum((size - 1) * stride for size, stride in zip(made.shape[1:], made.strides_bytes, strict=True))
    if needed > size_of(made.buffer) - made.buffer.skip * width:
        return "shape", f"the map reaches {needed:,} bytes, the buffer has {size_of(made.buffer):,}"
    return None


def parse_options(cursor: Cursor, scope: Scope) -> tuple[dict[str, tuple[int, ...]], dict[str, int], str]:
    """Return what follows the buffer of `tensor_map(...)`, up to its parenthesis: lists, sizes in bytes, the fill."""
    lists: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    fill = "zeros"
    given: set[str] = set()
    while cursor.accept(","):
        token = cursor.take()
        key = token.text
        if key not in KEYS:
            raise cursor.error(f"expected one of {', '.join(KEYS)}, got {token}", token)
        if key in given:
            raise cursor.error(f"expected {key} once", token)
        given.add(key)
        cursor.expect("=", f"'=' after {key}")
        match key:
            case "fill":
                fill_token = cursor.take()
                fill = fill_token.text
                if fill not in FILLS:
                    raise cursor.error(f"expected zeros or nan, got {fill_token}", fill_token)
            case "swizzle" | "interleave" | "promotion":
                sizes[key] = parse_whole(cursor, scope, "a number of bytes")
            case _:
                lists[key] = _parse_list(cursor, scope)
    return lists, sizes, fill


def _parse_list(cursor: Cursor, scope: Scope) -> tuple[int, ...]:
    if not cursor.accept("("):
        return (parse_whole(cursor, scope, "a number"),)
    numbers = [parse_whole(cursor, scope, "a number")]
    while cursor.accept(","):
        if cursor.at(")"):
            break
        numbers.append(parse_whole(cursor, scope, "a number"))
    cursor.expect(")", "',' or ')'")
    return tuple(numbers)


def format_options(made: TensorMapArgument) -> str:
    """Return what follows the buffer in notation: all that is not the default."""
    plain = make_tensor_map(made.buffer, {}, {})
    dense = make_tensor_map(made.buffer, {"shape": made.shape}, {})
    parts = []
    if made.shape != plain.shape:
        parts.append(("shape", _format_list(made.shape)))
    if made.strides_bytes != dense.strides_bytes:
        parts.append(("strides", _format_list(made.strides_bytes)))
    parts.append(("box", _format_list(made.box)))
    if set(made.steps) != {1}:
        parts.append(("steps", _format_list(made.steps)))
    sizes = (made.swizzle_bytes, made.interleave_bytes, made.promotion_bytes)
    parts += [(key, str(size)) for key, size in zip(SIZES, sizes, strict=True) if size]
    if made.fill_nan:
        parts.append(("fill", "nan"))
    return "".join(f", {key}={text}" for key, text in parts)


def _format_list(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))})" if len(numbers) != 1 else str(numbers[0])
