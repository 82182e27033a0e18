from __future__ import annotations

import ctypes
import json
import re
from collections import OrderedDict
from dataclasses import replace
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from sectorwise.calibrate import driver
from sectorwise.calibrate.driver import Gpu, open_gpu
from sectorwise.calibrate.fit import ADDRESS_CYCLES, Constants, find_groups, fit_constants
from sectorwise.calibrate.measure import BACKGROUNDS, QUANTILES, Reading, measure
from sectorwise.calibrate.write import write_device
from sectorwise.cli.main import main
from sectorwise.device import load_device
from sectorwise.errors import MissingToolError, UnknownDeviceError, UnsupportedDeviceError
from sectorwise.model.bounds import find_pace
from sectorwise.model.caches.lines import hash_lines
from sectorwise.model.latency import describe_memory

ATTRIBUTES = {
    "max_threads_per_sm": 2048,
    "clock_khz": 1_980_000,
    "sm_count": 132,
    "memory_clock_khz": 3_201_000,
    "memory_bus_bits": 6016,
    "l2_bytes": 62_914_560,
    "major": 9,
    "minor": 0,
    "shared_per_block_optin_bytes": 232_448,
}

CONSTANTS = Constants(
    l1_cycles=35.0,
    l2_cycles=265.0,
    dram_cycles=680.0,
    probabilities=QUANTILES,
    latency_cycles=tuple(400.0 + 500 * quantile for quantile in QUANTILES),
    further_line_cycles=17.0,
    queue_service_ns=40.0,
    clock_mhz=2000,
    read_gbs=4500.0,
    copy_gbs=4200.0,
    l2_read_gbs=8800.0,
    block_start_ns=0.8,
    block_turnaround_ns=300.0,
    store_line_cycles=3.5,
    l2_store_lines_per_ns=60.0,
    lone_read_gbs=3000.0,
    same_address_ns=1.7,
    atomic_sectors_per_ns=80.0,
    l2_lone_per_ns=140.0,
    sm_groups=(2, 4, 6),
    l1_ways=8,
)


PLACES = {0: [0, 6, 7, 8, 1, 2, 3, 4, 9, 10, 5, 11, 0, 1], 2: [5, 11, 5, 11, 0, 6, 7, 8, 1, 2, 3, 4, 9, 10, 0, 6]}
"""SMs of blocks: (0 6 7 8), (1 2 3 4 9 10) and (5 11) get theirs together, of many blocks an SM (5 11) first."""


def go_round(c: Constants) -> dict[int, float]:
    """Cycles beyond a hit of a step round a ring, by its KiB, through an L1 of 192 KiB: simulated, line by line."""
    sets = (192 << 10) // 128 // (c.l1_ways or 1)
    cycles = {}
    for kib in (128, 160, 176, 192, 208, 256):
        place = (hash_lines(np.arange(kib * 8)) % sets).tolist()
        cache: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
        hits = 0
        for turn in range(3):
            for line, where in enumerate(place):
                hits += turn > 0 and line in cache[where]
                cache[where][line] = None
                cache[where].move_to_end(line)
                if len(cache[where]) > (c.l1_ways or 1):
                    cache[where].popitem(last=False)
        cycles[kib] = (1 - hits / 2 / len(place)) * (c.l2_cycles - c.l1_cycles)
    return cycles


