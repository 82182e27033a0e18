"""Turns the times of things that go on beside each other into how long they take together."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sectorwise.device import load_device
from sectorwise.errors import UnsupportedDeviceError
from sectorwise.model.latency import MEASURED_DEVICE
from sectorwise.model.roofline import Level, draw_roofline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.device import DeviceSpec
    from sectorwise.measurements import PaceBehaviour

SHARPNESS: Final = 4
"""Two things that take equally long, and could go on beside each other, take a fifth longer than one."""

DATA_PIPES: Final = frozenset({"l1", "stores", "memory"})
"""Pipes that move data: warps that wait for it are in step, and few of them cannot hide one behind the other."""

IN_STEP_WAVES: Final = 1
"""Waves up to which the blocks of an SM go through the code in step: later ones begin as others end."""

PROLOGUE_NS: Final = 70.0
"""What a plan of a kernel leaves out at the beginning of a block: its indices and arguments are read, one after the
other, and addresses computed, in about 140 cycles."""

WRITES_MATTER: Final = 0.1
"""Bytes written over bytes read from which on DRAM is as fast as for a copy, not for reads alone."""


class Obstacle(StrEnum):
    """What can be imagined away, to see how much of the time it is to blame for."""

    LATENCY = "latency"
    """The wait for data that too few warps cover."""
    ISSUE = "issue"
    """Instructions issued one a cycle and scheduler."""
    ARITHMETIC = "arithmetic"
    """Pipes that compute."""
    PASSES = "passes"
    """L1, shared memory, and stores line by line."""
    LAST_WAVE = "last_wave"
    """SMs without work in the last wave."""
    BLOCKS = "blocks"
    """Starting blocks, and what lies between one and the next."""
    ATOMICS = "atomics"
    """Atomics on one address."""
    LONE_FETCHES = "lone_fetches"
    """64-byte blocks of DRAM that lie alone."""


NOTHING: Final[frozenset[Obstacle]] = frozenset()


def find_pace(device: DeviceSpec) -> tuple[PaceBehaviour, tuple[str, ...]]:
    """The pace of a device, and what of it was borrowed."""
    if device.pace is not None:
        return device.pace, ()
    lender = load_device(MEASURED_DEVICE)
    if lender.pace is None:
        raise UnsupportedDeviceError(f"{MEASURED_DEVICE} has no measured pace to borrow for {device.id}")
    return lender.pace, (f"times of launches, blocks, stores and atomics from {lender.id}",)


def count_store_cycles(device: DeviceSpec, pace: PaceBehaviour) -> float:
    """Cycles of an SM that each line takes where all SMs store: its own, or its share of what the L2 takes."""
    return max(pace.store_line_cycles, device.sm_count * device.boost_mhz / 1000 / pace.l2_store_lines_per_ns)


def join_times(*parts_ns: float) -> float:
    """Times of things that go on beside each other: the longest, and more the nearer the others come to it."""
    longest = max(parts_ns)
    return longest * sum((part / longest) ** SHARPNESS for part in parts_ns) ** (1 / SHARPNESS) if longest else 0.0


def combine_pass(
    walk_ns: float, pipe_ns: float, pipe: str, apart: float, *, queues: bool = True, at_once: bool = False
) -> float:
    """How long the warps of an SM take for one pass: each its walk, all of them the busiest pipe.

    Where the pipe moves data, a warp waits for it beyond its walk: with as many warps as go their way `apart` from each
    other (blocks, if these wait for each other in each pass) for its own part at least. Before a pipe
    that takes an instruction a cycle from each scheduler nothing `queues`: it costs no more than issuing does. Where
    all warps wait `at_once`, since there is one pass and all blocks began together, nothing is left to overlap.
    """
    if not queues:
        return max(walk_ns, pipe_ns)
    if at_once and pipe in DATA_PIPES:
        return walk_ns + pipe_ns
    joined = join_times(walk_ns, pipe_ns)
    if pipe in DATA_PIPES:
        return max(joined, walk_ns + pipe_ns / max(1.0, apart))
    return joined


def combine_bounds(parts_ns: Mapping[str, float], *, atomics_spread: bool = False) -> float:
    """How long a launch takes whose parts take so long: `launch`, `end`, `warps`, `dram`, `l2`, `blocks`, and others.

    DRAM and bulk `copies` are part of the warps' way, since they wait for them: the longest counts. Atomics on many
    addresses add to the L2's other work (`atomics_spread`): its slices do both, and the walk of the warps knows of
    DRAM's queue, not of theirs. Atomics on few addresses wait for each other while the other slices work.
    """
    warps_ns, l2_ns = max(parts_ns["warps"], parts_ns["dram"], parts_ns.get("copies", 0.0)), parts_ns["l2"]
    atomics_ns = parts_ns.get("atomics", 0.0)
    at_l2_ns = (l2_ns + atomics_ns,) if atomics_spread else (l2_ns, atomics_ns)
    return parts_ns["launch"] + parts_ns["end"] + join_times(warps_ns, *at_l2_ns, parts_ns["blocks"])


def name_longest(parts_ns: Mapping[str, float]) -> str:
    """The part that takes longest, beside the launch itself and its end."""
    return max((name for name in parts_ns if name not in {"launch", "end"}), key=lambda name: parts_ns[name])


def bound_dram(
    device: DeviceSpec, read_bytes: float, written_bytes: float, lone_bytes: float, lone_gbs: float
) -> float:
    """The ns in which DRAM moves so many bytes at full speed; `lone_bytes` of those read lie alone."""
    reads_gbs = draw_roofline(device).ceiling(Level.DRAM).per_ns
    copies_gbs = max((row.gbs for row in device.bandwidths if row.operation == "copy"), default=reads_gbs)
    mixed = written_bytes > WRITES_MATTER * read_bytes
    dense_bytes = read_bytes - lone_bytes + written_bytes
    return dense_bytes / (copies_gbs if mixed else reads_gbs) + lone_bytes / min(reads_gbs, lone_gbs)
