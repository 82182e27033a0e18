"""Turns a kernel's source and its launches into a verification: analysed here, counted by a report or by this GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sectorwise.analysis.outputs import compare_buffer, doubt_outputs
from sectorwise.analysis.verification import VERIFICATION_SCHEMA, Verification
from sectorwise.errors import CountersForbiddenError, DeviceRunError, ProfilerError, ReportError
from sectorwise.launch.addresses import find_buffers
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.verify.compare import compare_launch
from sectorwise.verify.devices import choose_device, warn_of_architecture
from sectorwise.verify.driver import describe_gpu, open_driver
from sectorwise.verify.pairing import check_build, pair_launches
from sectorwise.verify.plan import RESULT_FILE, name_output, write_plan
from sectorwise.verify.profiler import find_profiler, profile
from sectorwise.verify.reader import read_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.analysis.data import Analysis, KernelAnalysis
    from sectorwise.analysis.profile import Profile
    from sectorwise.analysis.verification import BufferComparison
    from sectorwise.verify.devices import Kind
    from sectorwise.verify.driver import Gpu
    from sectorwise.verify.profiler import Profiler

_REPORT_FILE: Final = "launches.ncu-rep"
_TIMED_LAUNCHES: Final = 5
_TIMEOUT_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a GPU made of the launches: its profile (None: no counters were read), outputs and times, and notes."""

    profile: Profile | None
    times_ns: tuple[float, ...]
    outputs: tuple[tuple[BufferComparison, ...] | None, ...]
    notes: tuple[str, ...]


def verify_report(analyse: Callable[[str], Analysis], report: Path, device: str | None = None) -> Verification:
    """Compare with a report that was made elsewhere; no GPU is needed.

    `analyse` analyses the launches for the device of the given id: that of the report, unless `device` names one.

    Raises:
        ReportError: the report cannot be read, or is of another kernel, build or launch.
        SectorwiseError: as `analyse` does.
    """
    found = read_apart(report)
    gpu, capability = found.launches[0].device, found.launches[0].compute_capability
    identifier, notes = choose_device(gpu, capability, device)
    analysis = analyse(identifier)
    notes += warn_of_architecture(capability, list_kinds(analysis))
    paired = pair_launches(analysis.kernels, found)
    if not any(launch.has_source_view for launch in paired):
        notes += (
            "the report has no counters of single instructions: profile with `--section SourceCounters` or --set full",
        )
    if not all(launch.code for launch in paired):
        notes += ("the report has no SASS, so that it may be of another build",)
    kernels = tuple(compare_launch(mine, theirs) for mine, theirs in zip(analysis.kernels, paired, strict=True))
    return Verification(
        schema=VERIFICATION_SCHEMA,
        tool=analysis.tool,
        device=analysis.device,
        source=analysis.source,
        counted_on=gpu,
        counted_by=found.source,
        kernels=kernels,
        notes=notes,
    )


def verify_here(
    analyse: Callable[[str], Analysis],
    *,
    device: str | None = None,
    ncu: Path | None = None,
    keep_report: Path | None = None,
    outputs: bool = False,
) -> Verification:
    """Run the launches on this machine's GPU under Nsight Compute and compare.

    Where counters may not be read, buffers and times are compared alone, and a note says so. `keep_report` is where
    the profiler's report stays; `outputs` compares the final buffers, too. `analyse` has to keep them.

    Raises:
        DeviceRunError: there is no GPU, a launch failed on it, or would hang.
        ProfilerError: Nsight Compute is missing, too old, or failed.
        SectorwiseError: as `analyse` does.
    """
    gpu = describe_gpu(open_driver())
    profiler = find_profiler(ncu)
    identifier, notes = choose_device(gpu.name, gpu.compute_capability, device)
    analysis = analyse(identifier)
    notes += warn_of_architecture(gpu.compute_capability, list_kinds(analysis))
    _refuse_hangs(analysis)
    counted = _count(analysis, profiler, keep_report, outputs=outputs)
    kernels = []
    for number, kernel in enumerate(analysis.kernels):
        launch = None if counted.profile is None else counted.profile.launches[number]
        compared = compare_launch(kernel, launch, counted.outputs[number])
        doubt = doubt_outputs(kernel) if outputs or counted.profile is None else None
        time_ns = counted.times_ns[number] if compared.time_ns is None else compared.time_ns
        kernels.append(replace(compared, time_ns=time_ns, notes=(*compared.notes, *((doubt,) if doubt else ()))))
    return Verification(
        schema=VERIFICATION_SCHEMA,
        tool=analysis.tool,
        device=analysis.device,
        source=analysis.source,
        counted_on=gpu.name,
        counted_by=_name_counter(profiler, gpu, counted),
        kernels=tuple(kernels),
        notes=notes + counted.notes,
    )


