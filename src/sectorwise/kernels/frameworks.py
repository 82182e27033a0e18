"""Turns an array of a framework into its framework's current stream and new arrays, where the framework has both."""

from __future__ import annotations

import sys
from typing import Any, Final

from sectorwise.errors import ArgumentError

_TORCH: Final = {
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
    "e4m3": "float8_e4m3fn",
}


def find_stream(like: object) -> int:
    """The handle of the current stream of the framework that an array is of.

    For others than PyTorch and CuPy it is the stream that `__cuda_array_interface__` names, on which the contents will
    be ready, or the default stream. Frameworks are found among the modules that are loaded: whoever passes an array has
    imported its framework.
    """
    match _framework(like):
        case "torch":
            # Typed by what it returns: PyTorch is not a dependency.
            torch, device = _module("torch"), like.device  # type: ignore[attr-defined]
            # Without an object for the stream, a tenth of the time: what PyTorch's own generated code calls.
            find = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001
            return int(torch.cuda.current_stream(device).cuda_stream if find is None else find(device.index))
        case "cupy":
            return int(_module("cupy").cuda.get_current_stream().ptr)
        case _:
            return int(getattr(like, "__cuda_array_interface__", {}).get("stream") or 0)


def allocate(like: object, shape: tuple[int, ...], dtype: str) -> Any:  # noqa: ANN401 - an array of the framework
    """A new array of the framework, and on the device, that `like` is of.

    Raises:
        ArgumentError: its framework has no arrays that may be written, or none of that type.
    """
    match _framework(like):
        case "torch":
            torch = _module("torch")
            kind = getattr(torch, _TORCH.get(dtype, dtype.removeprefix("torch.")))
            return torch.empty(shape, dtype=kind, device=like.device)  # type: ignore[attr-defined]
        case "cupy" if hasattr(like, "dtype"):
            # What has no name in NumPy, bfloat16, has the type of the array; packed weights of int8 are of another.
            return _module("cupy").empty(shape, dtype="uint8" if dtype == "u8" else like.dtype)
        case _:
            raise ArgumentError(
                f"out: expected an array to write to, as {type(like).__module__} makes none for others; "
                "without out, arrays of PyTorch and CuPy get one of their own"
            )


def _framework(array: object) -> str:
    return type(array).__module__.partition(".")[0]


def _module(name: str) -> Any:  # noqa: ANN401 - a framework
    return sys.modules[name]
