"""Turns an analysis into figures of matplotlib, which are returned and never shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.causes import split_time
from sectorwise.device import load_device
from sectorwise.errors import ArgumentError, MissingToolError
from sectorwise.model.cliffs import trace_occupancy
from sectorwise.model.latency import describe_memory
from sectorwise.model.occupancy import Limiter, occupancy
from sectorwise.model.roofline import Level
from sectorwise.report.comparison import CAUSE_WORDS
from sectorwise.report.concurrency import HELD_UP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sectorwise.analysis.data import Analysis, KernelAnalysis

_USED, _BAD, _QUIET = "#2f7fc1", "#d5580a", "#777777"
_SIZE: Final = (6.4, 3.8)
_BUSY: Final = tuple(step / 200 for step in range(195))


@dataclass(frozen=True, slots=True)
class Plots:
    """The figures of an analysis; `kernel` is the number of a launch, in the order of `analysis.kernels`."""

    analysis: Analysis

    def roofline(self, kernel: int = 0) -> Figure:
        """Attainable rate over intensity, a roof for each level of memory, and the kernel at each of them.

        Raises:
            ArgumentError: there is no such launch, or it does no arithmetic.
            MissingToolError: matplotlib is not there.
        """
        found = self._find(kernel)
        roof = found.roofline
        if not roof.operations:
            raise ArgumentError(f"{found.name} does no arithmetic: it has no place on a roofline")
        levels = [level for level in roof.levels if level.level is not Level.ISSUE]
        known = [level.intensity for level in levels if level.intensity]
        low = min(*known, *(level.ridge for level in levels)) / 4
        high = 4 * max(*known, *(level.ridge for level in levels))
        figure, axes = _open(f"{found.name}: roofline")
        for level in levels:
            axes.plot(
                [low, level.ridge, high],
                [low * level.ceiling_per_ns, roof.peak_gflops, roof.peak_gflops],
                color=_USED,
                label=f"{level.level}: {level.ceiling_per_ns:,.0f} GB/s",
                alpha=1 if level.level == roof.bound else 0.4,
            )
            if level.intensity and level.attainable_gflops:
                axes.plot([level.intensity], [level.attainable_gflops], "o", color=_BAD)
                axes.annotate(f" {level.level}", (level.intensity, level.attainable_gflops))
        axes.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel=f"GFLOP/s, {roof.data_type}")
        axes.legend(frameon=False, loc="lower right")
        return figure

    def occupancy(self, kernel: int = 0, over: str = "registers") -> Figure:
        """Resident warps over registers a thread (`registers`), shared bytes a block (`shared`) or threads (`warps`).

        Raises:
            ArgumentError: there is no such launch, or `over` is none of the three.
            MissingToolError: matplotlib is not there.
        """
        found = self._find(kernel)
        here = {
            "registers": found.resources.registers_per_thread,
            "shared": found.resources.static_shared_bytes + found.launch.dynamic_shared_bytes,
            "warps": math.prod(found.launch.block),
        }
        if over not in here:
            raise ArgumentError(f"over must be one of {', '.join(here)}, got {over!r}")
        held = occupancy(here["warps"], here["registers"], here["shared"], device=self.analysis.device.id)
        steps = trace_occupancy(held, Limiter(over))
        figure, axes = _open(f"{found.name}: occupancy")
        edges = [steps[0].first, *(step.last for step in steps)]
        axes.stairs([step.warps_per_sm for step in steps], edges, fill=True, color=_USED, alpha=0.35)
        axes.plot([here[over]], [found.occupancy.warps_per_sm], "o", color=_BAD, label=f"here: {here[over]:,}")
        names = {"registers": "registers a thread", "shared": "bytes of shared memory a block", "warps": "threads"}
        axes.set(xlabel=names[over], ylabel="warps an SM", ylim=(0, 1.05 * held.max_warps_per_sm))
        axes.legend(frameon=False)
        return figure

    def bytes_in_flight(self, kernel: int = 0) -> Figure:
        """The bandwidth of DRAM over the bytes in flight an SM, with the kernel's average on it.

        Raises:
            ArgumentError: there is no such launch, or no loop of it loads.
            MissingToolError: matplotlib is not there.
        """
        found = self._find(kernel)
        if found.concurrency is None:
            raise ArgumentError(f"{found.name} has no loop that loads: nothing is known of its bytes in flight")
        spec = load_device(self.analysis.device.id)
        memory = describe_memory(spec)
        kept = found.concurrency.in_flight_bytes_per_sm
        figure, axes = _open(f"{found.name}: bytes in flight")
        needed = [memory.needed_bytes(busy) / spec.sm_count for busy in _BUSY]
        axes.plot(needed, [busy * memory.ceiling_gbs for busy in _BUSY], color=_USED)
        axes.axvline(kept, color=_BAD, label=f"here: {kept:,.0f} B")
        axes.axvline(found.concurrency.needed_bytes_per_sm, color=_QUIET, linestyle=":", label="fills DRAM")
        most = 1.2 * max(kept, found.concurrency.needed_bytes_per_sm)
        axes.set(xlabel="bytes in flight an SM, on average", ylabel="GB/s of DRAM", xlim=(0, most), ylim=(0, None))
        axes.legend(frameon=False)
        return figure

    def time(self, kernel: int = 0) -> Figure:
        """Where the estimated time goes, by cause.

        Raises:
            ArgumentError: there is no such launch, or no estimate of its time (`follow_caches=True` makes one).
            MissingToolError: matplotlib is not there.
        """
        found = self._find(kernel)
        if found.time is None:
            raise ArgumentError(f"there is no estimate of the time of {found.name}; analyze with follow_caches=True")
        parts = [part for part in split_time(found) if part.ns]
        figure, axes = _open(f"{found.name}: about {found.time.estimate_ns / 1000:,.3g} us")
        names = [HELD_UP.get(part.held_up_by or "", CAUSE_WORDS[part.cause]) for part in parts]
        bars = axes.barh(names, [(part.ns or 0.0) / 1000 for part in parts], color=_USED)
        axes.bar_label(bars, fmt="%.3g", padding=3)
        axes.invert_yaxis()
        axes.set(xlabel="us")
        return figure

    def _find(self, kernel: int) -> KernelAnalysis:
        if not 0 <= kernel < len(self.analysis.kernels):
            raise ArgumentError(f"there is no launch {kernel}; there are {len(self.analysis.kernels)}, from 0 on")
        return self.analysis.kernels[kernel]


def _open(title: str) -> tuple[Figure, Axes]:
    """A figure that no window and no notebook shows by itself."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        message = 'figures need matplotlib: pip install "sectorwise[plot]"'
        raise MissingToolError(message) from None
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
