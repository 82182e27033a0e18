"""Turns a `@numba.cuda.jit` function and its arguments into a cubin and the parameters that arrays become.

Numba compiles to PTX without a GPU, and nvJitLink assembles that. An array of one dimension is passed as seven words,
with two more for each further one: two of Python's own, the number of elements, the size of one, the address, the
shape, the strides.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
import warnings
from dataclasses import replace
from typing import Any, Final

from sectorwise.errors import ArgumentError, CompileError, MissingToolError
from sectorwise.frontends.base import Compilation
from sectorwise.frontends.nvjitlink import assemble_ptx, load_nvjitlink
from sectorwise.frontends.objects import ObjectCompilation, ObjectLaunch
from sectorwise.launch.config import BufferArgument, LaunchConfig, ScalarArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES, LONG_NAMES
from sectorwise.launch.sharing import share_buffers

TESTED_VERSIONS: Final = ("0.30.4",)
_INSTALL = "pip install 'sectorwise[numba]' brings it; no GPU is needed"
_NUMBA_NAMES = {short: long for long, short in LONG_NAMES.items() if short != "bf16"}
_ENTRY = re.compile(r"\.visible \.entry (?P<name>[\w$]+)\(")


def is_numba_kernel(kernel: object) -> bool:
    """Whether this is a `@numba.cuda.jit` function; Numba is not imported for that."""
    kind = type(kernel)
    return kind.__module__.startswith("numba.cuda") and kind.__name__ == "CUDADispatcher"


def compile_numba(kernel: Any, launch: ObjectLaunch, target: str) -> tuple[ObjectCompilation, ...]:  # noqa: ANN401
    """Compile a kernel for the types of a launch's arguments.

    Raises:
        ArgumentError: an argument is of a kind that is not read, or the launch has no block.
        CompileError: Numba's message.
        MissingToolError: Numba, or what assembles its PTX, is not installed.
    """
    version = _find_version()
    values = _bind(kernel, launch)
    name: str = kernel.py_func.__name__
    ptx = _make_ptx(kernel, values, target, f"{launch.origin}: {name}")
    linker = load_nvjitlink()
    file: str = kernel.py_func.__code__.co_filename
    compilation = Compilation(
        cubin=assemble_ptx(linker, ptx, f"{file} (PTX of {name})", target),
        target=target,
        compiler=f"Numba {version}, {linker.version}",
    )
    blocks = launch.grid(dict(values)) if callable(launch.grid) else launch.grid
    x, y, z = (*(int(size) for size in blocks), 1, 1)[:3]
    if launch.block is None:
        raise ArgumentError(f"{launch.origin}: {name} needs threads: {name}[blocks, threads](...)")
    arguments = [word for key, value in values for word in _pass(key, value)]
    config = LaunchConfig(name, (x, y, z), launch.block, launch.dynamic_shared_bytes, share_buffers(arguments))
    return (ObjectCompilation(compilation, config),)


def _find_version() -> str:
    try:
        import numba.cuda  # noqa: F401 - it is there, or it is not

        version = importlib.metadata.version("numba-cuda")
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        raise MissingToolError(f"Numba for CUDA is not installed ({error}): {_INSTALL}") from None
    if version not in TESTED_VERSIONS:
        message = f"numba-cuda {version} is untested; tested are {', '.join(TESTED_VERSIONS)}"
        warnings.warn(message, UserWarning, stacklevel=4)
    return version


def _bind(kernel: Any, launch: ObjectLaunch) -> list[tuple[str, Any]]:  # noqa: ANN401 - Numba's own type
    """Pair the parameters with what is passed, in their order."""
    import inspect

    signature = inspect.signature(kernel.py_func)
    try:
        bound = signature.bind(*launch.positional, **launch.named)
    except TypeError as error:
        raise ArgumentError(f"{launch.origin}: {kernel.py_func.__name__}{signature}: {error}") from None
    bound.apply_defaults()
    return list(bound.arguments.items())


def _make_ptx(kernel: Any, values: list[tuple[str, Any]], target: str, where: str) -> str:  # noqa: ANN401 - as above
    from numba import cuda

    digits = "".join(filter(str.isdigit, target))
    types = tuple(_type_of(name, value) for name, value in values)
    options = kernel.targetoptions
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba's advice on occupancy and debugging is not about this
            ptx, _ = cuda.compile_ptx(
                kernel.py_func,
                types,
                device=False,
                cc=(int(digits[:-1]), int(digits[-1])),
                lineinfo=True,
                fastmath=options.get("fastmath", False),
                opt=options.get("opt", True),
            )
    except Exception as error:  # noqa: BLE001 - Numba's compiler raises many kinds
        raise CompileError(f"{where}: {type(error).__name__}: {error}") from None
    found = _ENTRY.search(ptx)
    if found is None:
        raise CompileError(f"{where}: Numba made no kernel of it")
    # The symbol holds a hash and the types; the author's name is as good, as there is one kernel.
    return str(ptx).replace(found["name"], kernel.py_func.__name__)


def _type_of(name: str, value: object) -> Any:  # noqa: ANN401 - Numba's own types
    from numba import types

    match value:
        case BufferArgument(dtype=dtype, shape=shape) if dtype in _NUMBA_NAMES:
            return types.Array(getattr(types, _NUMBA_NAMES[dtype]), len(shape or (0,)), _find_order(value))
        case ScalarArgument(dtype=str(dtype)) if dtype in _NUMBA_NAMES:
            return getattr(types, _NUMBA_NAMES[dtype])
        case ScalarArgument(value=bool()) | bool():
            return types.boolean
        case ScalarArgument(value=int()) | int():
            return types.int64
        case ScalarArgument(value=float()) | float():
            return types.float64
        case _:
            raise ArgumentError(f"argument {name}: {type(value).__name__} is not passed to Numba here")


def _find_order(array: BufferArgument) -> str:
    """How Numba types an array: C or F where it is contiguous, rows or columns first, A where it is neither."""
    if array.strides is None:
        return "C"
    sizes = array.shape or ()
    return "F" if array.strides == _list_steps(sizes[::-1])[::-1] else "A"


def _list_steps(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of an array without gaps, rows last to change."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def _pass(name: str, value: object) -> list[BufferArgument | ScalarArgument]:
    match value:
        case BufferArgument(dtype=dtype, passed=count, shape=shape, strides=steps):
            size_bytes = ELEMENT_TYPES[dtype].size_bytes
            sizes = shape or (count,)
            strides = [size_bytes * step for step in steps or _list_steps(sizes)]
            head = [ScalarArgument(number, "i64") for number in (0, 0, math.prod(sizes), size_bytes)]
            tail = [ScalarArgument(number, "i64") for number in (*sizes, *strides)]
            return [*head, replace(value, name=name, span=None, shape=None, strides=None), *tail]
        case ScalarArgument(dtype=str(dtype), value=number):
            return [ScalarArgument(number, dtype, name)]
        case ScalarArgument(value=number) | (bool() | int() | float() as number):
            dtype = "u8" if isinstance(number, bool) else "f64" if isinstance(number, float) else "i64"
            return [ScalarArgument(number, dtype, name)]
        case _:
            raise ArgumentError(f"argument {name}: {type(value).__name__} is not passed to Numba here")
