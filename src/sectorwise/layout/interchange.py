"""Turns layouts into objects of the package `tensor-layouts` and back, where that is installed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sectorwise.errors import ArgumentError, MissingToolError
from sectorwise.layout.algebra import Layout
from sectorwise.layout.swizzle import Swizzle, SwizzledLayout

if TYPE_CHECKING:
    from types import ModuleType


def from_tensor_layouts(value: object) -> Layout | SwizzledLayout | Swizzle:
    """Ours for its `Layout`, `Swizzle` or a swizzle composed with a layout."""
    library = _load()
    # It has no types, so what it gives is Any.
    given: Any = value
    if isinstance(given, library.Layout):
        return Layout(given.shape, given.stride)
    if isinstance(given, library.Swizzle):
        return Swizzle(given.bits, given.base, given.shift)
    if isinstance(given, library.ComposedLayout) and isinstance(given.outer, library.Swizzle):
        inner = from_tensor_layouts(given.inner)
        swizzle = from_tensor_layouts(given.outer)
        if isinstance(inner, Layout) and isinstance(swizzle, Swizzle):
            return SwizzledLayout(swizzle, inner, given.offset)
    raise ArgumentError(f"expected a Layout, a Swizzle or a swizzled layout of tensor-layouts, got {value!r}")


def to_tensor_layouts(value: Layout | SwizzledLayout | Swizzle) -> object:
    """Its object for ours."""
    library = _load()
    match value:
        case Layout():
            return library.Layout(value.shape, value.stride)
        case Swizzle():
            return library.Swizzle(value.bits, value.base, value.shift)
        case SwizzledLayout():
            if value.offset:
                outer, inner = to_tensor_layouts(value.swizzle), to_tensor_layouts(value.layout)
                return library.ComposedLayout(outer, inner, offset=value.offset)
            return library.compose(to_tensor_layouts(value.swizzle), to_tensor_layouts(value.layout))


def _load() -> ModuleType:
    try:
        return importlib.import_module("tensor_layouts")
    except ImportError:
        raise MissingToolError("tensor-layouts is not installed: pip install tensor-layouts") from None
