"""Turns Python values (arrays, tensors, numbers, launch notation) into the arguments of a launch."""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from sectorwise.errors import ArgumentError
from sectorwise.launch.addresses import ALIGNMENT_BYTES
from sectorwise.launch.config import BufferArgument, Contents, ScalarArgument
from sectorwise.launch.dtypes import LONG_NAMES
from sectorwise.launch.memory import view_memory
from sectorwise.launch.notation import parse_launch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.launch.config import Argument

_NOTATION: Final = re.compile(r"[a-z_]+\d*\s*[\[(].*", re.DOTALL)
_NEIGHBOURS_BYTES: Final = 4 << 20
"""How much of the memory around a view comes along, on either side: a multiple of `ALIGNMENT_BYTES`."""

_LINE_BYTES: Final = 128
"""What requests to memory are counted in: two views at the same place of a line, and else alike, count the same."""

_NUMPY_NAMES: Final = LONG_NAMES | {"bool": "u8"}


@dataclasses.dataclass(frozen=True, slots=True)
class BufferType:
    """An element type that makes buffers: `f32[1 << 20]`, `f32[64, 128]`, and `f32[1024].filled("arange")`."""

    dtype: str

    def __getitem__(self, size: int | tuple[int, ...]) -> Spec:
        """A buffer of that many elements, or an array of that shape, of zeros."""
        shape = size if isinstance(size, tuple) else (size,)
        text = f"{self.dtype}[{', '.join(str(int(each)) for each in shape)}]"
        return Spec(text)


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """A buffer in launch notation: no array has to be made to say how large one is."""

    text: str

    def filled(self, contents: str) -> Spec:
        """The same with contents: `arange`, `perm(7)`, `uniform(1)`, `noise`, `@file.npy`."""
        return Spec(f"{self.text.partition('=')[0]}={contents}")


def read_value(value: object, name: str | None = None) -> object:
    """Return the argument that a Python value is; what is no argument of a launch (a text, a type) is returned as is.

    Arrays are NumPy's, or tensors of PyTorch on the CPU, contiguous or with gaps; their contents are not copied.

    Raises:
        ArgumentError: an array that has elements of a type that is not known, or lies backwards.
        LaunchError: a text in launch notation cannot be read; a caret stands under the place.
    """
    match value:
        case Spec(text=text):
            return _read_notation(text, name)
        case str() if _NOTATION.fullmatch(value.strip()):
            return _read_notation(value, name)
        case bool() | None | str():
            return value
        case int() | float():
            return ScalarArgument(value, None, name)
    kind = type(value)
    tops = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if "torch" in tops and hasattr(value, "data_ptr"):
        return _read_tensor(value, name)
    if "numpy" in tops:
        return _read_numpy(value, name)
    if hasattr(value, "data_ptr") and hasattr(value, "untyped_storage") and "torch" in sys.modules:
        return _read_memory(value, name)
    return value


def describe_value(value: object) -> str:
    """What of a Python value decides how a launch of it runs, contents of arrays apart: shape, type, number.

    Of a view also where in a line it begins, and whether as much memory as its own lies behind it, or how much less:
    a kernel that reads on leaves the memory in the last of several views alone.
    """
    shape = getattr(value, "shape", None)
    if shape is None or not hasattr(value, "dtype"):
        return repr(value)
    strides = value.stride() if hasattr(value, "stride") else getattr(value, "strides", None)
    begin, own_bytes, room_bytes = _measure_view(value, strides)
    return f"{value.dtype}{tuple(shape)} {strides} {begin % _LINE_BYTES} {min(own_bytes, room_bytes)}"


def _measure_view(value: Any, strides: Any) -> tuple[int, int, int]:  # noqa: ANN401 - as `_find_begin` takes
    """Where a view begins in the memory that was allocated, how long it is, and how much lies behind: bytes."""
    begin = _find_begin(value)
    if hasattr(value, "untyped_storage"):
        high, size_bytes = int(value.untyped_storage().nbytes()), int(value.dtype.itemsize)
    elif hasattr(value, "__array_interface__"):
        low, end = _find_memory(value)
        high, size_bytes = end - low, 1  # NumPy's strides are bytes
    else:
        return begin, 0, 0
    steps = [(size - 1) * step * size_bytes for size, step in zip(value.shape, strides or (), strict=False) if size]
    own_bytes = sum(max(each, 0) for each in steps) + int(value.dtype.itemsize)
    return begin, own_bytes, max(high - begin - own_bytes, 0)


def _read_notation(text: str, name: str | None) -> Argument:
    (argument,) = parse_launch(f"kernel<<<1, 1>>>({text})", name or "args").arguments
    return dataclasses.replace(argument, name=name)


def _read_numpy(value: Any, name: str | None) -> object:  # noqa: ANN401 - an array or one of NumPy's numbers
    import numpy as np

    if isinstance(value, np.ndarray):
        return _read_array(value, _name_type(str(value.dtype), name), name)
    if isinstance(value, np.generic):
        return ScalarArgument(value.item(), _name_type(str(value.dtype), name), name)
    return value


