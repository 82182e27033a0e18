"""Turns jobs, launches with compiled kernels, into what reports say of them: executed, modelled, judged and described.

It brings NumPy, the engines and the models with it, so `analyze` loads it while a compiler works.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from sectorwise.analysis.allowances import drop_allowed
from sectorwise.analysis.describe import describe_kernel
from sectorwise.analysis.texts import name_file, read_texts
from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.machine.engine import execute
from sectorwise.model.kernel_model import model_kernel
from sectorwise.naming import find_kernel, shorten_name
from sectorwise.rules.table import check_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.binary.ir import Cubin
    from sectorwise.binding import BoundLaunch
    from sectorwise.device import DeviceSpec
    from sectorwise.frontends.base import Compilation, CompileRequest
    from sectorwise.jobs import Job
    from sectorwise.launch.config import LaunchConfig
    from sectorwise.machine.execution import ExecutionOptions
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Run
    from sectorwise.rules.rule import Rule


def describe_all(
    jobs: Sequence[Job],
    models: Iterator[KernelModel],
    rules: Sequence[Rule],
    run: Run | None,
    time: Run | None,
    *,
    keep_outputs: bool | Literal["small"],
) -> tuple[tuple[KernelAnalysis, ...], dict[str, str]]:
    """The entry of each launch, with the findings that its source does not allow, and the texts that they name."""
    kernels: list[KernelAnalysis] = []
    texts: dict[str, str] = {}
    for job, model in zip(jobs, models, strict=True):
        findings = check_model(model, rules)
        if run is not None and job.compilation.source_text is not None:
            from sectorwise.remedies.propose import propose
            from sectorwise.remedies.workshop import Workshop

            findings = propose(Workshop(job.compilation.source_text, model.bound.launch, run, time), model, findings)
        name = cache(partial(name_file, compilation=job.compilation, source=job.source))
        described = describe_kernel(model, findings, name, keep_outputs=keep_outputs)
        kernels.append(replace(described, cubin=job.compilation.cubin))
        texts |= read_texts(kernels[-1:], job.compilation, job.source)
    return tuple(drop_allowed(each, texts) for each in kernels), texts


def bind_launch(cubin: Cubin, compilation: Compilation, config: LaunchConfig, device: DeviceSpec) -> BoundLaunch:
    """The launch with its kernel, its arguments placed in memory and checked against what the kernel takes."""
    kernel = find_kernel(cubin, compilation, config)
    types = kernel.parameter_types or compilation.parameter_types.get(shorten_name(kernel.name))
    return bind(kernel, config, device, types)


def make_runner(
    path: Path,
    request: CompileRequest,
    device: DeviceSpec,
    options: ExecutionOptions,
    *,
    follow_caches: bool = False,
    warm: bool = False,
) -> Run:
    """A function that gives the model of a launch of a changed source text."""
    from sectorwise.frontends.cuda import CUDA

    def run(text: str, config: LaunchConfig) -> KernelModel:
        compilation = CUDA.compile_text(path, text, replace(request, kernels=(config.kernel,)))
        cubin = read_cubin(compilation.cubin, path.as_posix())
        bound = bind_launch(cubin, compilation, config, device)
        return model_kernel(bound, execute(bound, options), follow_caches=follow_caches, warm=warm)

    return run


def execute_all(
    launches: Sequence[BoundLaunch],
    options: ExecutionOptions,
    progress: Callable[[int, int], None] | None,
    *,
    follow_caches: bool = False,
    warm: bool = False,
    chain: bool = False,
) -> Iterator[KernelModel]:
    """The model of each launch, executed one at a time, as each holds its buffers; `progress` sees all their blocks."""
    before, total = 0, sum(bound.launch.blocks_total for bound in launches)
    left = None
    if chain:
        from sectorwise.model.caches.chain import begin_chain

        left = begin_chain()
    for bound in launches:
        execution = execute(bound, options, _shift(progress, before, total))
        model = model_kernel(bound, execution, follow_caches=follow_caches, warm=warm, chain=left)
        if left is not None:
            left = left.skip(bound) if model.traffic is None else model.traffic.left
        yield model
        before += bound.launch.blocks_total


def _shift(progress: Callable[[int, int], None] | None, before: int, total: int) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, _of_this_launch: progress(before + done, total)
