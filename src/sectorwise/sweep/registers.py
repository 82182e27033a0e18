"""Turns a source and a list of register limits into one compilation each, with occupancy, spills and counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.analyze import bind_launch, execute_all, gather_launches, shorten_name
from sectorwise.binary.cubin import read_cubin
from sectorwise.device import load_device, require_sass
from sectorwise.errors import ArgumentError, UnknownKernelError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.choose import choose_frontend
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.model.occupancy import occupancy
from sectorwise.model.trials import describe_trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from sectorwise.analyze import LaunchSource
    from sectorwise.binary.ir import Kernel
    from sectorwise.model.trials import RegisterTrial

FEWEST_REGISTERS: Final = 16
"""Below it the compiler takes no limit."""


def try_register_limits(
    source: str | PathLike[str],
    limits: Sequence[int | None],
    launch: LaunchSource,
    *,
    device: str = "h200",
    macros: Sequence[str] = (),
    include_folders: Sequence[str | PathLike[str]] = (),
) -> tuple[RegisterTrial, ...]:
    """Compile the source once for each limit, execute the launch, and say what each limit buys and costs.

    Raises:
        SectorwiseError: one of its kinds, as `analyze` does; a block that cannot be resident is an `ArgumentError`.
    """
    path, target = Path(source), require_sass(load_device(device))
    (config,) = gather_launches(path, [launch], None)
    trials = []
    for limit in limits:
        request = _make_request(target, limit, macros, include_folders, (config.kernel,))
        compilation = choose_frontend(path).compile(path, request)
        bound = bind_launch(read_cubin(compilation.cubin, path.as_posix()), compilation, config, load_device(device))
        (model,) = execute_all([bound], ExecutionOptions(), None, follow_caches=False)
        trials.append(describe_trial(limit, bound.kernel, model.occupancy, model.totals))
    return tuple(trials)


def try_register_limits_of_block(
    source: str | PathLike[str],
    limits: Sequence[int | None],
    threads_per_block: int,
    *,
    kernel: str | None = None,
    dynamic_shared_bytes: int = 0,
    device: str = "h200",
    macros: Sequence[str] = (),
    include_folders: Sequence[str | PathLike[str]] = (),
) -> tuple[RegisterTrial, ...]:
    """The same without a launch: nothing is executed, and `totals` are None."""
    path, spec = Path(source), load_device(device)
    trials = []
    for limit in limits:
        names = () if kernel is None else (kernel,)
        request = _make_request(require_sass(spec), limit, macros, include_folders, names)
        compilation = choose_frontend(path).compile(path, request)
        cubin = read_cubin(compilation.cubin, path.as_posix())
        chosen = _choose_kernel(cubin.kernels, compilation.kernel_names.get(kernel or "", kernel), path)
        held = occupancy(
            threads_per_block,
            chosen.resources.registers_per_thread,
            chosen.resources.static_shared_bytes + dynamic_shared_bytes,
            device=spec,
            barriers=chosen.resources.barriers,
        )
        trials.append(describe_trial(limit, chosen, held, None))
    return tuple(trials)


def _make_request(
    target: str,
    limit: int | None,
    macros: Sequence[str],
    include_folders: Sequence[str | PathLike[str]],
    kernels: tuple[str, ...],
) -> CompileRequest:
    if limit is not None and limit < FEWEST_REGISTERS:
        raise ArgumentError(f"a limit of {limit} registers a thread is below {FEWEST_REGISTERS}, the compiler's least")
    return CompileRequest(
        target=target,
        macros=tuple(macros),
        include_folders=tuple(Path(folder) for folder in include_folders),
        kernels=kernels,
        options=() if limit is None else (f"-maxrregcount={limit}",),
    )


def _choose_kernel(kernels: Sequence[Kernel], wanted: str | None, path: Path) -> Kernel:
    found = [each for each in kernels if wanted in {None, each.name, shorten_name(each.readable_name or each.name)}]
    if len(found) == 1:
        return found[0]
    known = ", ".join(shorten_name(each.readable_name or each.name) for each in kernels)
    if not found:
        raise UnknownKernelError(f"{path}: no kernel {wanted!r}; there is {known or 'none'}")
    raise UnknownKernelError(f"{path}: name one of its kernels with --kernel: {known}")
