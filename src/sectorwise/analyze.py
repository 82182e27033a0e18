"""Turns a kernel's source and its launches into an analysis: the whole story, one stage after the other."""

from __future__ import annotations

import importlib
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from sectorwise.beside import begin
from sectorwise.binary.names import read_kernel_name
from sectorwise.device import list_devices, load_device, require_sass
from sectorwise.errors import ArgumentError, LaunchError, UnknownKernelError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.choose import choose_frontend
from sectorwise.frontends.names import split_name
from sectorwise.jobs import compile_kernel_object, compile_launches, is_python
from sectorwise.launch.comments import find_launches
from sectorwise.launch.config import LaunchConfig
from sectorwise.launch.files import read_launch_file
from sectorwise.launch.notation import parse_launch
from sectorwise.launch.sketch import sketch_launch
from sectorwise.naming import suggest
from sectorwise.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sectorwise.analysis.data import Analysis
    from sectorwise.device import DeviceSpec
    from sectorwise.frontends.base import Frontend, Outline
    from sectorwise.frontends.objects import Grid, ObjectLaunch
    from sectorwise.jobs import Job
    from sectorwise.machine.execution import ExecutionOptions
    from sectorwise.remedies.workshop import Run

DEFAULT_DEVICE: Final = "h200"
"""The device whose counters every count was compared with."""

_REST: Final = "sectorwise.examine"
"""What is done with compiled kernels: with NumPy, engines and models it takes as long to load as many a compiler."""

_SKETCHED: Final = 20
"""So many kernels of a binary are shown with what to pass to them, where no launch is given."""

LaunchSource = str | PathLike[str] | LaunchConfig
"""Launch notation, the path of a launch file (a text that ends in `.json` is one), or a launch itself."""


