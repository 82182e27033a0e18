"""Turns the launches of Triton, Numba and CuPy inside a `with` into analyses, none of them run on a GPU."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sectorwise.analysis.captured import Captured, CapturedLaunch
from sectorwise.analyze import DEFAULT_DEVICE, analyze
from sectorwise.capture.cupy import list_cupy_replacements
from sectorwise.capture.numba import list_numba_replacements
from sectorwise.capture.replacement import Record, Replacement, replace_all
from sectorwise.capture.torch import capture_torch
from sectorwise.capture.triton import list_triton_replacements
from sectorwise.device import DeviceSpec, load_device, require_sass
from sectorwise.errors import ArgumentError, CaptureError, MissingToolError, SectorwiseError
from sectorwise.launch.values import describe_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.machine.execution import ExecutionOptions

FRAMEWORKS: Final = ("triton", "numba", "cupy", "torch")
"""The first three have kernels; PyTorch makes the tensors that Triton's are given."""

_PACKAGES: Final = {"triton": "triton", "numba": "numba.cuda", "cupy": "cupy", "torch": "torch"}
_INSTALL: Final = {"torch": "pip install torch"}


@contextmanager
def capture(
    *,
    device: str = DEFAULT_DEVICE,
    config: int | None = None,
    frameworks: Sequence[str] | None = None,
    options: ExecutionOptions | None = None,
) -> Iterator[Captured]:
    """Analyse each launch of a Triton, Numba or CuPy kernel inside the `with`, instead of running it.

    So arrays keep what they held. Allocations on a device become NumPy arrays, tensors of PyTorch on `cuda` are made on
    the CPU, streams and events do nothing, and questions are answered for `device`; `replaced` of what is yielded lists
    all entry points that are replaced, `passed_over` what PyTorch's own kernels would have done. Of an autotuned kernel
    configuration `config` is taken, or the first that its own pruning leaves where that one is none of them.
    `frameworks` are those of `FRAMEWORKS` that are replaced: by default those that are imported (with PyTorch, Triton),
    or all that are installed where none is.

    Raises:
        CaptureError: the code inside used an entry point that needs a GPU and is not replaced; the text names it.
        ArgumentError: a framework is not known.
        MissingToolError: one that was asked for is not installed.
    """
    spec = load_device(device)
    require_sass(spec)
    seen: dict[object, int] = {}
    launches: list[CapturedLaunch] = []
    repeats: list[int] = []

    def record(kernel: object, **launch: Any) -> None:  # noqa: ANN401 - as `Record` says
        key = _make_key(kernel, launch)
        if key in seen:
            repeats[seen[key]] += 1
            return
        seen[key] = len(launches)
        repeats.append(0)
        launches.append(_analyze_launch(kernel, launch, spec.id, options))

    chosen = choose_frameworks(frameworks)
    passed_over: Counter[str] = Counter()
    with ExitStack() as stack:
        names = stack.enter_context(capture_torch(spec, passed_over)) if "torch" in chosen else ()
        replacements = _list_replacements(chosen, record, spec, config)
        stack.enter_context(replace_all(replacements))
        replaced = (*(each.name for each in replacements if each.name), *names)
        yield Captured(spec.id, replaced, launches, repeats, passed_over)


def choose_frameworks(wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Those that were asked for, else those that are imported (with PyTorch, Triton), else all that are installed.

    Raises:
        ArgumentError: one is not known.
        MissingToolError: one that was asked for is not installed.
    """
    installed = tuple(name for name in FRAMEWORKS if _is_installed(_PACKAGES[name]))
    if wanted is None:
        imported = {name for name in installed if _PACKAGES[name] in sys.modules}
        if "torch" in imported:
            imported.add("triton")
        return tuple(name for name in installed if name in imported) or installed
    for name in wanted:
        if name not in FRAMEWORKS:
            raise ArgumentError(f"launches of {name!r} are not captured: expected {', '.join(FRAMEWORKS)}")
        if name not in installed:
            how = _INSTALL.get(name, f"pip install 'sectorwise[{name}]'")
            raise MissingToolError(f"{name} is not installed: {how}")
    return tuple(wanted)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _list_replacements(
    frameworks: Sequence[str], record: Record, device: DeviceSpec, config: int | None
) -> list[Replacement]:
    found: list[Replacement] = []
    for name in frameworks:
        match name:
            case "triton":
                found += list_triton_replacements(record, device, config)
            case "numba":
                found += list_numba_replacements(record)
            case "cupy":
                found += list_cupy_replacements(record)
    return found


def _make_key(kernel: object, launch: dict[str, Any]) -> object:
    values = [describe_value(value) for value in launch.get("positional", ())]
    named = sorted((name, describe_value(value)) for name, value in launch.get("named", {}).items())
    grid = _describe_grid(launch.get("grid"))
    shape = (grid, str(launch.get("block")), launch.get("dynamic_shared_bytes", 0))
    return (id(kernel), shape, tuple(values), tuple(named))


def _describe_grid(grid: object) -> object:
    """What tells grids apart; a function made in each turn of a loop is the same if its code and its values are."""
    code = getattr(grid, "__code__", None)
    if code is None:
        return id(grid) if callable(grid) else str(grid)
    held = [describe_value(cell.cell_contents) for cell in getattr(grid, "__closure__", None) or ()]
    return (code, tuple(held))


def _analyze_launch(
    kernel: object, launch: dict[str, Any], device: str, options: ExecutionOptions | None
) -> CapturedLaunch:
    name = str(getattr(kernel, "__name__", getattr(kernel, "name", type(kernel).__name__)))
    try:
        analysis = analyze(
            kernel,
            grid=_tidy_shape(launch["grid"]),
            block=_tidy_shape(launch.get("block")),
            args=tuple(launch.get("positional", ())),
            constexprs=launch.get("named", {}),
            dynamic_shared_bytes=launch.get("dynamic_shared_bytes", 0),
            device=device,
            options=options,
        )
    except CaptureError:
        raise
    except SectorwiseError as error:
        return CapturedLaunch(name, None, str(error))
    case = launch.get("case")
    if case is not None:
        analysis = replace(analysis, kernels=tuple(replace(kernel, case=case) for kernel in analysis.kernels))
    return CapturedLaunch(name, analysis)


def _tidy_shape(shape: Any) -> Any:  # noqa: ANN401 - numbers, a list of them, or a function
    return tuple(int(size) for size in shape) if isinstance(shape, tuple | list) else shape
