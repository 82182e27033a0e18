"""Turns a `cupy.RawKernel` or `ElementwiseKernel` and its arguments into a cubin and that kernel's parameters.

CuPy itself compiles only where a driver is. So its source and options are taken, for an `ElementwiseKernel` the source
that CuPy's own generator writes, and compiled as other CUDA C++ is.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sectorwise.errors import ArgumentError, CompileError, MissingToolError
from sectorwise.frontends.base import Compilation, CompileRequest
from sectorwise.frontends.cuda import CUDA, find_header_folders
from sectorwise.frontends.nvrtc import Program, compile_program, load_nvrtc
from sectorwise.frontends.objects import ARGUMENTS, ObjectCompilation, ObjectLaunch
from sectorwise.launch.config import BufferArgument, LaunchConfig, ScalarArgument, StructArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES, LONG_NAMES
from sectorwise.launch.sharing import share_buffers
from sectorwise.source import read_source

TESTED_VERSIONS: Final = ("14.2.0",)
_INSTALL = "pip install 'sectorwise[cupy]' brings it; no GPU is needed"
_NUMPY_NAMES = {short: long for long, short in LONG_NAMES.items() if short != "bf16"}
_ELEMENTWISE_THREADS = 128
_KIND_ARRAY, _KIND_INDEXER, _KIND_SCALAR = 1, 2, 3
_PREAMBLE = "#include <cupy/carray.cuh>\n#include <cupy/atomics.cuh>\n#include <cupy/math_constants.h>\n"
_LARGEST_32_BIT = 1 << 31


def is_cupy_kernel(kernel: object) -> bool:
    """Whether this is a `RawKernel` or an `ElementwiseKernel`; CuPy is not imported for that."""
    kind = type(kernel)
    return kind.__module__.startswith("cupy.") and kind.__name__ in {"RawKernel", "ElementwiseKernel"}


def compile_cupy(kernel: Any, launch: ObjectLaunch, target: str) -> tuple[ObjectCompilation, ...]:  # noqa: ANN401
    """Compile a kernel; of an `ElementwiseKernel` the loop for the types of a launch's arguments is made first.

    Raises:
        ArgumentError: an argument is of a kind that is not read, or the launch has no block.
        CompileError: the compiler's message, with lines of the kernel's own text.
        MissingToolError: CuPy, or NVRTC, is not installed.
    """
    version = _find_version()
    if launch.named:
        raise ArgumentError(f"{launch.origin}: CuPy's kernels take arguments by place, not by name")
    if type(kernel).__name__ == "RawKernel":
        return (_compile_raw(kernel, launch, target),)
    return (_compile_elementwise(kernel, launch, target, version),)


def _find_version() -> str:
    try:
        import cupy
    except ImportError as error:
        raise MissingToolError(f"CuPy is not installed ({error}): {_INSTALL}") from None
    version: str = cupy.__version__
    if version not in TESTED_VERSIONS:
        message = f"CuPy {version} is untested; tested are {', '.join(TESTED_VERSIONS)}"
        warnings.warn(message, UserWarning, stacklevel=4)
    return version


def _compile_raw(kernel: Any, launch: ObjectLaunch, target: str) -> ObjectCompilation:  # noqa: ANN401 - CuPy's type
    if kernel.code is None:
        raise ArgumentError(f"{kernel.name} comes from a file ({kernel.file_path}): check that file")
    if launch.block is None:
        raise ArgumentError(f"{launch.origin}: {kernel.name} needs threads: {kernel.name}[blocks, threads](...)")
    options = tuple(str(option) for option in kernel.options)
    request = CompileRequest(target, kernels=(kernel.name,), options=options)
    path, code = _place_code(kernel, launch.file)
    made = CUDA.compile_text(path, code, request)
    arguments = tuple(value for value in launch.positional if isinstance(value, ARGUMENTS))
    if len(arguments) != len(launch.positional):
        raise ArgumentError(f"{launch.origin}: {kernel.name} takes arrays and numbers, got {launch.positional}")
    config = LaunchConfig(
        kernel.name, _read_grid(launch), launch.block, launch.dynamic_shared_bytes, share_buffers(arguments)
    )
    return ObjectCompilation(made, config)


def _place_code(kernel: Any, file: str | None) -> tuple[Path, str]:  # noqa: ANN401 - as above
    """Return the kernel's source, at the lines of the Python file that has it, if that can be told."""
    code: str = kernel.code
    text = read_source(Path(file)).text if file is not None else ""
    if text.count(code) != 1:
        return Path(f"{kernel.name}.cupy.cu"), code
    line = text[: text.index(code)].count("\n") + 1
    return Path(f"{kernel.name}.cupy.cu"), f'#line {line} "{file}"\n{code}'


def _read_grid(launch: ObjectLaunch) -> tuple[int, int, int]:
    if callable(launch.grid):
        raise ArgumentError(f"{launch.origin}: CuPy takes blocks as numbers, not as a function")
    x, y, z = (*(int(size) for size in launch.grid), 1, 1)[:3]
    return x, y, z