def analyze(  # noqa: PLR0913 - the options of the main job
    source: object,
    launches: LaunchSource | Sequence[LaunchSource] | None = None,
    *,
    grid: Grid | int | None = None,
    block: tuple[int, ...] | int | None = None,
    args: Sequence[object] = (),
    constexprs: Mapping[str, object] | None = None,
    dynamic_shared_bytes: int = 0,
    config: int | None = None,
    device: str | None = None,
    kernel: str | None = None,
    macros: Sequence[str] = (),
    include_folders: Sequence[str | PathLike[str]] = (),
    options: ExecutionOptions | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    remedies: bool = False,
    keep_outputs: bool | Literal["small"] = False,
    follow_caches: bool = False,
    warm: bool = False,
    chain: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """Execute launches of kernels, every lane of them, and count what their memory instructions do.

    `source` is the name of a `.cu`, `.ptx`, `.cubin` or `.py` file (`kernels.py::softmax_kernel` too) or of a library,
    and `launches` are texts in launch notation, paths of launch files, or launches; without them the
    `// sectorwise: launch ...` comments of the source count. Or `source` is a kernel of Triton, Numba or CuPy, which is
    launched once, with `grid` and, but for Triton, `block`; `args` are arrays of NumPy, tensors of PyTorch on the CPU,
    numbers, or specs (`sw.f32[1 << 20]`, `"i32[64]=arange"`), `constexprs` what is passed by name.

    `config` picks one configuration of an autotuned kernel; else each is executed. `device` is an id or alias; the
    default is `DEFAULT_DEVICE`, for a cubin that it does not run the first device that does. `kernel` keeps the
    launches of one kernel; `macros` (`N=4`) and `include_folders` are for the compiler. `select` and `ignore` are codes
    of rules or their beginnings (`SW2`); all rules are checked where `select` is empty. `remedies` looks for changes of
    a `.cu` file that cost less and change no value, by compiling and executing them. `keep_outputs` keeps the final
    buffers in `outputs`, if it is "small" those of launches that are. With `follow_caches` there are `traffic` and
    `time`, too, which takes about a second a launch; the L2 is empty before it, or `warm` from the same launch, or, in
    a `chain`, has what launches before it left there of buffers that have the same name in both. `progress` is called
    with the blocks executed so far and in all.

    Raises:
        SectorwiseError: one of its kinds, with a text for people, where the work cannot go on.
    """
    spec = load_device(DEFAULT_DEVICE if device is None else device)
    target = require_sass(spec)
    if warm and chain:
        raise ArgumentError("warm and chain exclude each other: the L2 has what this launch left, or what others did")
    changing: CompileRequest | None = None
    if isinstance(source, str | PathLike):
        path = Path(source)
        frontend = choose_frontend(path)
        configs = gather_launches(path, launches, kernel or split_name(path)[1])
        names = tuple(dict.fromkeys(each.kernel for each in configs))
        folders = tuple(Path(folder) for folder in include_folders)
        request = CompileRequest(target=target, macros=tuple(macros), include_folders=folders, kernels=names)
        changing = request if remedies and frontend.name == "cuda" else None
        jobs = _compile(partial(compile_launches, frontend, path, request, configs, config), frontend, configs)
    else:
        launch = read_object_launch(source, grid, block, args, constexprs or {}, dynamic_shared_bytes, config)
        jobs = compile_kernel_object(source, launch, target)
        path = jobs[0].source

    from sectorwise.analysis.data import SCHEMA, Analysis, Device, Tool
    from sectorwise.examine import bind_launch, describe_all, execute_all, make_runner
    from sectorwise.machine.execution import ExecutionOptions
    from sectorwise.rules.selection import choose_rules

    rules = choose_rules(select, ignore)
    options = options or ExecutionOptions()
    run: Run | None = None
    time: Run | None = None
    if changing is not None:
        run = make_runner(path, changing, spec, options)
        if follow_caches and not chain:
            time = make_runner(path, changing, spec, options, follow_caches=True, warm=warm)
    if device is None:
        spec = choose_device(jobs[0].cubin.target, spec)
    # Every launch is checked before the first one runs: a typing error must not cost a long run.
    bound = [bind_launch(job.cubin, job.compilation, job.config, spec) for job in jobs]
    models = execute_all(bound, options, progress, follow_caches=follow_caches, warm=warm, chain=chain)
    kernels, texts = describe_all(jobs, models, rules, run, time, keep_outputs=keep_outputs)
    compilation = jobs[0].compilation
    return Analysis(
        schema=SCHEMA,
        tool=Tool(
            name="sectorwise", version=__version__, compiler=compilation.compiler if compilation.target else None
        ),
        device=Device(id=spec.id, name=spec.name, compute_capability=spec.architecture, target=jobs[0].cubin.target),
        source=path.as_posix(),
        kernels=kernels,
        source_texts=texts,
    )


def _compile(compile_all: Callable[[], list[Job]], frontend: Frontend, configs: Sequence[LaunchConfig]) -> list[Job]:
    """Compiles launches, and meanwhile loads what goes on with them.

    Python files run code of others, which may want to be alone, and in the main thread.
    """
    if is_python(frontend):
        return compile_all()
    with begin(compile_all) as begun:
        importlib.import_module(_REST)
        if not begun.is_done():
            from sectorwise.machine.engine import load_engine

            load_engine(max(config.blocks_total * config.threads_per_block for config in configs))
    return begun.result()


def read_object_launch(
    kernel: object,
    grid: Grid | int | None,
    block: tuple[int, ...] | int | None,
    args: Sequence[object],
    named: Mapping[str, object],
    dynamic_shared_bytes: int = 0,
    config: int | None = None,
) -> ObjectLaunch:
    """The launch of a kernel object, its Python values read as arguments.

    Raises:
        ArgumentError: a value cannot be passed, or there is no grid.
        LaunchError: a text in launch notation cannot be read.
    """
    from sectorwise.frontends.objects import ObjectLaunch
    from sectorwise.launch.values import read_value

    name = str(getattr(kernel, "__name__", getattr(kernel, "name", type(kernel).__name__)))
    if grid is None:
        raise ArgumentError(f"{name}: no launch is known: pass grid=..., and args=...")
    x, y, z = (*((block,) if isinstance(block, int) else block or (1,)), 1, 1)[:3]
    return ObjectLaunch(
        grid=(grid,) if isinstance(grid, int) else grid,
        block=None if block is None else (x, y, z),
        dynamic_shared_bytes=dynamic_shared_bytes,
        positional=tuple(read_value(value, f"args[{place}]") for place, value in enumerate(args)),
        named={key: read_value(value, key) for key, value in named.items()},
        config=config,
        origin=name,
    )


def choose_device(target: str, preferred: DeviceSpec) -> DeviceSpec:
    """The preferred device, or else the first that code for `target` was compiled for, if there is one."""
    if target in preferred.compile_targets:
        return preferred
    return next((each for each in list_devices() if target in each.compile_targets), preferred)


def gather_launches(
    path: Path, launches: LaunchSource | Sequence[LaunchSource] | None, kernel: str | None
) -> tuple[LaunchConfig, ...]:
    """All launches that were asked for, or those that the source's comments name; of one kernel where `kernel` is set.

    Raises:
        LaunchError: one cannot be read, or there is none.
        UnknownKernelError: none of them launches `kernel`.
    """
    configs: tuple[LaunchConfig, ...]
    if launches is None:
        text = choose_frontend(path).outline(path).text
        configs = () if text is None else find_launches(text, split_name(path)[0].name, path.parent)
    else:
        given = [launches] if isinstance(launches, str | PathLike | LaunchConfig) else launches
        configs = tuple(config for one in given for config in _read_launch(one))
    if not configs:
        raise LaunchError(_explain_launches(path, kernel))
    kept = tuple(config for config in configs if kernel in {None, config.kernel})
    if not kept:
        raise UnknownKernelError(f"no launch of kernel {kernel!r}; {suggest(kernel or '', _names_of(configs))}")
    return kept


def _explain_launches(path: Path, kernel: str | None) -> str:
    """How to give a launch; for a source with a comment for each of its kernels, to be filled in."""
    example = "kernel<<<grid, block>>>(f32[1024], n=5)"
    frontend = choose_frontend(path)
    outline = frontend.outline(path)
    if frontend.name == "python":
        from sectorwise.frontends.python_file import sketch_python_launches

        calls = sketch_python_launches(outline.text or "")
        none = "" if calls else "no function with @triton.jit or @cuda.jit is seen in it, and "
        if calls and kernel not in {None, *(call.partition("[")[0] for call in calls)}:
            none = f"no kernel {kernel!r} is seen in it, and "
        comments = "".join(f"\n  # sectorwise: launch {call}" for call in calls or ("kernel[grid](f32[1024], n=5)",))
        return f"{path}: {none}no launch is known. Give one with --launch, or as a comment in the source:{comments}"
    if outline.text is None and not outline.kernels:
        return f"{path}: there is no kernel in it"
    none = "" if outline.kernels else "no kernel is seen in it, and "
    ways = f"{path}: {none}no launch is known. Give one with --launch '{example}'"
    if outline.text is None:
        return f"{ways}, or a file of them with --launches FILE.json{_list_sketches(outline, kernel)}"
    from sectorwise.frontends.signatures import sketch_source

    sketches = sketch_source(outline.text, [_name_types(*each) for each in outline.kernels.items()])
    comments = "".join(f"\n  {line}" for line in sketches or [f"// sectorwise: launch {example}"])
    return f"{ways}, a file of them with --launches FILE.json, or as a comment in the source:{comments}"


def _list_sketches(outline: Outline, kernel: str | None) -> str:
    """Launches to fill in for the kernels of a binary, or for `kernel` alone; the types of some are not known."""
    unknown = "<<<grid, block>>>(...)"
    sketches = [
        sketch_launch(*_name_types(name, types)) if types else f"{read_kernel_name(name).readable}{unknown}"
        for name, types in outline.kernels.items()
    ]
    wanted = [each for each in sketches if kernel in {None, each.partition("<<<")[0]}]
    lines = wanted[:_SKETCHED]
    if len(wanted) > _SKETCHED:
        lines.append(f"and {len(wanted) - _SKETCHED:,} kernels more")
    return "\n  ".join([":", *lines]) if lines else ""


def _name_types(name: str, types: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """A kernel's readable name and its parameters' types; what a mangled name tells counts more than what PTX does."""
    found = read_kernel_name(name)
    told = found.parameter_types
    return found.readable, tuple(told) if told is not None and len(told) == len(types) else types


def _read_launch(launch: LaunchSource) -> tuple[LaunchConfig, ...]:
    match launch:
        case LaunchConfig():
            return (launch,)
        case str() if not launch.endswith(".json"):
            return (parse_launch(launch, "--launch"),)
        case _:
            return read_launch_file(Path(launch)).cases


def _names_of(configs: Sequence[LaunchConfig]) -> list[str]:
    return list(dict.fromkeys(config.kernel for config in configs))
