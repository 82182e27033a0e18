"""Turns a device's measurements into how long a request to memory takes, idle and under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.device import load_device, require_capability
from sectorwise.errors import UnsupportedDeviceError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.device import DeviceSpec
    from sectorwise.measurements import Latency

    Numbers = npt.NDArray[np.float64]

MEASURED_DEVICE = "h200-sxm"
"""The device whose memory timing is borrowed where a device has none of its own."""

LINE_BYTES = 128


class MemoryModel(Struct, frozen=True):
    """A device's memory as requests see it.

    An idle request of one 128-byte line takes a time drawn from `quantiles_ns` at `probabilities`, between which one
    interpolates; each further line of the same request comes `further_line_ns` later. Under load a request also waits
    in a queue, in the mean as long as one with a fixed service time of `service_ns` makes it wait, spread
    exponentially, and beside writes `write_wait_ns` times the part of the time that these take; one that spans more
    than `queue_span_bytes` waits for the longest of several. `ceiling_gbs` is the bandwidth at which the memory is
    always busy. `l2_far_ns` is the latency of the L2's half that is further away (of an L2 in one piece: of all of
    it). A taken branch costs `taken_branch_cycles` beyond its stated stall. `assumed` says what was borrowed
    or guessed; empty: all measured.
    """

    probabilities: tuple[float, ...]
    quantiles_ns: tuple[float, ...]
    further_line_ns: float
    queue_span_bytes: int
    service_ns: float
    write_wait_ns: float
    ceiling_gbs: float
    l2_hit_ns: float
    l2_far_ns: float
    l1_hit_ns: float
    taken_branch_cycles: int
    assumed: tuple[str, ...]

    @property
    def mean_ns(self) -> float:
        """Mean latency of a request of one line to an idle memory."""
        return _mean(self.probabilities, self.quantiles_ns)

    def wait_ns(self, busy: float, written_share: float = 0.0) -> float:
        """Mean wait in one queue of a memory that is busy this part of the time, 0 up to but not including 1.

        `written_share` is the part of the bytes that it moves which are written: reads wait for them to be done.
        """
        return self.service_ns * busy / (2 * (1 - busy)) + self.write_wait_ns * busy * written_share

    def needed_bytes(self, busy: float) -> float:
        """Bytes that must be in flight, over the whole device, to keep the memory busy this part of the time."""
        return busy * self.ceiling_gbs * (self.mean_ns + self.wait_ns(busy))

    def draw_idle_ns(self, uniforms: Numbers, place_bytes: float, places: int) -> Numbers:
        """Latencies of idle requests to so many places of so many neighbouring bytes, one for each number of [0, 1).

        The slowest place counts; the largest of n uniform numbers is distributed as the n-th root of one.
        """
        further_lines = max(0.0, place_bytes / LINE_BYTES - 1)
        slowest = np.interp(uniforms ** (1 / places), self.probabilities, self.quantiles_ns)
        return np.asarray(slowest + further_lines * self.further_line_ns)

    def draw_waits(self, uniforms: Numbers, place_bytes: float, places: int) -> Numbers:
        """Waits of the same requests, in units of the mean wait in one queue: the longest of their queues counts."""
        queues = places * max(1, -(-int(place_bytes) // self.queue_span_bytes))
        return np.asarray(-np.log1p(-(uniforms ** (1 / queues))))


def describe_memory(device: DeviceSpec) -> MemoryModel:
    """The memory of a device; what was not measured on it is borrowed from devices that were, and said to be.

    Borrowed are: the mean latency from the device's own or its nearest relative's pointer chase, the spread and the
    queue from `MEASURED_DEVICE`, and the part of the theoretical bandwidth that reads reach.
    """
    lender = load_device(MEASURED_DEVICE)
    timing = device.memory_timing or lender.memory_timing
    if timing is None:
        raise UnsupportedDeviceError(f"{MEASURED_DEVICE} has no memory timing to borrow for {device.id}")
    assumed: list[str] = []
    quantiles_ns = tuple(cycles * 1000 / timing.clock_mhz for cycles in timing.latency_cycles)
    if device.memory_timing is None:
        mean_ns, origin = _find_mean_ns(device)
        scale = 1.0 if mean_ns is None else mean_ns / _mean(timing.probabilities, quantiles_ns)
        quantiles_ns = tuple(value * scale for value in quantiles_ns)
        assumed.append(f"mean DRAM latency from {origin}")
        assumed.append(f"spread of DRAM latencies and queueing under load from {lender.id}")
    ceiling_gbs = _find_ceiling(device, lender, assumed)
    branch_cycles = None if device.capability is None else device.capability.taken_branch_cycles
    if branch_cycles is None:
        branch_cycles = require_capability(lender).taken_branch_cycles or 0
        assumed.append(f"cost of a taken branch from {lender.id}")
    l2_hit_ns, l2_owner = _find_hit_ns(device, "l2")
    l1_hit_ns, l1_owner = _find_hit_ns(device, "l1")
    if device.memory_timing is None:
        lenders = {"L1": l1_owner, "L2": l2_owner}
        for owner in dict.fromkeys(lenders.values()):
            if owner != device.id:
                levels = " and ".join(level for level, each in lenders.items() if each == owner)
                assumed.append(f"latency of hits in {levels} from {owner}")
    return MemoryModel(
        probabilities=timing.probabilities,
        quantiles_ns=quantiles_ns,
        further_line_ns=timing.further_line_cycles * 1000 / timing.clock_mhz,
        queue_span_bytes=timing.queue_span_bytes,
        service_ns=timing.queue_service_ns,
        write_wait_ns=timing.write_wait_ns,
        ceiling_gbs=ceiling_gbs,
        l2_hit_ns=l2_hit_ns,
        l2_far_ns=l2_hit_ns if device.l2_partitions == 1 else _find_far_ns(device, l2_hit_ns),
        l1_hit_ns=l1_hit_ns,
        taken_branch_cycles=branch_cycles,
        assumed=tuple(assumed),
    )


def _mean(probabilities: tuple[float, ...], values: tuple[float, ...]) -> float:
    return float(np.sum(np.diff(probabilities) * (np.asarray(values[1:]) + np.asarray(values[:-1])) / 2))


def _find_mean_ns(device: DeviceSpec) -> tuple[float | None, str]:
    """Mean idle DRAM latency of the device, or of its nearest relative, and whose it is."""
    for owner, row in _list_latencies(device):
        if row.dram_cycles is not None:
            clock_mhz = row.clock_mhz or owner.boost_mhz
            return row.dram_cycles * 1000 / clock_mhz, f"a pointer chase on {row.measured_on or owner.id}"
    return None, MEASURED_DEVICE


def _find_ceiling(device: DeviceSpec, lender: DeviceSpec, assumed: list[str]) -> float:
    """The highest read bandwidth measured, else the part of the theoretical one that reads reach on the lender."""
    measured = [row for row in device.bandwidths if row.operation == "read"]
    if measured:
        highest = max(measured, key=lambda row: row.gbs)
        if highest.measured_on is not None:
            assumed.append(f"read ceiling as measured on {highest.measured_on}")
        return highest.gbs
    reached = max(row.gbs for row in lender.bandwidths if row.operation == "read") / lender.memory_bandwidth_gbs
    assumed.append(f"read ceiling {100 * reached:.0f} % of {device.memory_bandwidth_gbs:,.0f} GB/s, as on {lender.id}")
    return reached * device.memory_bandwidth_gbs


def _find_hit_ns(device: DeviceSpec, level: str) -> tuple[float, str]:
    """Latency of a hit, from the nearest device where it was measured, and whose it is."""
    for owner, row in (*_list_latencies(device), *_list_latencies(load_device(MEASURED_DEVICE))):
        cycles = row.l1_cycles if level == "l1" else row.l2_cycles
        if cycles is not None:
            return cycles * 1000 / (row.clock_mhz or owner.boost_mhz), row.measured_on or owner.id
    raise UnsupportedDeviceError(f"no device near {device.id} has a measured {level} latency")


def _find_far_ns(device: DeviceSpec, near_ns: float) -> float:
    """Latency of the far half of the L2, from the nearest device where it was measured, but no less than a hit's."""
    for owner, row in (*_list_latencies(device), *_list_latencies(load_device(MEASURED_DEVICE))):
        if row.l2_far_cycles is not None:
            return max(near_ns, row.l2_far_cycles * 1000 / (row.clock_mhz or owner.boost_mhz))
    return near_ns


def _list_latencies(device: DeviceSpec) -> list[tuple[DeviceSpec, Latency]]:
    """Latencies and the device that they are of, locked clocks first: the device's own, else its nearest relative's."""
    owner = load_device(device.latency_from) if device.latency_from and not device.latencies else device
    return [(owner, row) for row in sorted(owner.latencies, key=lambda row: row.clock_mhz is None)]