def list_kinds(analysis: Analysis) -> set[Kind]:
    """The kinds of memory instructions in the launches."""
    return {(site.space, site.operation, site.width_bytes) for kernel in analysis.kernels for site in kernel.sites}


def _name_counter(profiler: Profiler, gpu: Gpu, counted: _Counted) -> str:
    return f"{profiler.name}, {gpu.driver}" if counted.profile is not None else f"the driver's timer, {gpu.driver}"


def _count(analysis: Analysis, profiler: Profiler, keep_report: Path | None, *, outputs: bool) -> _Counted:
    """Launch everything under the profiler, or without it where it may not count."""
    launches = [(kernel.cubin, kernel.bound) for kernel in analysis.kernels if kernel.bound is not None]
    with tempfile.TemporaryDirectory(prefix="sectorwise-verify-") as name:
        folder = Path(name)
        report = folder / _REPORT_FILE if keep_report is None else keep_report.resolve()
        command = [sys.executable, "-m", "sectorwise.verify.launcher", str(folder)]
        notes: tuple[str, ...] = ()
        found: Profile | None = None
        write_plan(folder, launches, repeats=1, keep_outputs=outputs)
        try:
            profile(profiler, command, report)
            found = read_apart(report, profiler.module_folders)
            _check_profile(analysis, found)
        except CountersForbiddenError as error:
            notes = (f"no counter was read; outputs and times are compared alone: {error}",)
            outputs = True
            write_plan(folder, launches, repeats=_TIMED_LAUNCHES, keep_outputs=outputs)
            _launch_alone(analysis, command)
        except ProfilerError:
            # Where the launches themselves fail, the driver says more of it than the profiler does.
            _launch_alone(analysis, command)
            raise
        result = _read_result(folder)
        times_ns = tuple(float(np.median(times)) for times in result["times_ns"])
        compared = tuple(
            _compare_outputs(kernel, folder, number) if outputs and doubt_outputs(kernel) is None else None
            for number, kernel in enumerate(analysis.kernels)
        )
        return _Counted(found, times_ns, compared, notes)


def _check_profile(analysis: Analysis, found: Profile) -> None:
    """Raise where the report is not of our own launches, one after the other."""
    if len(found.launches) != len(analysis.kernels):
        raise ReportError(f"{len(analysis.kernels)} launches were made, {len(found.launches)} were profiled")
    for kernel, launch in zip(analysis.kernels, found.launches, strict=True):
        check_build(kernel, launch, "the profiler's report")


def _launch(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own module, no shell
        command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
    )
    if done.returncode:
        said = done.stderr.strip().removeprefix("error: ")
        raise DeviceRunError(said or f"the launches ended with status {done.returncode}")


def _launch_alone(analysis: Analysis, command: list[str]) -> None:
    """Make the launches without the profiler.

    Raises:
        DeviceRunError: a launch failed; the text has the driver's word, and the first fault that was seen here.
    """
    try:
        _launch(command)
    except DeviceRunError as error:
        faults = [fault.message for kernel in analysis.kernels for fault in kernel.faults]
        seen = f"; executed here: {faults[0]}" if faults else ""
        raise DeviceRunError(f"{error}{seen}") from None


def _read_result(folder: Path) -> dict[str, Any]:
    path = folder / RESULT_FILE
    if not path.is_file():
        raise DeviceRunError("the launches left no result: they did not come to their end")
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def _refuse_hangs(analysis: Analysis) -> None:
    """Raise before the GPU is given what it would not give back."""
    for kernel in analysis.kernels:
        for hang in kernel.hangs:
            if hang.is_certain:
                place = hang.offset if hang.location is None else f"{hang.location.file}:{hang.location.line}"
                raise DeviceRunError(f"{kernel.name} is not launched on the GPU: {place}: {hang.message}")


def _compare_outputs(kernel: KernelAnalysis, folder: Path, number: int) -> tuple[BufferComparison, ...]:
    """The buffers of the launch, then its module variables, as far as the GPU kept them."""
    if kernel.outputs is None or kernel.bound is None:
        return ()
    compared = []
    arguments = len(find_buffers(kernel.bound.launch))
    for place, (output, allocation) in enumerate(zip(kernel.outputs, kernel.bound.allocations, strict=True)):
        path = folder / name_output(number, place)
        if not path.is_file():
            continue
        dtype = allocation.buffer.dtype
        values = np.frombuffer(path.read_bytes(), ELEMENT_TYPES[dtype].storage)
        found = compare_buffer(output.argument, dtype, output.values, values)
        compared.append(replace(found, is_variable=place >= arguments))
    return tuple(compared)
