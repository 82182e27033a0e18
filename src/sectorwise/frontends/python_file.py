"""Turns a Python file with kernels of Triton, Numba or CuPy into those kernels, and into what each launch runs."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError, MissingToolError, SectorwiseError, UnknownKernelError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline
from sectorwise.frontends.compile_object import compile_object, is_kernel
from sectorwise.frontends.names import split_name
from sectorwise.frontends.objects import ObjectCompilation, ObjectLaunch
from sectorwise.launch.config import ScalarArgument
from sectorwise.source import read_source

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.config import LaunchConfig

_JIT = re.compile(r"\b(?:triton|cuda)\.jit\b|^jit\b")
_EXTRAS = ("triton", "numba", "cupy", "torch")


@dataclass(frozen=True, slots=True)
class PythonFrontend:
    """Imports `.py` files, `kernels.py` or `kernels.py::softmax_kernel`, and compiles what is launched."""

    name: str = "python"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name, up to `::`, ends in .py."""
        return split_name(path)[0].suffix == ".py"

    def outline(self, path: Path) -> Outline:
        """Return the text; it is read, not run."""
        return Outline(read_source(split_name(path)[0]).text)

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Refuse: a Python kernel is compiled for a launch, by `compile_launch`."""
        del request
        raise ArgumentError(f"{path}: a Python kernel is compiled for the arguments of a launch, and none is here")

    def compile_launch(
        self, path: Path, launch: LaunchConfig, target: str, config: int | None = None
    ) -> tuple[ObjectCompilation, ...]:
        """Import the file, find the kernel of the launch and compile it for the launch's arguments.

        Raises:
            ArgumentError: the file cannot be run, or the arguments do not fit the kernel.
            UnknownKernelError: it has no such kernel.
            MissingToolError: it imports a package that is not installed.
        """
        file, name = split_name(path)
        kernel = find_kernel_object(file, name or launch.kernel)
        named = {each.name: each for each in launch.arguments if each.name is not None}
        positional = tuple(each for each in launch.arguments if each.name is None)
        plain = {key: _read_plain(value) for key, value in named.items()}
        wanted = ObjectLaunch(
            grid=launch.grid,
            block=launch.block,
            dynamic_shared_bytes=launch.dynamic_shared_bytes,
            positional=positional,
            named=plain,
            config=config,
            origin=launch.span.origin if launch.span is not None else file.name,
            file=str(file.resolve()),
        )
        return compile_object(kernel, wanted, target)


def sketch_python_launches(text: str) -> tuple[str, ...]:
    """Return a launch to fill in for each function with a decorator of Triton or Numba, from the text alone."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    sketches = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(each) for each in node.decorator_list]
            shape = "grid" if any("triton" in each or "autotune" in each for each in decorators) else "blocks, threads"
            if any(_JIT.search(each) for each in decorators):
                sketches.append(
                    f"{node.name}[{shape}]({', '.join(_sketch_parameter(each) for each in node.args.args)})"
                )
    return tuple(sketches)


def _sketch_parameter(parameter: ast.arg) -> str:
    is_constant = parameter.annotation is not None and "constexpr" in ast.unparse(parameter.annotation)
    return f"{parameter.arg}=value" if is_constant else parameter.arg


def find_kernel_object(file: Path, name: str) -> object:
    """Import a file and return its kernel of that name (`Class.kernel` too).

    Raises:
        ArgumentError: the file cannot be read, or raises; the text has its traceback.
        UnknownKernelError: it has no kernel of that name; the text lists those that it has.
        MissingToolError: it imports a package that is not installed.
    """
    module = _import_file(file)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or not is_kernel(found):
        kernels = [each for each, value in vars(module).items() if is_kernel(value)]
        known = f"it has {', '.join(kernels)}" if kernels else "it has none of Triton, Numba or CuPy"
        what = "is no kernel" if found is not None else "is not there"
        raise UnknownKernelError(f"{file}: {name!r} {what}; {known}")
    return found


def _read_plain(value: object) -> object:
    """A number that is passed by name may be a constant of the compiler's, which takes Python's own numbers."""
    return value.value if isinstance(value, ScalarArgument) and value.dtype is None else value


def _import_file(file: Path) -> object:
    read_source(file)
    key = f"_sectorwise_{file.resolve().as_posix()}"
    if key in sys.modules:
        return sys.modules[key]
    spec = importlib.util.spec_from_file_location(key, file.resolve())
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except SectorwiseError:
        raise
    except ModuleNotFoundError as error:
        sys.modules.pop(key, None)
        raise _explain_missing(file, error) from None
    except Exception as error:  # noqa: BLE001 - the person's own file may raise anything
        sys.modules.pop(key, None)
        shown = "".join(traceback.format_exception(error, limit=-4)).rstrip()
        raise ArgumentError(f"{file} raises when it is imported:\n{shown}") from None
    finally:
        sys.path.pop(0)
    return module


def _explain_missing(file: Path, error: ModuleNotFoundError) -> SectorwiseError:
    package = (error.name or "").partition(".")[0]
    if package in _EXTRAS[:3]:
        return MissingToolError(f"{file} needs {package}: pip install 'sectorwise[{package}]'")
    return MissingToolError(f"{file} needs {package}, which is not installed: pip install {package}")


PYTHON = PythonFrontend()
