"""Turns a call that was made before, with the same arrays on the same stream, into its launch again."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sectorwise.kernels.frameworks import allocate, find_stream
from sectorwise.kernels.launching import provide_scratch, put

if TYPE_CHECKING:
    from sectorwise.kernels.launching import Launch

_MOST: Final = 4096
"""Calls that are remembered; then all are forgotten."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its options and inputs; `named` says all that its plan comes of, None where something does not.

    `like` is an input, `out` and `stream` are as given.
    """

    named: tuple[object, ...] | None
    like: object
    out: object | None
    stream: int | None


_launches: dict[tuple[object, ...], tuple[Launch, ...]] = {}
_results: dict[tuple[object, ...], tuple[tuple[int, ...], str]] = {}


def name_call(
    function: str, inputs: tuple[object, ...], out: object | None, stream: int | None, *, ready: bool = False
) -> Call:
    """A call by all that its launch comes of."""
    arrays = tuple([_name(array) for array in inputs])
    return Call(None if None in arrays else (function, ready, *arrays), inputs[0], out, stream)


def repeat(call: Call) -> Any:  # noqa: ANN401 - an array of the framework
    """Make a call again as it was made before; its result, None where it was not."""
    if call.named is None:
        return None
    out = call.out
    if out is None:
        result = _results.get(call.named)
        if result is None:
            return None
        out = allocate(call.like, *result)
    launches = _launches.get(_key(call, out))
    if launches is None:
        return None
    for launch in launches:
        if launch.scratch is not None and provide_scratch(launch.device, launch.stream) != launch.scratch:
            return None
    for launch in launches:
        put(launch)
    return out


def remember(call: Call, out: Any, dtype: str, launches: tuple[Launch, ...]) -> None:  # noqa: ANN401 - an array
    """Have a call, its result and its launches at hand for when it is made again."""
    if call.named is None:
        return
    if len(_launches) >= _MOST:
        forget()
    key = _key(call, out)
    if None not in key:
        _launches[key] = launches
        _results[call.named] = tuple(out.shape), dtype


def forget() -> None:
    """Have no call at hand."""
    _launches.clear()
    _results.clear()


def find_call_stream(call: Call) -> int:
    """The stream that a call is for: the one it names, else the current one of its input's framework."""
    return find_stream(call.like) if call.stream is None else call.stream


def _key(call: Call, out: object) -> tuple[object, ...]:
    return call.named, _name(out), find_call_stream(call)


def _name(array: object) -> tuple[object, ...] | None:
    """All that tells an array of PyTorch or CuPy from others; None for others, whose protocols may do work."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(array, getattr(torch, "Tensor", ())):
        return _name_tensor(array)
    if cupy is not None and isinstance(array, getattr(cupy, "ndarray", ())):
        return _name_ndarray(array)
    return None


def _name_ndarray(array: Any) -> tuple[object, ...]:  # noqa: ANN401 - an array of CuPy
    return array.data.ptr, array.shape, array.strides, array.dtype, array.data.device_id


def _name_tensor(tensor: Any) -> tuple[object, ...] | None:  # noqa: ANN401 - a tensor
    try:
        if tensor.is_neg() or tensor.is_conj():
            return None
        return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device
    except RuntimeError:  # it is of no memory of its own
        return None
