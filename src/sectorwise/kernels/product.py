"""Turns nothing by itself: what a matrix-vector product is to those who plan its launch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """A product y [batch, rows] = x [batch, depth] W^T, strides in elements.

    Of packed weights `w` are bytes: how many are of a row, and 1.

    `kind` is the type of x and y, `weights` that of W; `scales` says whether there are some, and `scale_step` how far
    apart in elements, of rows or of groups. `ready` says that nothing ahead on the stream writes weights or scales.
    """

    kind: str
    weights: str
    batch: int
    rows: int
    depth: int
    x: tuple[int, int]
    w: tuple[int, int]
    y: tuple[int, int]
    x_address: int
    w_address: int
    scales: bool = False
    scale_step: int = 0
    ready: bool = False
    scales_address: int = 0
