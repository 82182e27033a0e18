"""Turns a Triton kernel and its arguments into a cubin, specialised as Triton's own JIT does it, and its parameters.

Triton compiles without a GPU once a driver says for which one: a driver of ours does, for as long as a kernel is being
compiled, and the JIT's `warmup` takes stand-ins for tensors, which have an address and an element type.
"""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sectorwise.errors import ArgumentError, CompileError, MissingToolError, SectorwiseError
from sectorwise.frontends.base import Compilation
from sectorwise.frontends.objects import ObjectCompilation, ObjectLaunch
from sectorwise.frontends.ptx import correct_lines
from sectorwise.launch.config import BufferArgument, Contents, LaunchConfig, PointerArgument, ScalarArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.launch.sharing import share_buffers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TESTED_VERSIONS: Final = ("3.5.0", "3.8.0", "3.9.0")
_INSTALL = "pip install 'sectorwise[triton]' brings it; no GPU is needed"
_TRITON_NAMES = {
    "f64": "fp64",
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    **{f"{sign}{bits}": f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
}
_NAMES = {name: dtype for dtype, name in _TRITON_NAMES.items()} | {"i1": "u8", "u1": "u8"}
_REQUIRED_THREADS = re.compile(r"\.reqntid\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_ALIGNED_ADDRESS = 1 << 20


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What Triton's JIT looks at of a tensor: the element type by Triton's name, and the alignment of the address."""

    dtype: str
    skipped_bytes: int = 0

    def data_ptr(self) -> int:
        """Buffers are aligned to 512 bytes here, views of them as they lie; divisibility by 16 matters to the JIT."""
        return _ALIGNED_ADDRESS + self.skipped_bytes


@dataclass(frozen=True, slots=True)
class _Driver:
    """What Triton asks a driver while it compiles."""

    capability: int

    def get_current_target(self) -> Any:  # noqa: ANN401 - Triton's own type
        """The target, as Triton describes one."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        """A number by which the JIT keeps what it compiled apart: the capability does."""
        return self.capability

    @staticmethod
    def get_current_stream(device: int) -> int:
        """No stream."""
        del device
        return 0


def is_triton_kernel(kernel: object) -> bool:
    """Whether this is a `@triton.jit` function, autotuned or with heuristics; Triton is not imported for that."""
    return any(
        base.__module__.startswith("triton.runtime") and base.__name__ in {"JITFunction", "Autotuner", "Heuristics"}
        for base in type(kernel).__mro__
    )


def compile_triton(kernel: Any, launch: ObjectLaunch, target: str) -> tuple[ObjectCompilation, ...]:  # noqa: ANN401
    """Compile a kernel for a launch, once for each configuration that is asked for.

    Raises:
        ArgumentError: the arguments do not fit the kernel, or are of a kind that is not read.
        CompileError: Triton's message, with the line of the kernel.
        MissingToolError: Triton is not installed.
    """
    version = _find_version()
    capability = int("".join(filter(str.isdigit, target)))
    made = []
    with _use_driver(_Driver(capability)):
        for label, function, named in _list_variants(kernel, launch):
            variant = replace(launch, named=named)
            compiled, bound = _compile(function, variant)
            compilation = Compilation(
                cubin=_assemble(function, compiled),
                target=f"sm_{capability}",
                compiler=f"Triton {version}",
            )
            made.append(ObjectCompilation(compilation, _make_launch(compiled, variant, bound, label)))
    return tuple(made)


def _find_version() -> str:
    try:
        import triton
    except ImportError as error:
        raise MissingToolError(f"Triton is not installed ({error}): {_INSTALL}") from None
    version: str = triton.__version__
    if version not in TESTED_VERSIONS:
        message = f"Triton {version} is untested; tested are {', '.join(TESTED_VERSIONS)}"
        warnings.warn(message, UserWarning, stacklevel=4)
    return version


@contextmanager
def _use_driver(driver: _Driver) -> Iterator[None]:
    from triton.runtime import driver as drivers

    before = drivers._active  # noqa: SLF001 - asking for it by its public name would look for a GPU
    drivers.set_active(driver)
    try:
        yield
    finally:
        drivers.set_active(before)


def _list_variants(kernel: Any, launch: ObjectLaunch) -> Iterator[tuple[str | None, Any, dict[str, object]]]:  # noqa: ANN401
    """Yield label, function and named arguments for each configuration; autotuning and heuristics are unwrapped."""
    configs = list(getattr(kernel, "configs", ()))
    if launch.config is not None and not 0 <= launch.config < len(configs):
        known = f"it has {len(configs)}, from 0 on" if configs else "it is not autotuned"
        raise ArgumentError(f"{launch.origin}: there is no configuration {launch.config}: {known}")
    chosen = [launch.config] if launch.config is not None else list(range(len(configs)))
    if not chosen:
        yield None, *_unwrap(kernel, launch, dict(launch.named))
    for number in chosen:
        settings = configs[number].all_kwargs()
        yield describe_config(configs[number], number), *_unwrap(kernel.fn, launch, {**launch.named, **settings})


def describe_config(config: Any, number: int | None) -> str:  # noqa: ANN401 - Triton's own type
    """`config 1: BLOCK=256, num_warps=2`; None for one that the kernel's author did not list."""
    settings = ", ".join(f"{name}={value}" for name, value in config.all_kwargs().items() if value is not None)
    return f"config{'' if number is None else f' {number}'}: {settings}"


def _unwrap(kernel: Any, launch: ObjectLaunch, named: dict[str, object]) -> tuple[Any, dict[str, object]]:  # noqa: ANN401
    while type(kernel).__name__ == "Heuristics":
        given = dict(zip(kernel.arg_names, map(_stand_in, launch.positional), strict=False))
        given |= {name: _stand_in(value) for name, value in named.items()}
        named |= {name: choose({**given, **named}) for name, choose in kernel.values.items()}
        kernel = kernel.fn
    return kernel, named


def _stand_in(value: object) -> object:
    """What Triton's JIT gets for an argument."""
    match value:
        case BufferArgument(dtype=dtype, skip=skip):
            return _Tensor(_TRITON_NAMES[dtype], skip * ELEMENT_TYPES[dtype].size_bytes)
        case ScalarArgument(value=number, dtype="u8") if number in {0, 1}:
            return bool(number)
        case ScalarArgument(value=number):
            return number
        case PointerArgument():
            raise ArgumentError("ptr(...) has no element type, which Triton needs: pass the buffer itself")
        case _:
            return value


def _compile(function: Any, launch: ObjectLaunch) -> tuple[Any, Mapping[str, object]]:  # noqa: ANN401 - Triton's types
    """Return the compiled kernel, and the arguments by name as the JIT binds them."""
    positional = [_stand_in(value) for value in launch.positional]
    named = {name: _stand_in(value) for name, value in launch.named.items()}
    where = f"{launch.origin}: {function.__name__}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Triton's news of coming versions are not about this kernel
            compiled = _warm_up(function, positional, named)
            *_, binder = function.device_caches[_current_device()]
            bound, *_ = binder(*positional, debug=False, **named)
    except SectorwiseError:
        raise
    except TypeError as error:
        raise ArgumentError(f"{where}{function.signature}: {error}") from None
    except Exception as error:  # noqa: BLE001 - Triton's compiler raises many kinds, none of them documented
        raise CompileError(f"{where}: {type(error).__name__}: {error}") from None
    return compiled, bound


def _warm_up(function: Any, positional: list[object], named: dict[str, object]) -> Any:  # noqa: ANN401 - as above
    """Compile, or take what Triton kept; it keeps code by the text of a kernel, whichever file that stood in."""
    compiled = function.warmup(*positional, grid=(1,), **named)
    if _is_of_file(compiled.asm["ptx"], function.fn.__code__.co_filename):
        return compiled
    from triton import knobs

    in_memory, *_ = function.device_caches[_current_device()]
    in_memory.clear()
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        return function.warmup(*positional, grid=(1,), **named)


def _is_of_file(ptx: str, file: str) -> bool:
    """Whether the places in PTX are of this file, or there are none."""
    named = [Path(folder) / name for folder, name in _FILE.findall(ptx)]
    return not named or Path(file).absolute() in [each.absolute() for each in named]


def _assemble(function: Any, compiled: Any) -> bytes:  # noqa: ANN401 - Triton's types
    """Return the cubin with the lines of the source: assembled once more by Triton's own assembler, if they were not.

    LLVM counts the lines of inline assembly from the line of the call on, and Triton writes loads as four such lines.
    """
    ptx: str = compiled.asm["ptx"]
    corrected = correct_lines(ptx)
    cubin: bytes = compiled.asm["cubin"]
    if corrected != ptx:
        *_, backend, _ = function.device_caches[_current_device()]
        cubin = backend.make_cubin(corrected, {}, compiled.metadata, backend.target.arch)
    return cubin


def _current_device() -> int:
    from triton.runtime import driver as drivers

    device: int = drivers.active.get_current_device()
    return device


def _make_launch(compiled: Any, launch: ObjectLaunch, bound: Mapping[str, object], label: str | None) -> LaunchConfig:  # noqa: ANN401
    """The launch in terms of the cubin: parameters that are constants are gone, two for Triton's scratch are last."""
    given = dict(zip(bound, launch.positional, strict=False)) | dict(launch.named)
    signature: Mapping[str, str] = compiled.src.signature
    grid = launch.grid(bound) if callable(launch.grid) else launch.grid
    metadata = compiled.metadata
    blocks = (*(int(size) for size in grid), 1, 1)[:3]
    found = _REQUIRED_THREADS.search(compiled.asm["ptx"])
    threads = int(found[1]) if found else 32 * metadata.num_warps
    arguments = [
        _make_argument(name, kind, given.get(name, bound.get(name)))
        for name, kind in signature.items()
        if kind != "constexpr"
    ]
    count = blocks[0] * blocks[1] * blocks[2]
    arguments += [
        _make_scratch(metadata.global_scratch_size, count, "scratch"),
        _make_scratch(metadata.profile_scratch_size, count, "profile_scratch"),
    ]
    return LaunchConfig(
        kernel=metadata.name,
        grid=(blocks[0], blocks[1], blocks[2]),
        block=(threads, 1, 1),
        dynamic_shared_bytes=metadata.shared,
        arguments=share_buffers(arguments),
        case=label,
    )


def _make_argument(name: str, kind: str, value: object) -> Any:  # noqa: ANN401 - an argument of any kind
    match value:
        case BufferArgument():
            return replace(value, name=name, span=None)
        case ScalarArgument(value=number) | (int() | float() as number):
            dtype = _NAMES.get(kind)
            if dtype is None:
                raise ArgumentError(f"argument {name} has Triton's type {kind}, which is not passed here")
            is_float = ELEMENT_TYPES[dtype].is_float
            return ScalarArgument(float(number) if is_float else int(number), dtype, name)
        case _:
            raise ArgumentError(f"argument {name} has Triton's type {kind}, which is not passed here")


def _make_scratch(size_bytes: int, blocks: int, name: str) -> BufferArgument | ScalarArgument:
    if not size_bytes:
        return ScalarArgument(0, "u64", name)
    return BufferArgument("u8", size_bytes * blocks, Contents(), name)
