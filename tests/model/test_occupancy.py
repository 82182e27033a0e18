from __future__ import annotations

import csv
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sectorwise.device import load_device, require_capability
from sectorwise.errors import ArgumentError, UnsupportedDeviceError
from sectorwise.model.carveout import allocate_shared
from sectorwise.model.cliffs import find_cliffs, trace_occupancy
from sectorwise.model.occupancy import Limiter, occupancy

MEASURED = Path(__file__).parents[1] / "measured" / "h200"


def _read_launches() -> list[tuple[str, int, dict[str, Any]]]:
    launches = []
    for path in sorted(MEASURED.glob("*.json")):
        document = json.loads(path.read_text())
        if isinstance(document, dict) and "cases" in document:
            for case in document["cases"]:
                x, y, z = case["block"]
                launches.append((case["name"], x * y * z, case["measured"]["launch"]))
    return launches


def test_every_measured_launch_has_the_limits_that_the_profiler_counted() -> None:
    launches = _read_launches()
    assert len(launches) == 389
    for name, threads, launch in launches:
        shared_bytes = launch["shared_static_bytes"] + launch["shared_dynamic_bytes"]
        found = occupancy(threads, launch["registers_per_thread"], shared_bytes, device="h200")
        assert {
            "limit_blocks": found.limit_blocks,
            "limit_registers": found.limit_registers,
            "limit_shared": found.limit_shared,
            "limit_warps": found.limit_warps,
            "shared_config_bytes": found.shared_config_bytes,
            "shared_allocated_bytes": found.shared_allocated_bytes,
            "theoretical_occupancy_pct": found.theoretical_pct,
        } == {
            key: launch[key]
            for key in (
                "limit_blocks",
                "limit_registers",
                "limit_shared",
                "limit_warps",
                "shared_config_bytes",
                "shared_allocated_bytes",
                "theoretical_occupancy_pct",
            )
        }, name


def test_every_recorded_carveout_is_the_one_that_the_driver_picked() -> None:
    rows = json.loads((MEASURED / "carveout.json").read_text())
    assert len(rows) == 76
    for row in rows:
        found = occupancy(row["threads"], row["registers"], row["dynamic_bytes"], device="h200")
        assert found.shared_config_bytes == row["config_bytes"], row
        assert found.limit_blocks == row["limit_blocks"], row
        assert found.limit_registers == row["limit_registers"], row
        assert found.limit_shared == row["limit_shared"], row
        assert found.limit_warps == row["limit_warps"], row
        assert found.theoretical_pct == row["theoretical_pct"], row
        assert found.assumed == ()


def test_the_carveout_sweep_is_reproduced_row_by_row() -> None:
    with (MEASURED.parent / "device" / "carveout_sweep.csv").open(newline="") as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 2097
    assert {row["static_bytes"] for row in rows} == {0, 16, 1024, 8192}
    for row in rows:
        shared_bytes = int(row["static_bytes"] + row["dynamic_bytes"])
        found = occupancy(int(row["threads"]), int(row["registers"]), shared_bytes, device="h200")
        assert (
            found.shared_config_bytes,
            found.limit_warps,
            found.limit_registers,
            found.limit_shared,
            found.limit_blocks,
            round(found.theoretical_pct, 2),
        ) == (
            row["config_bytes"],
            row["limit_warps"],
            row["limit_registers"],
            row["limit_shared"],
            row["limit_blocks"],
            row["theoretical_pct"],
        ), row


@dataclass(frozen=True)
class Limits:
    """One line of the programming guide's table, typed here a second time."""

    device: str
    threads: int
    blocks: int
    shared_kib: int
    optin_kib: int
    reserved: int
    granule: int


