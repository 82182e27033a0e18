"""Turns launches, of a file's kernels or of a kernel object, into jobs: launches with the cubins that they need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from msgspec import Struct

from sectorwise.binary.cubin import read_cubin
from sectorwise.errors import ArgumentError
from sectorwise.frontends.names import split_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.binary.ir import Cubin
    from sectorwise.frontends.base import Compilation, CompileRequest, Frontend
    from sectorwise.frontends.objects import ObjectCompilation, ObjectLaunch
    from sectorwise.frontends.python_file import PythonFrontend
    from sectorwise.launch.config import LaunchConfig


class Job(Struct, frozen=True):
    """A launch, the cubin that has its kernel, and the file by which reports name its source."""

    config: LaunchConfig
    compilation: Compilation
    cubin: Cubin
    source: Path


def is_python(frontend: Frontend) -> TypeGuard[PythonFrontend]:
    """Whether it is that of Python files, asked without importing it: it takes longer than reading a cubin."""
    return frontend.name == "python"


def compile_launches(
    frontend: Frontend,
    path: Path,
    request: CompileRequest,
    configs: Sequence[LaunchConfig],
    variant: int | None = None,
) -> list[Job]:
    """Compile a file for launches of its kernels.

    A source is compiled once for all of them; of a library, the cubin of each kernel is taken out; a Python kernel is
    compiled for each launch, an autotuned one for each configuration, or for `variant` alone.

    Raises:
        SectorwiseError: one of its kinds, as the front end says.
    """
    if variant is not None and not is_python(frontend):
        raise ArgumentError(f"{path}: configurations are those of autotuned Triton kernels; it has none")
    if is_python(frontend):
        made = [each for config in configs for each in frontend.compile_launch(path, config, request.target, variant)]
        return _read_all(made, split_name(path)[0])
    if frontend.name != "library":
        compilation = frontend.compile(path, request)
        symbols = tuple(compilation.kernel_names.get(name, name) for name in request.kernels)
        cubin = read_cubin(compilation.cubin, path.as_posix(), symbols)
        return [Job(config, compilation, cubin, path) for config in configs]
    taken: dict[str, tuple[Compilation, Cubin]] = {}
    for name in request.kernels:
        compilation = frontend.compile(path, replace(request, kernels=(name,)))
        taken[name] = compilation, read_cubin(compilation.cubin, path.as_posix(), (compilation.kernel_names[name],))
    return [Job(config, *taken[config.kernel], path) for config in configs]


def compile_kernel_object(kernel: object, launch: ObjectLaunch, target: str) -> list[Job]:
    """Compile a kernel of Triton, Numba or CuPy for a launch, an autotuned one for each of its configurations.

    Raises:
        SectorwiseError: one of its kinds, as the front end says.
    """
    from sectorwise.frontends.compile_object import compile_object

    return _read_all(compile_object(kernel, launch, target), Path(launch.origin))


def _read_all(made: Sequence[ObjectCompilation], path: Path) -> list[Job]:
    cubins: dict[bytes, Cubin] = {}
    for each in made:
        if each.compilation.cubin not in cubins:
            cubins[each.compilation.cubin] = read_cubin(each.compilation.cubin, each.launch.kernel)
    return [
        Job(
            each.launch,
            each.compilation,
            cubins[each.compilation.cubin],
            path if each.compilation.source_file is None else Path(Path(each.compilation.source_file).name),
        )
        for each in made
    ]