def _compile_elementwise(kernel: Any, launch: ObjectLaunch, target: str, version: str) -> ObjectCompilation:  # noqa: ANN401
    values = _check_elementwise(kernel, launch)
    count = next(value.passed for value in values if isinstance(value, BufferArgument))
    code = _PREAMBLE + _write_loop(kernel, values, count)
    nvrtc = load_nvrtc()
    folders = [
        _find_headers(),
        *(_find_headers() / "cupy" / "_cccl" / name for name in ("libcudacxx", "thrust", "cub")),
    ]
    options = (
        f"-arch={target}",
        "-lineinfo",
        "--std=c++17",
        "-D_FORCE_INLINES=1",
        *(f"-I{folder}" for folder in (*folders, *find_header_folders())),
    )
    file = f"{kernel.name}.cupy.cu"
    try:
        cubin, _ = compile_program(nvrtc, Program(file, code, (), options, ()))
    except CompileError as error:
        raise CompileError(f"{launch.origin}: {kernel.name}: {error}") from None
    compilation = Compilation(
        cubin=cubin, target=target, compiler=f"CuPy {version}, {nvrtc.version}", source_file=file, source_text=code
    )
    # The last parameter counts the elements: how many, in which shape, and where the loop is.
    indexer = StructArgument(tuple(ScalarArgument(number, "i64") for number in (count, count, 0)))
    threads = min(_ELEMENTWISE_THREADS, count)
    config = LaunchConfig(
        kernel=kernel.name,
        grid=(-(-count // _ELEMENTWISE_THREADS), 1, 1),
        block=(threads, 1, 1),
        dynamic_shared_bytes=0,
        arguments=(*(_pass(value) for value in values), indexer),
    )
    return ObjectCompilation(compilation, config)


def _check_elementwise(kernel: Any, launch: ObjectLaunch) -> list[BufferArgument | ScalarArgument]:  # noqa: ANN401
    values = [value for value in launch.positional if isinstance(value, BufferArgument | ScalarArgument)]
    wanted = len(kernel.in_params) + len(kernel.out_params)
    where = f"{launch.origin}: {kernel.name}"
    if len(values) != wanted or len(launch.positional) != wanted:
        raise ArgumentError(
            f"{where} takes {wanted} arrays or numbers, inputs and outputs, got {len(launch.positional)}"
        )
    counts = {value.passed for value in values if isinstance(value, BufferArgument)}
    if len(counts) != 1:
        raise ArgumentError(f"{where}: arrays of one size are read, got {sorted(counts)} elements")
    if any(isinstance(value, BufferArgument) and value.strides is not None for value in values):
        raise ArgumentError(f"{where}: contiguous arrays are read, got one with gaps: pass a copy")
    return values


def _find_headers() -> Path:
    import cupy

    return Path(str(cupy.__file__)).parent / "_core" / "include"


def _write_loop(kernel: Any, values: list[BufferArgument | ScalarArgument], count: int) -> str:  # noqa: ANN401
    """Return the source that CuPy writes for contiguous arrays, which it takes as having one dimension."""
    import cupy
    import numpy as np
    from cupy._core import _carray, _kernel

    dtypes = [np.dtype(_NUMPY_NAMES[value.dtype or "f32"]) for value in values]
    inputs = len(kernel.in_params)
    _, _, types = kernel._decide_params_type(tuple(dtypes[:inputs]), tuple(dtypes[inputs:]))  # noqa: SLF001
    is_small = count < _LARGEST_32_BIT
    described = [
        _kernel._ArgInfo(_KIND_ARRAY, cupy.ndarray, dtype.type, 1, True, is_small)  # noqa: SLF001, FBT003
        if isinstance(value, BufferArgument)
        else _kernel._ArgInfo(_KIND_SCALAR, dtype.type, dtype.type, 0, True, True)  # noqa: SLF001, FBT003
        for value, dtype in zip(values, dtypes, strict=True)
    ]
    described.append(_kernel._ArgInfo(_KIND_INDEXER, _carray.Indexer, None, 1, True, is_small))  # noqa: SLF001, FBT003
    write = _kernel._get_elementwise_kernel_code  # noqa: SLF001
    code: str = write(tuple(described), types, kernel.params, kernel.operation, kernel.name, kernel.preamble)
    return code


def _pass(value: BufferArgument | ScalarArgument) -> StructArgument | ScalarArgument:
    """A CuPy array of one dimension: address, number of elements, shape, strides in bytes."""
    if isinstance(value, ScalarArgument):
        return value
    size_bytes = ELEMENT_TYPES[value.dtype].size_bytes
    words = tuple(ScalarArgument(number, "i64") for number in (value.passed, value.passed, size_bytes))
    return StructArgument((replace(value, span=None, shape=None, strides=None), *words))