def _read_array(
    array: npt.NDArray[np.generic], dtype: str, name: str | None, memory: tuple[int, int] | None = None
) -> BufferArgument:
    """An array's elements in memory, from the first to the last: of a view with gaps, the gaps as well.

    `memory` are the addresses between which memory was allocated that the array lies in. What is there before and
    behind a view comes along, as kernels may read it; of much, `_NEIGHBOURS_BYTES` on either side. So a view is aligned
    as it is on a GPU.
    """
    if any(step < 0 for step in array.strides):
        raise ArgumentError(f"argument {name or ''}: an array that lies backwards cannot be passed: copy it first")
    if array.size == 0:
        raise ArgumentError(f"argument {name or ''}: an array without elements cannot be passed")
    start: int = array.__array_interface__["data"][0]
    low, high = _find_memory(array) if memory is None else memory
    begin = start - low
    near = begin if begin <= _NEIGHBOURS_BYTES else _NEIGHBOURS_BYTES + begin % ALIGNMENT_BYTES
    skip, odd_bytes = divmod(near, array.itemsize)
    if odd_bytes:
        message = f"an array that begins {begin} bytes inside another one, no multiple of its {array.itemsize}"
        raise ArgumentError(f"argument {name or ''}: {message}, cannot be passed: pass a copy")
    steps = [step // array.itemsize for step in array.strides]
    count = 1 + sum((size - 1) * step for size, step in zip(array.shape, steps, strict=True))
    behind = min(max(high - start - count * array.itemsize, 0), _NEIGHBOURS_BYTES) // array.itemsize
    flat = view_memory(array, start - skip * array.itemsize, skip + count + behind)
    is_plain = array.flags.c_contiguous
    return BufferArgument(
        dtype,
        flat.size,
        Contents("array", array=flat),
        name,
        shape=None if is_plain and array.ndim <= 1 else array.shape,
        skip=skip,
        before=skip,
        behind=behind,
        strides=None if is_plain else tuple(steps),
    )


def _find_memory(array: npt.NDArray[np.generic]) -> tuple[int, int]:
    """Return the addresses between which memory was allocated for an array, or for what it is a view of."""
    import numpy as np

    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start: int = owner.__array_interface__["data"][0]
    spans = [(size - 1) * step for size, step in zip(owner.shape, owner.strides, strict=True) if size]
    return start + sum(min(each, 0) for each in spans), start + sum(max(each, 0) for each in spans) + owner.itemsize


def _find_begin(value: Any) -> int:  # noqa: ANN401 - an array, a tensor, or what is like one
    """Return how many bytes inside the memory that was allocated an array or a tensor begins."""
    import numpy as np

    if hasattr(value, "storage_offset"):
        return int(value.storage_offset() * value.element_size())
    if hasattr(value, "untyped_storage"):
        return int(value.data_ptr() - value.untyped_storage().data_ptr())
    if not isinstance(value, np.ndarray):
        return 0
    return int(value.__array_interface__["data"][0] - _find_memory(value)[0])


def _read_tensor(tensor: Any, name: str | None) -> BufferArgument:  # noqa: ANN401 - PyTorch's own type
    dtype = _name_type(str(tensor.dtype).removeprefix("torch."), name)
    # Where the memory is: while launches are captured, tensors on the CPU say that they are on a GPU.
    place = tensor.untyped_storage().device
    if place.type == "meta":
        shape = tuple(tensor.shape)
        return BufferArgument(dtype, max(tensor.numel(), 1), Contents("noise"), name, shape=shape)
    if place.type != "cpu":
        raise ArgumentError(f"argument {name or ''}: a tensor on {place} cannot be read: pass it on the CPU")
    plain = tensor.detach()
    # NumPy has no bfloat16: its bits are passed as 16-bit words.
    plain = plain.view(sys.modules["torch"].int16) if dtype == "bf16" else plain
    array = plain.numpy()
    storage = tensor.untyped_storage()
    low = array.__array_interface__["data"][0] - _find_begin(tensor)
    return _read_array(array.view("u2") if dtype == "bf16" else array, dtype, name, (low, low + storage.nbytes()))


def _read_memory(wrapper: Any, name: str | None) -> BufferArgument:  # noqa: ANN401 - any class with PyTorch's memory
    """What packages wrap tensors in, with an address of its own: all memory of the tensor, before and behind that."""
    storage = wrapper.untyped_storage()
    whole = _read_tensor(sys.modules["torch"].empty(0, dtype=wrapper.dtype).set_(storage), name)
    return dataclasses.replace(whole, skip=_find_begin(wrapper) // wrapper.dtype.itemsize, shape=None)


def _name_type(spelled: str, name: str | None) -> str:
    dtype = _NUMPY_NAMES.get(spelled)
    if dtype is None:
        known = ", ".join(_NUMPY_NAMES)
        raise ArgumentError(f"argument {name or ''}: elements of type {spelled} cannot be passed; known are {known}")
    return dtype


f64, f32, f16, bf16 = (BufferType(name) for name in ("f64", "f32", "f16", "bf16"))
i64, i32, i16, i8 = (BufferType(name) for name in ("i64", "i32", "i16", "i8"))
u64, u32, u16, u8 = (BufferType(name) for name in ("u64", "u32", "u16", "u8"))
