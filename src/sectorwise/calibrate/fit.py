"""Turns readings into the constants of a device file that they give."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product
from math import exp, lgamma, log
from statistics import median
from typing import TYPE_CHECKING, Final

from sectorwise.errors import UnsupportedDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sectorwise.calibrate.measure import Reading

ADDRESS_CYCLES: Final = 16
"""What a step of a chase takes beside the load: the stated stalls of sixteen unrolled steps are 257 cycles."""

CALM: Final = 0.3
"""Loads of the memory that a request hardly notices; of several readings a stray one does not count."""

STEADY_BUSY: Final = (0.35, 0.9)
"""Loads of the memory at which its queue shows: below it is noise, above it every reading errs."""

WAYS: Final = (1, 2, 4, 8, 16, 32, 64)
L1_KIB: Final = tuple(range(32, 264, 8))
"""What an L1 may have: lines a set, and size."""

LINES_OF_512_BYTES: Final = 4
LANES: Final = 32
FETCH_BYTES: Final = 64
"""What a lane that reads one word at a random place takes from DRAM."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What was measured on a GPU, in the words and units of `measurements`; clocks are those of the run.

    `latency_cycles` are at `probabilities`; the addition on one address is of whole numbers. Of the caches there is
    what times and places tell: sizes of groups of SMs, in the order in which they get blocks, and the ways of L1; none,
    and None, where they were not measured. How requests merge takes a profiler.
    """

    l1_cycles: float
    l2_cycles: float
    dram_cycles: float
    probabilities: tuple[float, ...]
    latency_cycles: tuple[float, ...]
    further_line_cycles: float
    queue_service_ns: float
    clock_mhz: int
    read_gbs: float
    copy_gbs: float
    l2_read_gbs: float
    block_start_ns: float
    block_turnaround_ns: float
    store_line_cycles: float
    l2_store_lines_per_ns: float
    lone_read_gbs: float
    same_address_ns: float
    atomic_sectors_per_ns: float
    l2_lone_per_ns: float
    sm_groups: tuple[int, ...] = ()
    l1_ways: int | None = None


def fit_constants(readings: Iterable[Reading]) -> Constants:
    """The constants that the readings of `measure` give.

    Raises:
        UnsupportedDeviceError: readings are missing, or show a memory that no load slows down.
    """
    found: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        found[reading.name].append(reading)
    read_gbs = _most(found, "read_gbs")
    calm = [place for place, each in enumerate(_all(found, "background_gbs")) if each.value < CALM * read_gbs]
    idle_cycles = median(_all(found, "loaded_cycles")[place].value for place in calm) - ADDRESS_CYCLES
    idle_ns = median(_all(found, "loaded_ns")[place].value for place in calm)
    clock_mhz = round(1000 * (idle_cycles + ADDRESS_CYCLES) / idle_ns)
    clock_reads = _one(found, "timed_step_cycles_mean") - idle_cycles
    chase = {reading.get("kib"): reading.value - ADDRESS_CYCLES for reading in _all(found, "chase_cycles")}
    steps = _all(found, "timed_step_cycles")
    return Constants(
        l1_cycles=min(chase.values()),
        l2_cycles=median(cycles for kib, cycles in chase.items() if 1024 <= kib <= 4096),
        dram_cycles=idle_cycles,
        probabilities=tuple(step.get("per_10000") / 10_000 for step in steps),
        latency_cycles=tuple(max(1.0, step.value - clock_reads) for step in steps),
        further_line_cycles=(_one(found, "wide_cycles") - ADDRESS_CYCLES - idle_cycles) / (LINES_OF_512_BYTES - 1),
        queue_service_ns=_fit_queue(found, read_gbs, idle_ns),
        clock_mhz=clock_mhz,
        read_gbs=read_gbs,
        copy_gbs=_most(found, "copy_gbs"),
        l2_read_gbs=_most(found, "l2_read_gbs"),
        block_start_ns=_slope(found, "empty_blocks_ns", "blocks", threads=64),
        block_turnaround_ns=_slope(found, "empty_waves_ns", "waves"),
        store_line_cycles=_pick(found, "store_ns_a_request_and_sm", pitch_bytes=128) / LANES * clock_mhz / 1000,
        l2_store_lines_per_ns=_fit_stores(found),
        lone_read_gbs=FETCH_BYTES / _all(found, "read_random_ns_a_lane")[-1].value,
        same_address_ns=_pick(found, "add_ns_a_lane", mask=0),
        atomic_sectors_per_ns=1 / _one(found, "add_random_ns_a_lane"),
        l2_lone_per_ns=1 / _one(found, "read_random_ns_a_lane"),
        sm_groups=find_groups([_list_places(found, kind) for kind in (0, 2)]) if found["block_sm"] else (),
        l1_ways=_fit_ways(found, chase) if found["ring_cycles"] else None,
    )


def _fit_stores(found: Mapping[str, list[Reading]]) -> float:
    """Lines that the L2 takes from all SMs together, where each holds four bytes."""
    all_sms = _select(found, "store_ns_a_request_and_sm", {"pitch_bytes": 128})[-1]
    return LANES * all_sms.get("sms") / all_sms.value


def _fit_queue(found: Mapping[str, list[Reading]], read_gbs: float, idle_ns: float) -> float:
    """The service time whose queue makes a request wait as long as was seen, the median over steady loads."""
    services = []
    for loaded, background in zip(_all(found, "loaded_ns"), _all(found, "background_gbs"), strict=True):
        busy = background.value / read_gbs
        if STEADY_BUSY[0] <= busy <= STEADY_BUSY[1]:
            services.append((loaded.value - idle_ns) / (busy / 2 / (1 - busy)))
    if not services:
        raise UnsupportedDeviceError("calibrate found no load at which the memory slows down: was the GPU busy?")
    return median(services)


def _list_places(found: Mapping[str, list[Reading]], kind: int) -> list[int]:
    """The SM of each block of a launch."""
    blocks = sorted(_select(found, "block_sm", {"kind": kind}), key=lambda reading: reading.get("block"))
    return [round(reading.value) for reading in blocks]


def find_groups(places: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Sizes of the groups of SMs that get their blocks together, in the order in which they do.

    `places` are the SMs of the blocks of two launches. In the first an SM holds one block, so each SM comes once before
    any comes again, group by group, and in a group by ascending number; in the second SMs hold many, and the groups
    come in the order of all later launches.
    """
    alone, many = places
    group_of: dict[int, int] = {}
    group = last = -1
    for sm in alone:
        if sm in group_of:
            break
        group += sm < last or last < 0
        group_of[sm] = group
        last = sm
    sizes = Counter(group_of.values())
    return tuple(sizes[group] for group in dict.fromkeys(group_of[sm] for sm in many))


