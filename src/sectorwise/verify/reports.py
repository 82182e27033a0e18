"""Turns a report of Nsight Compute (`.ncu-rep`) into plain data: its launches, their counters, their instructions.

The report is read with NVIDIA's own module, `ncu_report`: the PyPI package `ncu-report`, or else the copy that an
installed Nsight Compute brings. Neither needs a GPU.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sectorwise.analysis.profile import PROFILE_SCHEMA, Profile, ProfiledLaunch, ProfiledSite, ProfiledText
from sectorwise.binary.control import read_control
from sectorwise.binary.ir import Instruction, Location
from sectorwise.binary.parser import parse_statement
from sectorwise.errors import ArgumentError, MissingToolError, ReportError
from sectorwise.machine.forms import access_of
from sectorwise.machine.products import product_access_of
from sectorwise.source import make_source, read_source, shorten_path
from sectorwise.verify.counters import SITE_COUNTERS, TIME_METRIC, TOTAL_COUNTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MODULE: Final = "ncu_report"
_EXECUTED: Final = "inst_executed"
_FUNCTION: Final = "launch__function_pcs"
_INSTRUCTION_BYTES: Final = 16
_MOST_INSTRUCTIONS: Final = 1 << 20
_NS_PER_UNIT: Final = {"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9}
_NAME_FUNCTION, _NAME_MANGLED = 0, 2
_BLOCK_METRICS: Final = ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z")
_GRID_METRICS: Final = ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z")


def read_report(path: Path, module_folders: Sequence[Path] = ()) -> Profile:
    """The launches of a report, in their order.

    `module_folders` are searched for `ncu_report` where the PyPI package is not installed.

    Raises:
        ReportError: the file is not there, or no report with launches in it.
        MissingToolError: nothing is installed that can read reports.
    """
    if not path.is_file():
        raise ReportError(f"there is no file {path}")
    module = load_module(module_folders)
    try:
        context = module.load_report(str(path))
        gathered = [context.range_by_idx(index) for index in range(context.num_ranges())]
        actions = [each.action_by_idx(index) for each in gathered for index in range(each.num_actions())]
    except Exception as error:  # the module's own exceptions are of many types
        raise ReportError(f"{path} cannot be read as a report of Nsight Compute: {error}") from error
    kernels = [action for action in actions if action.workload_type() == _workload(module)]
    launches = tuple(read_launch(action) for action in kernels)
    if not launches:
        raise ReportError(f"{path} holds no launch of a kernel: it is empty, cut off, or no report of Nsight Compute")
    reader = f"{_MODULE} {context.get_version()}" if hasattr(context, "get_version") else _MODULE
    texts = _find_texts(kernels, launches, path.parent)
    return Profile(schema=PROFILE_SCHEMA, source=path.as_posix(), reader=reader, launches=launches, texts=texts)


def load_module(folders: Sequence[Path] = ()) -> Any:  # noqa: ANN401 - the module has no types
    """The module that reads reports, from the environment or else from one of the folders.

    Raises:
        MissingToolError: there is none; the text says how to install it.
    """
    before = list(sys.path)
    try:
        sys.path += [str(folder) for folder in folders]
        return importlib.import_module(_MODULE)
    except ImportError as error:
        why = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        message = f"reports cannot be read{why}: pip install 'sectorwise[verify]' brings ncu-report, no GPU is needed"
        raise MissingToolError(message) from error
    finally:
        sys.path[:] = before


def _workload(module: Any) -> int:  # noqa: ANN401 - as above
    kind: int = module.IAction.WorkloadType_KERNEL if hasattr(module, "IAction") else 0
    return kind


def read_launch(action: Any) -> ProfiledLaunch:  # noqa: ANN401 - as above
    """One launch: what it was, its totals, and the source view's counts of its memory instructions."""
    names = frozenset(action.metric_names())

    def number(metric: str) -> float | None:
        return action.metric_by_name(metric).as_double() if metric in names else None

    def text(metric: str) -> str | None:
        return action.metric_by_name(metric).as_string() if metric in names else None

    counted = {counter.name: number(counter.metric) for counter in TOTAL_COUNTERS}
    capability = [number(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")]
    shared, registers = number("launch__shared_mem_per_block_dynamic"), number("launch__registers_per_thread")
    return ProfiledLaunch(
        name=action.name(_NAME_FUNCTION),
        symbol=action.name(_NAME_MANGLED),
        grid=_read_extent(number, _GRID_METRICS),
        block=_read_extent(number, _BLOCK_METRICS),
        dynamic_shared_bytes=None if shared is None else round(shared),
        registers_per_thread=None if registers is None else round(registers),
        device=text("device__attribute_display_name"),
        compute_capability=None if None in capability else (int(capability[0] or 0), int(capability[1] or 0)),
        has_source_view=_EXECUTED in names,
        sites=tuple(_read_sites(action, names)),
        totals={name: round(value) for name, value in counted.items() if value is not None},
        time_ns=_read_time(action, names),
        code=_read_code(action, names),
    )


def _find_texts(actions: Sequence[Any], launches: Sequence[ProfiledLaunch], folder: Path) -> dict[str, ProfiledText]:
    """Texts by the names that locations have: of the report, of the path that it names, or of the like beside it."""
    named = {site.location.file for launch in launches for site in launch.sites if site.location is not None}
    held = {shorten_path(name): text for action in actions for name, text in action.source_files().items()}
    found: dict[str, ProfiledText] = {}
    for name in sorted(named):
        if held.get(name):
            found[name] = ProfiledText(make_source(name, held[name]).lines, None)
            continue
        for path in (Path(name), folder / Path(name).name):
            with suppress(ArgumentError):
                found[name] = ProfiledText(read_source(path).lines, shorten_path(str(path)))
                break
    return found


def _read_time(action: Any, names: frozenset[str]) -> float | None:  # noqa: ANN401 - as above
    if TIME_METRIC not in names:
        return None
    metric = action.metric_by_name(TIME_METRIC)
    scale = _NS_PER_UNIT.get(metric.unit())
    return None if scale is None else metric.as_double() * scale


def _read_extent(number: Callable[[str], float | None], metrics: tuple[str, str, str]) -> tuple[int, int, int]:
    x, y, z = (round(number(metric) or 0) for metric in metrics)
    return x, y, z


def _first_pc(action: Any, names: frozenset[str]) -> int | None:  # noqa: ANN401 - as above
    """Address of the kernel's first instruction."""
    if _FUNCTION not in names:
        return None
    metric = action.metric_by_name(_FUNCTION)
    first: int = metric.as_uint64(0) if metric.num_instances() else metric.as_uint64()
    return first


def _read_code(action: Any, names: frozenset[str]) -> tuple[str, ...]:  # noqa: ANN401 - as above
    first = _first_pc(action, names)
    if first is None:
        return ()
    lines = []
    for index in range(_MOST_INSTRUCTIONS):
        line = action.sass_by_pc(first + _INSTRUCTION_BYTES * index)
        if not line:
            break
        lines.append(" ".join(line.split()))
    return tuple(lines)


def _read_sites(action: Any, names: frozenset[str]) -> Iterator[ProfiledSite]:  # noqa: ANN401 - as above
    """Memory instructions that a warp issued and that accessed something, in the order of their addresses."""
    columns: dict[int, dict[str, int]] = {}
    known = [counter for counter in SITE_COUNTERS if counter.metric in names]
    for counter in known:
        metric = action.metric_by_name(counter.metric)
        places = metric.correlation_ids()
        for index in range(metric.num_instances()):
            columns.setdefault(places.as_uint64(index), {})[counter.name] = round(metric.as_double(index))
    first = _first_pc(action, names)
    for pc in sorted(columns):
        # A column that was collected has no entry for instructions whose count is zero.
        counts: dict[str, int | None] = {counter.name: columns[pc].get(counter.name, 0) for counter in known}
        if counts.get("executed") and any(value for name, value in counts.items() if name != "executed"):
            offset = None if first is None else pc - first
            site = make_site(" ".join(action.sass_by_pc(pc).split()), counts, offset, _read_location(action, pc))
            if site is not None:
                yield site


def make_site(
    sass: str, counts: Mapping[str, int | None], offset_bytes: int | None, location: Location | None
) -> ProfiledSite | None:
    """A memory instruction from its text and its counts by name; None where the text is of no memory instruction."""
    parsed = parse_statement(sass)
    instruction = Instruction(
        index=0,
        offset=offset_bytes or 0,
        opcode=parsed.opcode,
        modifiers=parsed.modifiers,
        guard=parsed.guard,
        operands=parsed.operands,
        text=sass,
        encoding=0,
        control=read_control(0),
        location=location,
    )
    access = access_of(instruction) or product_access_of(instruction)
    if access is None:
        return None
    return ProfiledSite(
        offset_bytes=offset_bytes,
        sass=sass,
        location=location,
        space=access.space,
        operation=access.operation,
        width_bytes=access.width_bytes,
        **{counter.name: counts.get(counter.name) for counter in SITE_COUNTERS},
    )


def _read_location(action: Any, pc: int) -> Location | None:  # noqa: ANN401 - as above
    info = action.source_info(pc)
    if info is None or not info.file_name():
        return None
    return Location(shorten_path(info.file_name()), info.line())
