"""Turns allocations on a device into NumPy arrays that behave as device arrays do towards the host."""

from __future__ import annotations

from typing import Any, Self

import numpy as np


class HostArray(np.ndarray[Any, Any]):
    """A NumPy array with the methods by which Numba and CuPy copy from and to a device."""

    def copy_to_host(self, ary: np.ndarray[Any, Any] | None = None, stream: object = 0) -> np.ndarray[Any, Any]:
        """The contents, in `ary` if it is given (Numba)."""
        del stream
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary: np.ndarray[Any, Any], stream: object = 0) -> None:
        """Take over the contents of an array (Numba)."""
        del stream
        self[...] = ary

    def get(self) -> np.ndarray[Any, Any]:
        """The contents (CuPy)."""
        return np.array(self)


def to_host_array(values: object, *_args: object, **_named: object) -> HostArray:
    """A copy of an array-like object, whatever stream or device is asked for."""
    return np.array(values).view(HostArray)


def allocate(
    shape: int | tuple[int, ...],
    dtype: Any = np.float64,  # noqa: ANN401 - whatever NumPy takes for one
    *_args: object,
    **_named: object,
) -> HostArray:
    """An array of zeros: what was not written must not differ from run to run."""
    return np.zeros(shape, dtype).view(HostArray)


def allocate_like(values: Any, *_args: object, **_named: object) -> HostArray:  # noqa: ANN401 - any array
    """An array of zeros of the same shape and type."""
    return np.zeros(values.shape, values.dtype).view(HostArray)


class Nothing:
    """A stream or an event: every method does nothing, and it may stand in a `with`."""

    def __init__(self, *_args: object, **_named: object) -> None:
        """Take whatever the real one takes."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method
        """A method that does nothing."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_named: self

    def __enter__(self) -> Self:
        """Begin nothing."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End nothing."""


def do_nothing(*_args: object, **_named: object) -> None:
    """Synchronise: all is done already."""
