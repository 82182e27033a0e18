from __future__ import annotations

import heapq
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.device import load_device
from sectorwise.errors import ArgumentError
from sectorwise.model.occupancy import occupancy
from sectorwise.model.waves import count_waves, schedule_blocks, weigh_blocks

MEASURED = Path(__file__).parents[1] / "measured" / "h200"


def test_the_measured_staircase_is_reproduced() -> None:
    rows = json.loads((MEASURED / "curves.json").read_text())["waves_one_block_per_sm"]
    assert len(rows) == 18
    one_block_ms = next(row["ms"] for row in rows if row["grid"] == 1)
    for row in rows:
        waves = count_waves(row["grid"], 1, 132)
        assert waves.rounds * one_block_ms == pytest.approx(row["ms"], rel=0.05), row


def test_waves_an_sm_equal_the_profilers_on_every_measured_launch() -> None:
    sm_count = load_device("h200").sm_count
    seen = 0
    for path in sorted(MEASURED.glob("*.json")):
        document = json.loads(path.read_text())
        if not isinstance(document, dict) or "cases" not in document:
            continue
        for case in document["cases"]:
            launch = case["measured"]["launch"]
            shared_bytes = launch["shared_static_bytes"] + launch["shared_dynamic_bytes"]
            held = occupancy(math.prod(case["block"]), launch["registers_per_thread"], shared_bytes, device="h200")
            waves = count_waves(math.prod(case["grid"]), held.blocks_per_sm, sm_count)
            assert abs(waves.waves - launch["waves_per_sm"]) <= 0.005 + 1e-9, case["name"]  # recorded to two places
            seen += 1
    assert seen == 389


def test_eight_blocks_of_a_second_wave_double_the_time() -> None:
    waves = count_waves(140, 1, 132)
    assert (waves.rounds, waves.blocks_last_wave, waves.idle_sms_last_wave) == (2, 8, 124)
    assert waves.last_wave_pct == pytest.approx(6.06, abs=0.005)
    assert waves.slowdown_if_latency_bound == pytest.approx(2 / (140 / 132))
    assert schedule_blocks([1.0] * 140, 1, 132).end == 2.0
    assert schedule_blocks([1.0] * 132, 1, 132).end == 1.0


def test_a_full_last_wave_leaves_no_sm_idle() -> None:
    waves = count_waves(132 * 8 * 3, 8, 132)
    assert (waves.waves, waves.rounds, waves.idle_sms_last_wave, waves.last_wave_pct) == (3.0, 3, 0, 100.0)
    assert waves.slowdown_if_latency_bound == waves.slowdown_if_throughput_bound == 1.0


@given(st.integers(1, 5000), st.integers(1, 32), st.integers(1, 200))
def test_equal_blocks_end_when_the_last_round_does(blocks: int, per_sm: int, sm_count: int) -> None:
    waves = count_waves(blocks, per_sm, sm_count)
    timeline = schedule_blocks([3.0] * blocks, per_sm, sm_count)
    assert timeline.end == 3.0 * waves.rounds
    assert timeline.last_start == 3.0 * (waves.rounds - 1)
    assert timeline.busy_fraction == pytest.approx(waves.waves / waves.rounds)
    assert sum(end == timeline.end for end in timeline.ends_of_sms) == min(waves.blocks_last_wave, sm_count)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.integers(1, 4), st.integers(1, 9))
def test_uneven_blocks_follow_the_rule_of_the_first_free_slot(lengths: list[float], per_sm: int, sms: int) -> None:
    free = [0.0] * (per_sm * sms)
    for length in lengths:
        heapq.heapify(free)
        free[0] += length
    timeline = schedule_blocks(lengths, per_sm, sms)
    assert timeline.end == max(free)
    assert timeline.end >= max(*lengths, sum(lengths) / (per_sm * sms)) * (1 - 1e-12)


def test_one_slow_block_at_the_end_sets_the_time() -> None:
    timeline = schedule_blocks([1.0] * 131 + [10.0], 1, 132)
    assert timeline.end == 10.0
    assert timeline.busy_fraction == pytest.approx(141 / 1320)


@pytest.mark.parametrize("counts", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_counts_below_one_are_errors(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ArgumentError, match="must be at least 1"):
        count_waves(*counts)


def test_a_negative_length_names_its_block() -> None:
    with pytest.raises(ArgumentError, match="block 1 has length -2"):
        schedule_blocks([1.0, -2.0], 1, 1)


def test_equal_blocks_are_in_balance() -> None:
    assert weigh_blocks(np.full(500, 3.0), 2, 132) is None
    assert weigh_blocks(np.full(500, np.nan), 2, 132) is None


def test_one_long_block_decides_when_the_launch_ends() -> None:
    lengths = np.full(264, 100.0)
    lengths[-1] = 1000
    found = weigh_blocks(lengths, 2, 132)
    assert found is not None
    mean = (263 * 100 + 1000) / 264
    assert (found.longest_block, found.longest_times) == (263, 1000 / mean)
    assert found.slowdown == pytest.approx(1000 / mean)
    assert found.busy_fraction == pytest.approx(264 * mean / (264 * 1000))


def test_long_blocks_cost_less_when_they_start_first() -> None:
    lengths = np.arange(1.0, 1057.0)
    rising, falling = weigh_blocks(lengths, 1, 132), weigh_blocks(lengths[::-1], 1, 132)
    assert rising is not None
    assert falling is not None
    assert falling.slowdown < rising.slowdown


def test_blocks_that_did_not_run_are_as_long_as_the_nearest_that_did() -> None:
    sampled = np.full(9, np.nan)
    sampled[[0, 4, 8]] = 1, 2, 7
    whole = np.array([1, 1, 1, 2, 2, 2, 2, 7, 7], dtype=np.float64)
    assert weigh_blocks(sampled, 1, 2) == weigh_blocks(whole, 1, 2)
