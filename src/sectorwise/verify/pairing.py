"""Turns predicted launches and the launches of a profiler's report into pairs, each of the same kernel and build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.errors import ReportError
from sectorwise.verify.codes import find_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.analysis.profile import Profile, ProfiledLaunch
    from sectorwise.binary.ir import Kernel
    from sectorwise.verify.codes import CodeDifference

_MOST_NAMED = 6


def pair_launches(predicted: Sequence[KernelAnalysis], profile: Profile) -> tuple[ProfiledLaunch, ...]:
    """For each predicted launch the one of the report that is of its kernel, build and shape.

    Several launches of one build and shape are taken in their order; where the report has more of them than were
    predicted, the first ones count. A report may hold several builds of one kernel, as Triton makes them for the
    arguments of each launch.

    Raises:
        ReportError: the report has no such kernel, no launch of that shape, or the code is of another build; the text
            names what it has, or the first instruction that differs.
    """
    taken: set[int] = set()
    paired = []
    for kernel in predicted:
        symbol = _symbol_of(kernel)
        named = [launch for launch in profile.launches if launch.symbol == symbol]
        if not named:
            raise ReportError(_explain_kernel(kernel, profile))
        alike = [launch for launch in named if _has_shape(launch, kernel)]
        if not alike:
            raise ReportError(_explain_shape(kernel, named, profile))
        built = [launch for launch in alike if _find_other_build(kernel, launch) is None]
        if not built:
            check_build(kernel, alike[0], profile.source)
        launch = next((each for each in built if id(each) not in taken), built[-1])
        taken.add(id(launch))
        paired.append(launch)
    return tuple(paired)


def check_build(kernel: KernelAnalysis, launch: ProfiledLaunch, source: str) -> None:
    """Raise ReportError where the report's code of the kernel is not the one that was executed here."""
    found = _find_other_build(kernel, launch)
    if found is None:
        return
    here = found.ours or "the end of the code"
    there = found.theirs or "the end of the code"
    raise ReportError(
        f"{source} is of another build of {kernel.name}: instruction {found.index} at 0x{found.offset_bytes:04x} is\n"
        f"  {there}\nin the report, and\n  {here}\nhere. Verify the report itself, with the same launches: it "
        "carries the code that was profiled. Or compile with the options and the compiler of the profiled program"
    )


def _find_other_build(kernel: KernelAnalysis, launch: ProfiledLaunch) -> CodeDifference | None:
    """The first instruction that differs; None where the code is the same, or one of the two is not known."""
    if not launch.code or kernel.bound is None:
        return None
    ours = list_own_code(kernel.bound.kernel)
    is_all = len(ours) == len(kernel.bound.kernel.instructions)
    return find_difference(ours, launch.code if is_all else launch.code[: len(ours)])


def list_own_code(kernel: Kernel) -> tuple[str, ...]:
    """Text of the kernel's instructions up to the first function that it calls: those may lie elsewhere on the GPU."""
    end = min((offset for offset in kernel.functions.values() if offset), default=None)
    return tuple(each.text for each in kernel.instructions if end is None or each.offset < end)


def write_shape(grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int | None) -> str:
    """`(16, 16, 1) blocks of (32, 8, 1) threads`, with the dynamic shared memory where there is any."""
    shared = f", {shared_bytes:,} B of dynamic shared memory" if shared_bytes else ""
    return f"{grid} blocks of {block} threads{shared}"


def _symbol_of(kernel: KernelAnalysis) -> str:
    return kernel.name if kernel.bound is None else kernel.bound.kernel.name


def _has_shape(launch: ProfiledLaunch, kernel: KernelAnalysis) -> bool:
    mine = kernel.launch
    shared = launch.dynamic_shared_bytes
    return (launch.grid, launch.block) == (mine.grid, mine.block) and shared in {None, mine.dynamic_shared_bytes}


def _explain_kernel(kernel: KernelAnalysis, profile: Profile) -> str:
    names = list(dict.fromkeys(launch.name for launch in profile.launches))
    shown = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    return f"{profile.source} has no launch of {kernel.name}; it has {shown or 'no launches at all'}"


def _explain_shape(kernel: KernelAnalysis, named: Sequence[ProfiledLaunch], profile: Profile) -> str:
    shapes = dict.fromkeys(write_shape(each.grid, each.block, each.dynamic_shared_bytes) for each in named)
    mine = write_shape(kernel.launch.grid, kernel.launch.block, kernel.launch.dynamic_shared_bytes)
    return (
        f"{profile.source} has {kernel.name} with {'; '.join(list(shapes)[:_MOST_NAMED])}; "
        f"the launch to verify has {mine}"
    )
