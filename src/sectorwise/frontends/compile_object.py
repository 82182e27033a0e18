"""Turns a kernel object of Triton, Numba or CuPy into what its own front end makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.frontends.cupy import compile_cupy, is_cupy_kernel
from sectorwise.frontends.numba import compile_numba, is_numba_kernel
from sectorwise.frontends.triton import compile_triton, is_triton_kernel

if TYPE_CHECKING:
    from sectorwise.frontends.objects import ObjectCompilation, ObjectLaunch


def is_kernel(value: object) -> bool:
    """Whether a front end takes this object; none of the frameworks is imported for that."""
    return is_triton_kernel(value) or is_numba_kernel(value) or is_cupy_kernel(value)


def compile_object(kernel: object, launch: ObjectLaunch, target: str) -> tuple[ObjectCompilation, ...]:
    """Compile a kernel for a launch; an autotuned one once for each configuration that is asked for.

    Raises:
        SectorwiseError: one of its kinds, as the front end says.
    """
    if is_triton_kernel(kernel):
        return compile_triton(kernel, launch, target)
    if launch.config is not None:
        raise ArgumentError(f"{launch.origin}: there is no configuration {launch.config}: it is not autotuned")
    if is_numba_kernel(kernel):
        return compile_numba(kernel, launch, target)
    if is_cupy_kernel(kernel):
        return compile_cupy(kernel, launch, target)
    raise ArgumentError(f"{type(kernel).__name__} is no kernel of Triton, Numba or CuPy")