class FakeDriver:
    """A driver whose calls all succeed; it notes what was launched, and copies odd numbers back."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.launched: list[tuple[str, int, int, int]] = []
        self._next = 1 << 30

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the driver has
        def call(*arguments: Any) -> int:  # noqa: ANN401
            match name:
                case "cuMemAlloc_v2":
                    ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64)).contents.value = self._next
                    self._next += arguments[1].value
                case "cuModuleGetFunction":
                    self.asked.append(arguments[2].decode())
                case "cuLaunchKernel":
                    self.launched.append((self.asked[-1], arguments[1], arguments[4], arguments[7]))
                case "cuEventElapsedTime":
                    ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_float)).contents.value = 2.0
                case "cuMemcpyDtoH_v2":
                    words = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint32))
                    for place in range(arguments[2].value // 4):
                        words[place] = 0 if place % 2 else 1001 + place
                case _:
                    pass
            return 0

        return call


def make_gpu(library: Any = None, **attributes: int) -> Gpu:  # noqa: ANN401
    return Gpu(library, "NVIDIA H200", 13000, {**ATTRIBUTES, **attributes})


def make_readings(c: Constants) -> list[Reading]:
    """What a GPU with these constants gives, by the definition of each."""

    def read(name: str, value: float, **setting: int) -> Reading:
        return Reading(name, tuple(setting.items()), value)

    idle_ns = (c.dram_cycles + ADDRESS_CYCLES) * 1000 / c.clock_mhz
    readings = [read("chase_cycles", c.l1_cycles + ADDRESS_CYCLES, kib=kib) for kib in (8, 32, 64)]
    readings += [read("chase_cycles", c.l2_cycles + ADDRESS_CYCLES, kib=kib) for kib in (1024, 4096)]
    readings += [read("chase_cycles", c.dram_cycles + 50, kib=262144)]
    readings.append(read("timed_step_cycles_mean", c.dram_cycles + 41))
    steps = zip(c.probabilities, c.latency_cycles, strict=True)
    readings += [read("timed_step_cycles", cycles + 41, per_10000=round(10_000 * at)) for at, cycles in steps]
    for number, (threads, pause) in enumerate(BACKGROUNDS):
        busy = 0.0 if number < 4 else number / 12
        wait_ns = c.queue_service_ns * busy / 2 / (1 - busy)
        setting = {"threads": threads, "pause": pause}
        readings.append(read("loaded_ns", idle_ns + wait_ns, **setting))
        readings.append(read("loaded_cycles", (idle_ns + wait_ns) * c.clock_mhz / 1000, **setting))
        readings.append(read("background_gbs", busy * c.read_gbs, **setting))
    wide = c.dram_cycles + 3 * c.further_line_cycles + ADDRESS_CYCLES
    return [
        *readings,
        read("wide_cycles", wide, bytes=512),
        read("read_gbs", c.read_gbs - 100, blocks_per_sm=2),
        read("read_gbs", c.read_gbs, blocks_per_sm=8),
        read("copy_gbs", c.copy_gbs, blocks_per_sm=8),
        read("l2_read_gbs", c.l2_read_gbs, kib=1024),
        *(read("empty_blocks_ns", 900 + n * c.block_start_ns, blocks=n, threads=64) for n in (1000, 9000)),
        *(read("empty_blocks_ns", n * 7.0, blocks=n, threads=1024) for n in (1000, 9000)),
        *(read("empty_waves_ns", 900 + n * c.block_turnaround_ns, waves=n) for n in (32, 128)),
        read("store_ns_a_request_and_sm", 32 * c.store_line_cycles * 1000 / c.clock_mhz, pitch_bytes=128, sms=8),
        read("store_ns_a_request_and_sm", 32 * 132 / c.l2_store_lines_per_ns, pitch_bytes=128, sms=132),
        read("lone_block_gbs", 4000.0, pitch_bytes=64),
        read("lone_block_gbs", 4000.0, pitch_bytes=128),
        read("read_random_ns_a_lane", 1 / c.l2_lone_per_ns, kib=16384),
        read("read_random_ns_a_lane", 64 / c.lone_read_gbs, kib=4194304),
        *(read("block_sm", sm, kind=kind, block=b) for kind in (0, 2) for b, sm in enumerate(PLACES[kind])),
        *(read("ring_cycles", c.l1_cycles + ADDRESS_CYCLES + cycles, kib=kib) for kib, cycles in go_round(c).items()),
        read("add_ns_a_lane", c.same_address_ns, pitch=1, mask=0),
        read("add_ns_a_lane", 0.1, pitch=1, mask=31),
        read("add_ns_a_lane", 0.0125, pitch=1021, mask=1 << 20),
        read("add_random_ns_a_lane", 1 / c.atomic_sectors_per_ns, kib=16384),
    ]


def test_constants_are_found_in_what_a_gpu_with_them_gives() -> None:
    found = fit_constants(make_readings(CONSTANTS))
    assert (found.sm_groups, found.l1_ways) == ((2, 4, 6), 8)
    for name in Constants.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(CONSTANTS, name), rel=1e-3), name


DEVICE_FOLDER = Path(__file__).parents[1] / "measured" / "device"


def read_recorded() -> tuple[Gpu, list[Reading]]:
    """What `sectorwise calibrate` read from an H200 in 0.6 seconds, without when blocks began."""
    recorded = json.loads((DEVICE_FOLDER / "calibrated.json").read_text())
    readings = [
        Reading(name, tuple(zip(part["settings"], map(int, row), strict=False)), row[-1])
        for name, part in recorded["readings"].items()
        for row in part["rows"]
    ]
    for kind, places in enumerate(recorded["block_sm"]):
        readings += [Reading("block_sm", (("kind", kind), ("block", b)), sm) for b, sm in enumerate(places)]
    return Gpu(None, recorded["gpu"], recorded["driver"], recorded["attributes"]), readings  # type: ignore[arg-type]


def test_readings_of_an_h200_give_what_its_device_file_says() -> None:
    """The file that ships has other measurements, of other days, of most of these."""
    found, known = fit_constants(read_recorded()[1]), load_device("h200")
    assert known.pace is not None
    assert known.memory_timing is not None
    assert known.caches is not None
    assert found.block_start_ns == pytest.approx(known.pace.block_start_ns, rel=0.01)
    assert found.same_address_ns == pytest.approx(known.pace.same_address_ns, abs=1e-3)
    assert found.atomic_sectors_per_ns == pytest.approx(known.pace.atomic_sectors_per_ns, rel=0.02)
    assert found.store_line_cycles == pytest.approx(known.pace.store_line_cycles, rel=0.03)
    assert found.l2_store_lines_per_ns == pytest.approx(known.pace.l2_store_lines_per_ns, rel=0.03)
    assert found.l2_lone_per_ns == pytest.approx(known.pace.l2_lone_per_ns, rel=0.03)
    assert found.l2_read_gbs == pytest.approx(known.l2_read_gbs, rel=0.01)
    assert found.read_gbs == pytest.approx(max(row.gbs for row in known.bandwidths), rel=0.04)
    assert found.queue_service_ns == pytest.approx(known.memory_timing.queue_service_ns, rel=0.35)
    assert found.dram_cycles == pytest.approx(685, rel=0.03)
    assert round(found.l1_cycles) == 31
    assert found.l2_cycles == pytest.approx(243, rel=0.03)
    assert sorted(found.sm_groups) == sorted(known.caches.sm_groups)


def test_the_calibrated_file_of_an_h200_is_what_its_readings_give() -> None:
    path = DEVICE_FOLDER / "h200-calibrated.toml"
    assert write_device(*_with_constants()) == path.read_text()
    device = load_device(str(path))
    assert (device.name, device.sm_count, device.boost_mhz) == ("NVIDIA H200", 132, 1980)
    assert describe_memory(device).assumed == ()
    assert find_pace(device)[1] == ()


def _with_constants() -> tuple[Gpu, Constants]:
    gpu, readings = read_recorded()
    return gpu, fit_constants(readings)


def test_reads_wait_for_writes_as_the_device_file_says() -> None:
    """A chase beside SMs that copy, or read two words and write one, in all from 0.9 to 3.2 TB/s."""
    rows = json.loads((DEVICE_FOLDER / "writes.json").read_text())["loaded"]["rows"]
    timing, ceiling_gbs = load_device("h200").memory_timing, describe_memory(load_device("h200")).ceiling_gbs
    assert timing is not None
    idle_ns, waits = rows[0][4], []
    for background, _, _, _, latency_ns, loads_gbs in rows:
        written_gbs = loads_gbs * {"copy": 1.0, "copy words": 1.0, "read two, write one": 0.5}.get(background, 0.0)
        busy = (loads_gbs + written_gbs) / ceiling_gbs
        if written_gbs and 900 < busy * ceiling_gbs < 3200:
            queued_ns = timing.queue_service_ns * busy / 2 / (1 - busy)
            waits.append((latency_ns - idle_ns - queued_ns) / (written_gbs / ceiling_gbs))
    assert len(waits) == 18
    assert median(waits) == pytest.approx(timing.write_wait_ns, rel=0.02)
    assert all(400 < wait < 570 for wait in waits)


def test_half_of_the_l2_stays_dirty() -> None:
    device = load_device("h200")
    assert device.caches is not None
    written = json.loads((DEVICE_FOLDER / "writes.json").read_text())["written"]["rows"]
    most = device.caches.l2_dirty_share * device.l2_bytes
    for size_bytes, _, stored_bytes, dram_bytes, _ in written:
        assert stored_bytes == size_bytes
        kept_bytes = min(size_bytes, most)
        assert dram_bytes == pytest.approx(size_bytes - kept_bytes, abs=device.caches.dirty_before_bytes)


def test_groups_of_an_h200_are_found_in_where_blocks_ran() -> None:
    recorded = json.loads((Path(__file__).parents[1] / "measured" / "device" / "calibrate.json").read_text())[
        "block_sm"
    ]
    known = load_device("h200").caches
    assert known is not None
    assert find_groups([recorded[0], recorded[2]]) == known.sm_groups


@pytest.mark.parametrize("ways", [1, 4, 16, 64])
def test_ways_of_l1_are_found_in_a_simulated_one(ways: int) -> None:
    assert fit_constants(make_readings(replace(CONSTANTS, l1_ways=ways))).l1_ways == ways


def test_without_rings_and_places_the_caches_are_those_that_are_known(tmp_path: Path) -> None:
    missing = {"ring_cycles", "block_sm"}
    found = fit_constants(reading for reading in make_readings(CONSTANTS) if reading.name not in missing)
    assert (found.sm_groups, found.l1_ways) == ((), None)
    path = tmp_path / "mine.toml"
    path.write_text(write_device(make_gpu(), found))
    device, known = load_device(str(path)).caches, load_device("h200").caches
    assert device is not None
    assert known is not None
    assert replace(device, source=known.source) == known


def test_a_measurement_that_was_cut_short_is_no_device() -> None:
    whole = make_readings(CONSTANTS)
    with pytest.raises(UnsupportedDeviceError, match="no reading wide_cycles"):
        fit_constants([reading for reading in whole if reading.name != "wide_cycles"])
    calm = [replace(reading, value=0.0) if reading.name == "background_gbs" else reading for reading in whole]
    with pytest.raises(UnsupportedDeviceError, match="no load at which the memory slows down"):
        fit_constants(calm)


def test_the_file_is_a_device_with_what_was_measured_over_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(write_device(make_gpu(sm_count=114), CONSTANTS))
    device, known = load_device(str(path)), load_device("h200")
    assert (device.id, device.name, device.sm_count) == (str(path), "NVIDIA H200", 114)
    assert (device.peaks, device.capability) == (known.peaks, known.capability)
    assert device.caches is not None
    assert known.caches is not None
    assert (device.caches.sm_groups, device.caches.l1_ways) == ((2, 4, 6), 8)
    assert (
        replace(device.caches, source=known.caches.source, sm_groups=known.caches.sm_groups, l1_ways=16) == known.caches
    )
    assert {row.operation: row.gbs for row in device.bandwidths} == {"copy": 4200, "read": 4500}
    assert device.pace is not None
    assert known.pace is not None
    assert (device.pace.same_address_ns, device.pace.atomic_sectors_per_ns, device.pace.lone_read_gbs) == (
        1.7,
        80,
        3000,
    )
    assert device.pace.launch_ns == known.pace.launch_ns
    memory = describe_memory(device)
    assert memory.assumed == ()
    assert (memory.ceiling_gbs, memory.service_ns) == (4500, 40)
    assert memory.mean_ns == pytest.approx(650 * 1000 / 2000, rel=1e-3)
    assert all("calibrate on NVIDIA H200, driver 13.0" in row.source.title for row in device.latencies)


def test_the_file_of_another_gpu_says_what_is_of_which_device(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(write_device(make_gpu(major=8, minor=0), CONSTANTS))
    *_, base, borrowed = load_device(str(path)).notes
    assert base.startswith("what was not measured is that of a")
    assert borrowed.endswith("are those of h200-sxm")


def test_a_gpu_of_unknown_limits_is_refused() -> None:
    with pytest.raises(UnsupportedDeviceError, match=r"compute capability 5\.2"):
        write_device(make_gpu(major=5, minor=2), CONSTANTS)


def test_every_kernel_that_is_launched_exists_and_fits() -> None:
    library = FakeDriver()
    readings = list(measure(make_gpu(library), b""))
    source = resources.files("sectorwise.calibrate").joinpath("kernels.cu").read_text()
    there = set(re.findall(r"__global__ void (\w+)\(", source)) | {
        f"pipe_{name}" for name in re.findall(r"^PIPE\((\w+),", source, re.MULTILINE)
    }
    launched = {name for name, *_ in library.launched}
    assert launched <= there
    assert all(0 < threads <= 1024 and shared <= 232_448 for _, _, threads, shared in library.launched)
    assert {reading.name for reading in readings} >= {reading.name for reading in make_readings(CONSTANTS)}


def test_without_a_gpu_the_message_says_what_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(driver, "_load", lambda: None)
    with pytest.raises(MissingToolError, match="this machine has none"):
        open_gpu()
    with pytest.raises(SystemExit) as stop:
        main(["calibrate"])
    assert stop.value.code == 2
    assert "Everything else works without one" in capsys.readouterr().err


def test_device_files_that_are_none_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UnknownDeviceError, match="cannot be read"):
        load_device(str(tmp_path / "missing.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("[numbers\n")
    with pytest.raises(UnknownDeviceError, match="cannot be read"):
        load_device(str(broken))
    empty = tmp_path / "empty.toml"
    empty.write_text("name = 'x'\n")
    with pytest.raises(UnknownDeviceError, match="no device file"):
        load_device(str(empty))