def _fit_ways(found: Mapping[str, list[Reading]], chase: Mapping[int, float]) -> int:
    """The ways of an L1 whose hits are most like those on rings of lines; its size is free."""
    l1_cycles, l2_cycles = min(chase.values()), median(cycles for kib, cycles in chase.items() if 1024 <= kib <= 4096)
    seen = {
        reading.get("kib"): (l2_cycles - (reading.value - ADDRESS_CYCLES)) / (l2_cycles - l1_cycles)
        for reading in _all(found, "ring_cycles")
    }

    def miss(candidate: tuple[int, int]) -> float:
        ways, l1_kib = candidate
        return sum((share - share_of_ring(kib, l1_kib, ways)) ** 2 for kib, share in seen.items())

    return min(product(WAYS, L1_KIB), key=miss)[0]


def share_of_ring(ring_kib: int, l1_kib: int, ways: int) -> float:
    """The part of a ring's lines that hit where a hash spreads them over sets of so many ways.

    Round and round, lines of a set that has too many push each other out, and all lines of other sets stay: those that
    share their set with fewer than `ways` others.
    """
    mean = ways * ring_kib / l1_kib
    return sum(exp(others * log(mean) - mean - lgamma(others + 1)) for others in range(ways))


def _all(found: Mapping[str, list[Reading]], name: str) -> list[Reading]:
    if not found.get(name):
        raise UnsupportedDeviceError(f"calibrate has no reading {name}: the measurement was cut short")
    return found[name]


def _one(found: Mapping[str, list[Reading]], name: str) -> float:
    return _all(found, name)[0].value


def _most(found: Mapping[str, list[Reading]], name: str) -> float:
    return max(reading.value for reading in _all(found, name))


def _select(found: Mapping[str, list[Reading]], name: str, setting: Mapping[str, int]) -> list[Reading]:
    chosen = [r for r in _all(found, name) if setting.items() <= dict(r.setting).items()]
    if not chosen:
        raise UnsupportedDeviceError(f"calibrate has no reading {name} at {dict(setting)}: it was cut short")
    return chosen


def _pick(found: Mapping[str, list[Reading]], name: str, **setting: int) -> float:
    return _select(found, name, setting)[0].value


def _slope(found: Mapping[str, list[Reading]], name: str, per: str, **setting: int) -> float:
    """What each further one takes: the difference of the first and the last reading."""
    chosen = _select(found, name, setting)
    return (chosen[-1].value - chosen[0].value) / (chosen[-1].get(per) - chosen[0].get(per))