TABLE = {
    "7.0": Limits("v100", 2048, 32, 96, 96, 0, 256),
    "7.5": Limits("t4", 1024, 16, 64, 64, 0, 256),
    "8.0": Limits("a100", 2048, 32, 164, 163, 1024, 128),
    "8.6": Limits("rtx3090", 1536, 16, 100, 99, 1024, 128),
    "8.7": Limits("orin", 1536, 16, 164, 163, 1024, 128),
    "8.9": Limits("rtx4090", 1536, 24, 100, 99, 1024, 128),
    "9.0": Limits("h100", 2048, 32, 228, 227, 1024, 128),
    "10.0": Limits("b200", 2048, 32, 228, 227, 1024, 128),
    "10.3": Limits("b300", 2048, 32, 228, 227, 1024, 128),
    "12.0": Limits("rtx5090", 1536, 24, 100, 99, 1024, 128),
    "12.1": Limits("dgx-spark", 1536, 24, 100, 99, 1024, 128),
}
CONFIGURATIONS = 25_000


def _count_by_placement(limits: Limits, threads: np.ndarray, registers: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Blocks an SM by trying: add one block at a time until a resource is exceeded.

    A warp takes registers by units of 256, and sits in one of four sub-partitions of 16,384: so a sub-partition holds
    a whole number of warps, and the SM four times that. A block alone takes whole rounds of four warps.
    """
    warps = (threads + 31) // 32
    units = (registers * 32 + 255) // 256
    room = 4 * (64 // units)
    alone = ((warps + 3) // 4 * 4) * units * 256 <= 65_536
    startable = alone & (shared <= limits.optin_kib * 1024)
    taken = (shared + limits.reserved + limits.granule - 1) // limits.granule * limits.granule
    blocks = np.zeros(threads.size, dtype=np.int64)
    for count in range(1, limits.blocks + 1):
        fits = (count * warps * 32 <= limits.threads) & (count * warps <= room)
        fits &= count * taken <= limits.shared_kib * 1024
        blocks[fits & startable] = count
    return blocks


@pytest.mark.parametrize("architecture", TABLE)
def test_a_second_formulation_agrees(architecture: str) -> None:
    limits = TABLE[architecture]
    device = load_device(limits.device)
    assert device.architecture == architecture
    generator = np.random.default_rng(int(float(architecture) * 10))
    threads = generator.integers(1, 1025, CONFIGURATIONS)
    registers = generator.integers(1, 256, CONFIGURATIONS)
    largest = limits.optin_kib * 1024
    shared = (largest * generator.random(CONFIGURATIONS) ** 3).astype(np.int64)
    shared[::7] = 0
    shared[::11] += 1024
    expected = _count_by_placement(limits, threads, registers, shared)
    assert 0.02 < np.mean(expected == 0) < 0.6
    for block in zip(threads.tolist(), registers.tolist(), shared.tolist(), expected.tolist(), strict=True):
        *needs, blocks = block
        if blocks:
            found = occupancy(*needs, device=device)
            assert found.blocks_per_sm == blocks, needs
            assert found.warps_per_sm == blocks * -(-needs[0] // 32)
        else:
            with pytest.raises(ArgumentError):
                occupancy(*needs, device=device)


@pytest.mark.parametrize(
    ("threads", "registers", "blocks"),
    [
        (96, 168, 4),  # 3 if every block's warps were rounded up to four
        (160, 80, 4),  # 3 rounded, 5 with no granularity
    ],
)
def test_warps_are_dealt_to_sub_partitions_not_rounded_by_block(threads: int, registers: int, blocks: int) -> None:
    assert occupancy(threads, registers, device="a100").limit_registers == blocks


def test_limiters_name_every_resource_that_binds() -> None:
    assert occupancy(256, 32, device="h200").limiters == (Limiter.WARPS, Limiter.REGISTERS)
    assert occupancy(32, 16, device="h200").limiter is Limiter.BLOCKS
    assert occupancy(256, 40, device="h200").limiter is Limiter.REGISTERS
    assert occupancy(256, 16, 65_536, device="h200").limiter is Limiter.SHARED
    assert occupancy(32, 16, device="h200", barriers=16).limiter is Limiter.BARRIERS


def test_barriers_limit_from_hopper_on() -> None:
    assert occupancy(128, 16, device="h200", barriers=16).limit_barriers == 4
    assert occupancy(128, 16, device="rtx5090", barriers=16).limit_barriers == 1
    assert occupancy(128, 16, device="a100", barriers=16).limit_barriers is None
    assert occupancy(128, 16, device="h200").limit_barriers is None


def test_what_the_driver_picks_elsewhere_is_marked_assumed() -> None:
    found = occupancy(256, 32, 8192, device="a100")
    assert found.shared_config_bytes == 100 * 1024
    assert found.assumed == ("shared_config_bytes", "l1_bytes", "limit_shared")
    assert found.blocks_per_sm == 8


def test_a_preferred_carveout_is_rounded_up_and_can_cost_blocks() -> None:
    found = occupancy(256, 16, 16_384, device="h200", preferred_carveout_pct=25)
    assert found.shared_config_bytes == 64 * 1024
    assert found.l1_bytes == 192 * 1024
    assert (found.limit_shared, found.limit_shared_max_carveout) == (3, 13)
    assert found.blocks_per_sm == 3
    assert found.limiters == (Limiter.SHARED,)
    raised = occupancy(256, 16, 100_000, device="h200", preferred_carveout_pct=0)
    assert raised.shared_config_bytes == 100 * 1024
    with pytest.raises(ArgumentError, match="0 to 100, not 101"):
        occupancy(256, 16, device="h200", preferred_carveout_pct=101)


def test_what_clusters_hold_is_an_upper_bound() -> None:
    alone, together = (occupancy(256, 32, device="h200", cluster_blocks=blocks) for blocks in (1, 4))
    assert (alone.assumed, together.assumed) == ((), ("blocks_per_sm",))
    assert alone.blocks_per_sm == together.blocks_per_sm == 8
    with pytest.raises(ArgumentError, match=r"A100.*has compute capability 8\.0; clusters of blocks begin with 9\.0"):
        occupancy(256, 32, device="a100", cluster_blocks=2)
    with pytest.raises(ArgumentError, match="cluster_blocks is 0; it must be at least 1"):
        occupancy(256, 32, device="h200", cluster_blocks=0)


def test_volta_and_turing_reserve_nothing() -> None:
    found = occupancy(256, 32, 0, device="v100")
    assert (found.limit_shared, found.shared_allocated_bytes) == (None, 0)
    assert allocate_shared(1, require_capability(load_device("v100"))) == 256
    assert allocate_shared(1, require_capability(load_device("h200"))) == 1152


@pytest.mark.parametrize(
    ("needs", "lines"),
    [
        (
            (1024, 72, 300_000),
            [
                "registers: 73,728 needed, an SM has 65,536: 8,192 too many; 64 a thread would fit",
                "shared memory: 300,000 bytes asked for, a block has at most 232,448: 67,552 too many",
            ],
        ),
        ((1056, 16, 0), ["threads: 1,056 asked for, a block has at most 1,024: 32 too many"]),
        ((32, 300, 0), ["registers: 300 a thread asked for, a thread has at most 255: 45 too many"]),
        ((672, 96, 0), ["registers: 73,728 needed, an SM has 65,536: 8,192 too many; 80 a thread would fit"]),
    ],
)
def test_a_block_that_cannot_be_resident_says_which_resource_and_by_how_much(
    needs: tuple[int, int, int], lines: list[str]
) -> None:
    with pytest.raises(ArgumentError) as caught:
        occupancy(*needs, device="h200")
    first, *rest = str(caught.value).splitlines()
    assert first.endswith("cannot be resident on an SM of H200 SXM 141GB (h200-sxm):")
    assert [line.strip() for line in rest] == lines


def test_what_would_fit_fits_and_one_more_does_not() -> None:
    for threads in range(32, 1025, 32):
        with pytest.raises(ArgumentError) as caught:
            occupancy(threads, 256, device="h200")
        if "would fit" in str(caught.value):
            fitting = int(str(caught.value).split(" a thread would fit")[0].split()[-1])
            assert occupancy(threads, fitting, device="h200").blocks_per_sm >= 1
            with pytest.raises(ArgumentError):
                occupancy(threads, fitting + 1, device="h200")


@pytest.mark.parametrize("needs", [(0, 16, 0), (32, 0, 0), (32, 16, -1)])
def test_values_outside_the_domain_are_named(needs: tuple[int, int, int]) -> None:
    with pytest.raises(ArgumentError, match="must be at least"):
        occupancy(*needs, device="h200")


def test_amd_devices_have_no_warps_to_count() -> None:
    with pytest.raises(UnsupportedDeviceError, match="MI300X"):
        occupancy(256, 32, device="mi300x")


def test_cliffs_are_where_brute_force_finds_them() -> None:
    at = occupancy(256, 40, 16_000, device="h200")
    registers = find_cliffs(at, Limiter.REGISTERS)
    assert registers.gain is not None
    assert registers.loss is not None
    assert (registers.gain.last, registers.gain.blocks_per_sm) == (32, 8)
    assert (registers.loss.first, registers.loss.blocks_per_sm) == (41, 5)
    shared = find_cliffs(at, Limiter.SHARED)
    assert shared.gain is None
    assert shared.loss is not None
    assert occupancy(256, 40, shared.loss.first - 1, device="h200").blocks_per_sm == at.blocks_per_sm == 6
    assert occupancy(256, 40, shared.loss.first, device="h200").blocks_per_sm == shared.loss.blocks_per_sm == 5


@pytest.mark.parametrize("resource", [Limiter.REGISTERS, Limiter.SHARED])
def test_the_curve_has_no_gaps_and_holds_at_both_ends_of_every_step(resource: Limiter) -> None:
    at = occupancy(192, 37, 5000, device="rtx4090")
    steps = trace_occupancy(at, resource)
    assert steps[0].first == (1 if resource is Limiter.REGISTERS else 0)
    assert steps[-1].last == (255 if resource is Limiter.REGISTERS else 99 * 1024)
    for before, after in itertools.pairwise(steps):
        assert after.first == before.last + 1
        assert after.blocks_per_sm != before.blocks_per_sm
    for step in steps:
        for value in (step.first, step.last):
            needs = (192, value, 5000) if resource is Limiter.REGISTERS else (192, 37, value)
            assert occupancy(*needs, device="rtx4090").blocks_per_sm == step.blocks_per_sm


def test_the_curve_over_block_sizes_has_a_step_for_each_number_of_warps() -> None:
    steps = trace_occupancy(occupancy(256, 72, device="h200"), Limiter.WARPS)
    assert [step.last for step in steps] == list(range(32, 1025, 32))
    assert steps[-1].blocks_per_sm == 0  # 1,024 threads of 72 registers
    assert steps[7].warps_per_sm == 24
    with pytest.raises(ArgumentError, match="fixed limit"):
        trace_occupancy(occupancy(256, 72, device="h200"), Limiter.BLOCKS)


@pytest.mark.parametrize("resource", [Limiter.REGISTERS, Limiter.SHARED])
def test_the_nearest_cliffs_are_the_neighbours_on_the_curve(resource: Limiter) -> None:
    generator = np.random.default_rng(11)
    for _ in range(12):
        at = occupancy(
            int(generator.integers(1, 257)), int(generator.integers(1, 129)), int(generator.integers(100_000))
        )
        curve = trace_occupancy(at, resource)
        value = at.registers_per_thread if resource is Limiter.REGISTERS else at.shared_bytes_per_block
        here = next(place for place, step in enumerate(curve) if step.first <= value <= step.last)
        found = find_cliffs(at, resource)
        assert found.gain == (curve[here - 1] if here else None)
        assert found.loss == (curve[here + 1] if here + 1 < len(curve) else None)


def test_numbers_of_numpy_are_whole_numbers() -> None:
    numbers: list[Any] = [np.int16(1024), np.uint8(60), np.int64(1000)]
    found = occupancy(*numbers, device="h200")
    assert found == occupancy(1024, 60, 1000, device="h200")


def test_curves_hold_at_the_carve_out_that_was_asked_for() -> None:
    at = occupancy(256, 32, 20 * 1024, device="h200", preferred_carveout_pct=0)
    assert at.blocks_per_sm == 1
    for resource, here in ((Limiter.REGISTERS, 32), (Limiter.SHARED, 20 * 1024)):
        (step,) = (step for step in trace_occupancy(at, resource) if step.first <= here <= step.last)
        assert step.blocks_per_sm == 1
