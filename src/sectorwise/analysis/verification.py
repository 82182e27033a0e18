"""Turns predicted and counted numbers, laid side by side, into plain frozen data: the result of `sectorwise verify`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sectorwise.analysis.data import Device, Launch, Tool
    from sectorwise.binary.ir import Location
    from sectorwise.counting.request import Operation, Space
    from sectorwise.machine.execution import Certainty

VERIFICATION_SCHEMA: Final = "sectorwise.verification/1"
"""Name and version of the JSON document; the number grows when a reader of the old one would misread the new one."""


class View(StrEnum):
    """Who counted: the profiler's software model of executed addresses, or the counters of the L1's silicon."""

    SOURCE = "source"
    PIPE = "pipe"


class Verdict(StrEnum):
    """What a predicted number beside a counted one says.

    `different` is the one that fails a verification: the prediction is exact, the counter is without noise, and they
    differ. `inexact`: they differ, but the prediction does not claim to be exact. `noise`: they differ, but the counter
    is one that replays and reordering disturb. `not_predicted` and `not_counted`: one of the two is not there.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    INEXACT = "inexact"
    NOISE = "noise"
    NOT_PREDICTED = "not_predicted"
    NOT_COUNTED = "not_counted"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number: predicted beside counted. `metric` is the profiler's name; `difference` is counted - predicted."""

    name: str
    metric: str
    view: View
    predicted: int | None
    counted: int | None
    difference: int | None
    certainty: Certainty | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SiteComparison:
    """A memory instruction that was predicted, counted, or both."""

    offset: str
    sass: str
    location: Location | None
    space: Space
    operation: Operation
    width_bytes: int
    quantities: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class BufferComparison:
    """A buffer after the launch: how it was executed here beside what the GPU left in it.

    `differing` elements are beyond what is allowed: for integers any difference of a bit, for floats more than
    `tolerance` of the greater of the two and of the buffer's root mean square. `rounded` differ by less than that.
    `first` is the index of the first differing element, with its two values as text. `is_variable` tells a variable of
    the module from what an argument names.
    """

    argument: str
    dtype: str
    elements: int
    differing: int
    rounded: int
    tolerance: float
    first: int | None
    executed: str | None
    on_device: str | None
    is_variable: bool = False


@dataclass(frozen=True, slots=True)
class KernelComparison:
    """One launch: predicted beside counted, and where they were asked for the buffers.

    `sites` and `totals` are empty where nothing could be counted. `time_ns` is what the launch took, `estimate_ns`
    what was estimated for it and `least_ns` the lower bound; None where that is not known.
    """

    name: str
    case: str | None
    launch: Launch
    sites: tuple[SiteComparison, ...]
    totals: tuple[Quantity, ...]
    outputs: tuple[BufferComparison, ...] | None
    time_ns: float | None
    estimate_ns: float | None
    least_ns: float | None
    notes: tuple[str, ...] = ()

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All numbers, those of the instructions first."""
        return tuple(quantity for site in self.sites for quantity in site.quantities) + self.totals

    @property
    def passes(self) -> bool:
        """Whether nothing that is exact differs."""
        return all(quantity.verdict is not Verdict.DIFFERENT for quantity in self.quantities) and not any(
            output.differing for output in self.outputs or ()
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    `device` is what the numbers were predicted for, `counted_on` the GPU that counted them as its driver calls it,
    `counted_by` the profiler's report, or what ran it. `notes` are what a reader has to know before the numbers.
    """

    schema: str
    tool: Tool
    device: Device
    source: str
    counted_on: str | None
    counted_by: str
    kernels: tuple[KernelComparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether nothing that is exact differs in any launch."""
        return all(kernel.passes for kernel in self.kernels)
