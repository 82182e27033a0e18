"""Turns the start of a command into one that does not pay for threads and searches that it has no use for."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"
_ALLOCATIONS_BETWEEN_SEARCHES: Final = 100_000


@contextlib.contextmanager
def load_with_one_thread() -> Iterator[None]:
    """Lets NumPy, where it is loaded within, have one thread for products of matrices, unless the user says how many.

    Its threads turn in a loop for a while after they are made, waiting for work that never comes here: about 0.05 s of
    processor time. What this process starts after that is told nothing of it.
    """
    if _BLAS_THREADS in os.environ:
        yield
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]


@contextlib.contextmanager
def search_garbage_seldom(*, is_last: bool = False) -> Iterator[None]:
    """Has Python look for cycles of garbage after more allocations than its default of 700.

    Loading modules makes some hundred thousand objects that stay: looking through them takes a tenth of a short run.
    Where this `is_last` in its process they are not looked through at its end either, but for Triton's sake.
    """
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS_BETWEEN_SEARCHES, *before[1:])
    try:
        yield
    finally:
        # nanobind, by which Triton is reached, takes what is left uncollected for leaks, and lists it on stderr.
        if is_last and "triton" not in sys.modules:
            gc.freeze()
        gc.set_threshold(*before)
