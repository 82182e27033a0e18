"""Turns a source and limits on registers into one compilation for each, with occupancy, spills and counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.analyze import gather_launches
from sectorwise.binary.cubin import read_cubin
from sectorwise.device import load_device, require_capability, require_sass
from sectorwise.errors import ArgumentError, UnknownKernelError
from sectorwise.examine import bind_launch, execute_all
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.model.occupancy import occupancy
from sectorwise.model.trials import describe_trial
from sectorwise.naming import shorten_name
from sectorwise.source import read_source
from sectorwise.sweep.bounds import write_launch_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from sectorwise.analyze import LaunchSource
    from sectorwise.binary.ir import Kernel
    from sectorwise.device import DeviceSpec
    from sectorwise.frontends.base import Compilation
    from sectorwise.model.trials import RegisterTrial

FEWEST_REGISTERS: Final = 16
"""Below it the compiler takes no limit."""


@dataclass(frozen=True, slots=True)
class _Build:
    """A source to be compiled again and again for one device."""

    path: Path
    device: DeviceSpec
    macros: Sequence[str]
    include_folders: Sequence[str | PathLike[str]]

    def compile(
        self, kernel: str | None, limit: int | None, min_blocks: int | None, threads_per_block: int
    ) -> Compilation:
        """Under a limit of registers, or under launch bounds."""
        text = read_source(self.path).text
        if min_blocks is not None:
            text = _bound(self.path, text, kernel, threads_per_block, min_blocks)
        return CUDA.compile_text(self.path, text, self._make_request(kernel, limit))

    def _make_request(self, kernel: str | None, limit: int | None) -> CompileRequest:
        if limit is not None and limit < FEWEST_REGISTERS:
            raise ArgumentError(
                f"a limit of {limit} registers a thread is below {FEWEST_REGISTERS}, the compiler's least"
            )
        most = require_capability(self.device).max_regs_per_thread
        if limit is not None and limit > most:
            raise ArgumentError(f"a limit of {limit} registers a thread is above {most}, a thread's most")
        return CompileRequest(
            target=require_sass(self.device),
            macros=tuple(self.macros),
            include_folders=tuple(Path(folder) for folder in self.include_folders),
            kernels=() if kernel is None else (kernel,),
            options=() if limit is None else (f"-maxrregcount={limit}",),
        )


def try_register_limits(
    source: str | PathLike[str],
    limits: Sequence[int | None],
    launch: LaunchSource,
    *,
    min_blocks: Sequence[int] = (),
    device: str = "h200",
    macros: Sequence[str] = (),
    include_folders: Sequence[str | PathLike[str]] = (),
) -> tuple[RegisterTrial, ...]:
    """Compile a `.cu` file once for each limit, execute the launch, and say what each buys and costs.

    `limits` are registers a thread, None for no limit. Each of `min_blocks` compiles it with
    `__launch_bounds__(threads of the launch's block, min_blocks)` in place of what the kernel has.

    Raises:
        SectorwiseError: one of its kinds, as `analyze` does; a block that cannot be resident is an `ArgumentError`.
    """
    build = _make_build(source, device, macros, include_folders)
    (config,) = gather_launches(build.path, [launch], None)
    trials = []
    for limit, blocks in _list_variants(limits, min_blocks):
        compilation = build.compile(config.kernel, limit, blocks, config.threads_per_block)
        bound = bind_launch(read_cubin(compilation.cubin, build.path.as_posix()), compilation, config, build.device)
        (model,) = execute_all([bound], ExecutionOptions(), None, follow_caches=False)
        trials.append(describe_trial(bound.kernel, model.occupancy, model.totals, limit=limit, min_blocks=blocks))
    return tuple(trials)


def try_register_limits_of_block(  # noqa: PLR0913 - as above
    source: str | PathLike[str],
    limits: Sequence[int | None],
    threads_per_block: int,
    *,
    min_blocks: Sequence[int] = (),
    kernel: str | None = None,
    dynamic_shared_bytes: int = 0,
    device: str = "h200",
    macros: Sequence[str] = (),
    include_folders: Sequence[str | PathLike[str]] = (),
) -> tuple[RegisterTrial, ...]:
    """The same without a launch: nothing is executed, and `totals` are None."""
    build = _make_build(source, device, macros, include_folders)
    trials = []
    for limit, blocks in _list_variants(limits, min_blocks):
        wanted = _name_kernel(build, kernel) if blocks is not None else kernel
        compilation = build.compile(wanted, limit, blocks, threads_per_block)
        cubin = read_cubin(compilation.cubin, build.path.as_posix())
        chosen = _choose_kernel(cubin.kernels, compilation.kernel_names.get(kernel or "", kernel), build.path)
        held = occupancy(
            threads_per_block,
            chosen.resources.registers_per_thread,
            chosen.resources.static_shared_bytes + dynamic_shared_bytes,
            device=build.device,
            barriers=chosen.resources.barriers,
            cluster_blocks=1 if chosen.resources.cluster is None else prod(chosen.resources.cluster),
        )
        trials.append(describe_trial(chosen, held, None, limit=limit, min_blocks=blocks))
    return tuple(trials)


def _make_build(
    source: str | PathLike[str], device: str, macros: Sequence[str], include_folders: Sequence[str | PathLike[str]]
) -> _Build:
    path = Path(source)
    if not CUDA.accepts(path):
        raise ArgumentError(f"{path}: register limits are for the compiler: give a CUDA source, such as kernel.cu")
    return _Build(path, load_device(device), macros, include_folders)


def _list_variants(
    limits: Iterable[int | None], min_blocks: Iterable[int]
) -> tuple[tuple[int | None, int | None], ...]:
    """Pairs of a register limit and the blocks of launch bounds, of which one is None."""
    return (*((limit, None) for limit in limits), *((None, blocks) for blocks in min_blocks))


def _bound(path: Path, text: str, kernel: str | None, threads_per_block: int, min_blocks: int) -> str:
    if min_blocks < 1:
        raise ArgumentError(f"launch bounds of {min_blocks} blocks an SM are below 1")
    changed = write_launch_bounds(text, shorten_name(kernel or ""), threads_per_block, min_blocks)
    if changed is None:
        raise ArgumentError(f"{path}: no `__global__` declaration of {kernel!r} is found to write launch bounds to")
    return changed


def _name_kernel(build: _Build, kernel: str | None) -> str:
    """The kernel's name as it is written, where the caller left out that of the only one."""
    if kernel is not None:
        return kernel
    cubin = read_cubin(build.compile(None, None, None, 0).cubin, build.path.as_posix())
    chosen = _choose_kernel(cubin.kernels, None, build.path)
    return shorten_name(chosen.readable_name or chosen.name)


def _choose_kernel(kernels: Sequence[Kernel], wanted: str | None, path: Path) -> Kernel:
    found = [each for each in kernels if wanted in {None, each.name, shorten_name(each.readable_name or each.name)}]
    if len(found) == 1:
        return found[0]
    known = ", ".join(shorten_name(each.readable_name or each.name) for each in kernels)
    if not found:
        raise UnknownKernelError(f"{path}: no kernel {wanted!r}; there is {known or 'none'}")
    raise UnknownKernelError(f"{path}: name one of its kernels with --kernel: {known}")
