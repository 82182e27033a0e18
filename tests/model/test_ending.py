"""A launch ends with its slowest warp and its last store; copies are waited for; what is switched off is not."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from sectorwise.binary.cubin import read_cubin
from sectorwise.device import load_device
from sectorwise.model.accesses import average_accesses
from sectorwise.model.concurrency import Leg, estimate_concurrency, estimate_legs
from sectorwise.model.ending import Stretch, find_end
from sectorwise.model.latency import describe_memory
from sectorwise.model.schedule import Access, Schedule, Slot, schedule_instructions
from tests.measured.rows import FOLDER

H200 = load_device("h200")
MEMORY = describe_memory(H200)
LOAD = Slot(1, sets=0, load=Access(128.0))
WAIT = Slot(1, waits_for=(0,))
ONCE = Schedule((LOAD, WAIT), repeats=False)


def test_the_slowest_of_all_warps_is_a_quantile_of_the_latency() -> None:
    """One load a pass, all waited for: how far the slowest is above the mean is what the measured latencies say."""
    found = estimate_concurrency(ONCE, 4, H200)
    cycles = np.asarray(MEMORY.quantiles_ns)
    slowest = float(np.interp(1 - 1 / (4 * 132), MEMORY.probabilities, cycles))
    assert found.slowest_ns == pytest.approx(slowest - MEMORY.mean_ns, rel=0.05)
    wide = replace(ONCE, slots=(replace(LOAD, load=Access(128.0, places=1, dram_share=0.0, l2_share=1.0)), WAIT))
    assert estimate_concurrency(wide, 4, H200).slowest_ns == pytest.approx(0.0, abs=1e-9)


def test_passes_of_a_warp_add_up_as_independent_numbers() -> None:
    walk = estimate_concurrency(ONCE, 4, H200)
    one, hundred = (find_end([Stretch(passes, walk, walk.walk_ns)]) for passes in (1.0, 100.0))
    assert one == pytest.approx(walk.slowest_ns, rel=0.01)
    assert 5 * walk.spread_ns < hundred < 12 * 3.5 * walk.spread_ns + walk.slowest_ns


def test_what_a_pipe_takes_longer_for_hides_the_slowest_warp() -> None:
    walk = estimate_concurrency(ONCE, 4, H200)
    half = find_end([Stretch(1.0, walk, walk.walk_ns + walk.slowest_ns / 2)])
    assert half == pytest.approx(walk.slowest_ns / 2, rel=0.02)
    assert find_end([Stretch(1.0, walk, 2 * (walk.walk_ns + walk.slowest_ns))]) == 0
    assert find_end([]) == 0


def test_warps_that_wait_for_what_others_asked_for_wait_together() -> None:
    own = Schedule((replace(LOAD, load=Access(32.0, dram_share=1.0)), WAIT), repeats=False)
    together = Access(32.0, dram_share=0.0, l2_share=1.0, waiting_share=1.0)
    shared = Schedule((replace(LOAD, load=together), WAIT), repeats=False)
    spread = {name: estimate_concurrency(each, 4, H200).slowest_ns for name, each in (("own", own), ("shared", shared))}
    assert spread["own"] > 300
    assert spread["shared"] == pytest.approx(0.0, abs=1e-9)


COPY = Slot(1, load=Access(128.0), copies=True)
COMMIT = Slot(1, commits=True)


def test_copies_are_waited_for_where_their_group_is() -> None:
    unwaited = Schedule((COPY, COMMIT), repeats=True)
    waited = Schedule((COPY, COMMIT, Slot(1, groups_left=0)), repeats=True)
    one_behind = Schedule((COPY, COMMIT, Slot(1, groups_left=1)), repeats=True)
    passes = {
        name: estimate_concurrency(each, 1, H200).walk_ns
        for name, each in (("un", unwaited), ("all", waited), ("one", one_behind))
    }
    assert passes["un"] < 10
    assert passes["all"] == pytest.approx(MEMORY.mean_ns, rel=0.05)
    # With a group on its way while the next is asked for, a pass takes half the latency, and a little for arriving in
    # order.
    assert MEMORY.mean_ns / 2 < passes["one"] < 0.65 * MEMORY.mean_ns


def test_copies_of_a_measured_kernel_wait_in_its_schedule() -> None:
    path = FOLDER / "cp_async.sm_90.cubin"
    kernel = next(each for each in read_cubin(path.read_bytes(), path.name).kernels if each.name == "k_cpa_ca4_row")
    slots = schedule_instructions(kernel.instructions, {}, repeats=False).slots
    copies, commits, waits = (
        [each for each in slots if test(each)] for test in (is_copy, commits_group, waits_for_all)
    )
    assert len(copies) == 1
    assert (len(commits), len(waits)) == (2, 2)  # its own, and those in the end


def is_copy(slot: Slot) -> bool:
    return slot.copies and slot.load is not None


def commits_group(slot: Slot) -> bool:
    return slot.commits


def waits_for_all(slot: Slot) -> bool:
    return slot.groups_left == 0


def test_what_moves_nothing_is_not_waited_for() -> None:
    idle = average_accesses((), None, [7])[7]
    schedule = Schedule((replace(LOAD, load=idle), WAIT), repeats=True)
    assert estimate_concurrency(schedule, 1, H200).walk_ns == pytest.approx(MEMORY.l1_hit_ns, abs=2)
    assert schedule.dram_bytes == schedule.load_bytes == 0


def test_out_of_step_all_legs_meet_one_memory() -> None:
    """A leg that loads much and one that computes: alone the first fills the memory, together both take turns."""
    loads = Leg(Schedule(tuple([replace(LOAD, load=Access(512.0))] * 8 + [WAIT]), repeats=True), 1.0)
    works = Leg(Schedule((Slot(4000),), repeats=True), 1.0)
    alone = estimate_legs([loads], 32, H200, warps_per_block=8, sm_count=132)[0]
    first, second = estimate_legs([loads, works], 32, H200, warps_per_block=8, sm_count=132)
    assert first.pass_ns < alone.pass_ns
    assert first.memory_busy == second.memory_busy < alone.memory_busy
    moved = 132 * 32 * loads.schedule.dram_bytes / (first.pass_ns + second.pass_ns)
    assert moved == pytest.approx(first.memory_busy * MEMORY.ceiling_gbs, rel=0.01)


def test_the_far_half_of_the_l2_is_further() -> None:
    assert pytest.approx(500 / 1.98) == MEMORY.l2_far_ns
    assert MEMORY.l2_far_ns > MEMORY.l2_hit_ns
    whole = describe_memory(load_device("rtx4090"))
    assert whole.l2_far_ns == whole.l2_hit_ns
