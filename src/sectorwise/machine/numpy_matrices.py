"""Turns the fragments of a tensor-core instruction into matrices, multiplies them, and turns the sum back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.machine.algebra import MatrixForm

Lanes = npt.NDArray[Any]

_SINGLE_NAN, _HALF_NAN = 0x7FFFFFFF, 0x7FFF
"""The NaN that sums are which are none."""


def multiply_add(a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], form: MatrixForm) -> list[Lanes]:
    """The words of A B + C. Layouts of the fragments: PTX ISA, matrix fragments for mma.

    Lane 4 g + t holds rows g and g + 8 of A and C and column g of B; along the depth, t counts words of elements.
    """
    warps = max(word.shape[0] for word in (*a, *b, *c))
    elements_a, elements_b = _elements(a, form.a, warps), _elements(b, form.b, warps)
    elements_c = _elements(c, form.accumulator, warps)
    halves = elements_c.shape[-2] * elements_c.shape[-1] // 2
    # [warps, g, t, depth half, row half, elements of a word]
    left = elements_a.reshape(warps, 8, 4, -1, halves, elements_a.shape[-1]).transpose(0, 4, 1, 3, 2, 5)
    right = elements_b.reshape(warps, 8, 4, -1, elements_b.shape[-1]).transpose(0, 3, 2, 4, 1)
    rows = 8 * halves
    product = _multiply(left.reshape(warps, rows, -1), right.reshape(warps, -1, 8))
    addend = elements_c.reshape(warps, 8, 4, halves, 2).transpose(0, 3, 1, 2, 4).reshape(warps, rows, 8)
    total = (product + addend).reshape(warps, halves, 8, 4, 2).transpose(0, 2, 3, 1, 4).reshape(warps, 32, halves, 2)
    return _words(total, form)


def _multiply(left: Lanes, right: Lanes) -> Lanes:
    """Products of matrices of doubles [warps, rows, depth] and [warps, depth, columns], summed along the depth in turn.

    A library's product sums in an order of its own, which hangs on the host.
    """
    total: Lanes = left[:, :, :1] * right[:, :1]
    for place in range(1, left.shape[2]):
        total += left[:, :, place : place + 1] * right[:, place : place + 1]
    return total


def _elements(words: Sequence[Lanes], kind: str, warps: int) -> Lanes:
    """Doubles [warps, 32, words, elements of a word]."""
    stacked = np.stack([np.broadcast_to(word, (warps, 32)) for word in words], axis=-1).astype("<u4")
    match kind:
        case "F16":
            return stacked.view(np.float16).reshape(warps, 32, len(words), 2).astype(np.float64)
        case "BF16":
            halves = stacked.view(np.uint16).astype(np.uint32) << np.uint32(16)
            return halves.view(np.float32).reshape(warps, 32, len(words), 2).astype(np.float64)
        case "TF32":
            return (stacked & np.uint32(0xFFFFE000)).view(np.float32)[..., None].astype(np.float64)
        case "F32":
            return stacked.view(np.float32)[..., None].astype(np.float64)
        case "F64":
            return stacked.view(np.float64)[..., None]
        case "S32":
            return stacked.view(np.int32)[..., None].astype(np.float64)
        case _:
            bytes_of = stacked.view(np.int8 if kind == "S8" else np.uint8)
            return bytes_of.reshape(warps, 32, len(words), 4).astype(np.float64)


def _words(total: Lanes, form: MatrixForm) -> list[Lanes]:
    """Words from doubles [warps, 32, row halves, 2]; sums of integers stay far below 2**53, so they are exact."""
    flat = np.ascontiguousarray(total).reshape(*total.shape[:2], -1)
    match form.accumulator:
        case "F32":
            singles = flat.astype(np.float32).view(np.uint32)
            words = np.where(np.isnan(flat), np.uint32(_SINGLE_NAN), singles)
        case "F16":
            halves = flat.astype(np.float16).view(np.uint16)
            words = np.where(np.isnan(flat), np.uint16(_HALF_NAN), halves).view(np.uint32)
        case "F64":
            words = np.where(np.isnan(flat), np.nan, flat).view(np.uint32)
        case _:
            limited = np.clip(flat, -(2.0**31), 2.0**31 - 1) if form.saturates else flat
            words = limited.astype(np.int64).astype(np.uint32)
    return [words[..., place] for place in range(words.shape[-1])]
