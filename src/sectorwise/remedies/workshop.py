"""Turns a changed source or launch into a trial: compiled, executed, and compared with the original bit for bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.errors import SectorwiseError
from sectorwise.findings import Remedy
from sectorwise.launch.config import LaunchConfig
from sectorwise.launch.formatting import format_launch
from sectorwise.machine.execution import Site
from sectorwise.model.kernel_model import KernelModel

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.ir import Location
    from sectorwise.findings import Finding

Run = Callable[[str, LaunchConfig], KernelModel]
"""Compiles a source text, executes a launch of it, and gives its model; raises `SectorwiseError` where it cannot."""

Weigh = Callable[[Site], int]
"""What a memory instruction wastes."""

_WHOLE_LAUNCH: Final = 400_000
"""Launches of so many warp instructions are executed whole for every candidate, larger ones for the best of few."""

_TRIAL_BLOCKS: Final = 2


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a remedy may change, `text` and `launch`, and how to run what comes of it.

    `time` runs it with caches followed, so that its model has a time; None where times are not asked for.
    """

    text: str
    launch: LaunchConfig
    run: Run
    time: Run | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A changed source, and launch, in words (`pad tile by 1 element a row`) and as the code to write."""

    title: str
    code: str
    text: str
    launch: LaunchConfig


@dataclass(frozen=True, slots=True)
class Trial:
    """A change whose launch gave the same outputs."""

    change: Change
    model: KernelModel


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that is no remedy, and why."""

    change: Change
    because: str


def prove(
    workshop: Workshop,
    change: Change,
    original: KernelModel,
    is_cheaper: Callable[[KernelModel], bool] | None = None,
) -> Trial | Refusal:
    """Run a change, and compare its outputs with those of `original`: all buffers, every bit.

    Where `is_cheaper` says that counts gain nothing, outputs are not asked for: of large launches they take longest.
    """
    try:
        model = workshop.run(change.text, change.launch)
    except SectorwiseError as error:
        return Refusal(change, str(error).splitlines()[0])
    for fault in model.execution.faults:
        instruction = model.bound.kernel.instructions[fault.instruction]
        line = f" in line {instruction.location.line}" if instruction.location is not None else ""
        return Refusal(change, f"an access of {fault.width_bytes} B{line} would be wrong: {fault.message}")
    for hang in model.execution.hangs:
        return Refusal(change, hang.message)
    if model.execution.limitations:
        return Refusal(change, f"not all is known of it: {model.execution.limitations[0].because}")
    if is_cheaper is not None and not is_cheaper(model):
        return Refusal(change, "it costs no less")
    different = [name for name, same in _compare(original, model) if not same]
    if different:
        return Refusal(change, f"it changes the values of {' and '.join(different)}")
    return Trial(change, model)


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change is worth, in counts of `quantity` over the whole launch."""

    quantity: str
    before: int
    after: int


def find_helped(
    findings: Sequence[Finding], codes: Collection[str], original: KernelModel, changed: KernelModel, weigh: Weigh
) -> list[int]:
    """The places of the findings, of these codes, whose lines waste less of what `weigh` gives than before.

    For changes that leave every line where it is. A finding without a line is not known to be helped.
    """
    was, became = _add_up_lines(original, weigh), _add_up_lines(changed, weigh)
    helped = []
    for place, finding in enumerate(findings):
        places = {original.bound.kernel.instructions[index].location for index in finding.instructions} - {None}
        if finding.code in codes and sum(became[each] for each in places) < sum(was[each] for each in places):
            helped.append(place)
    return helped


def find_coded(findings: Sequence[Finding], codes: Collection[str]) -> list[int]:
    """The places of all findings of these codes."""
    return [place for place, finding in enumerate(findings) if finding.code in codes]


def waste_sectors(site: Site) -> int:
    """Sectors beyond those that the bytes of a memory instruction need."""
    return site.sectors - site.sectors_ideal


def waste_wavefronts(site: Site) -> int:
    """Shared-memory passes beyond those that the bytes of a memory instruction need."""
    return site.wavefronts - site.wavefronts_ideal


def _add_up_lines(model: KernelModel, weigh: Weigh) -> Counter[Location | None]:
    lines: Counter[Location | None] = Counter()
    for site in model.execution.sites:
        lines[model.bound.kernel.instructions[site.instruction].location] += weigh(site)
    return lines


def make_remedy(
    workshop: Workshop, original: KernelModel, change: Change, gain: Gain, *, refused: tuple[str, ...] = ()
) -> Remedy:
    """The remedy that a proven change is, with the times of both launches where they are asked for."""
    changed = None
    if workshop.time is not None and original.time is not None:
        changed = workshop.time(change.text, change.launch).time
    return Remedy(
        title=change.title,
        change=change.code,
        quantity=gain.quantity,
        before=gain.before,
        after=gain.after,
        source_text=change.text,
        launch=format_launch(change.launch),
        refused=refused,
        before_ns=None if changed is None or original.time is None else original.time.estimate_ns,
        after_ns=None if changed is None else changed.estimate_ns,
    )


def shrink(workshop: Workshop, original: KernelModel) -> Workshop | None:
    """The same kernel with few blocks, to rank candidates by; None where the whole launch is small enough."""
    if original.totals.instructions <= _WHOLE_LAUNCH or workshop.launch.blocks_total <= _TRIAL_BLOCKS:
        return None
    return replace(workshop, launch=replace(workshop.launch, grid=(_TRIAL_BLOCKS, 1, 1)))


def _compare(before: KernelModel, after: KernelModel) -> list[tuple[str, bool]]:
    names = [allocation.argument for allocation in before.bound.allocations]
    if names != [allocation.argument for allocation in after.bound.allocations]:
        return [("its buffers", False)]
    # One buffer after the other: they may be gigabytes.
    return [(name, np.array_equal(_read(before, number), _read(after, number))) for number, name in enumerate(names)]


def _read(model: KernelModel, number: int) -> npt.NDArray[np.uint8]:
    return model.execution.read_buffer(number)
