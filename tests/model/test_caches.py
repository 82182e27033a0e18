from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sectorwise.binary.cubin import read_cubin
from sectorwise.model.caches.batches import find_depths
from sectorwise.model.caches.contention import NO_CONTENTION
from sectorwise.model.caches.l1 import L1Setup, simulate_l1
from sectorwise.model.caches.l2 import simulate_l2
from sectorwise.model.caches.lines import Lines, Role, fold_requests, hash_lines, read_hint
from sectorwise.model.caches.placement import place_blocks
from sectorwise.model.caches.sets import ALL_WORDS
from sectorwise.model.caches.storage import L2Setup
from sectorwise.model.caches.window import Window, shift_lines

H200 = (8, 18, 8, 16, 16, 16, 16, 16, 18)

SMS_OF_GROUPS = (
    (124, 125, 126, 127, 128, 129, 130, 131),
    (14, 15, 30, 31, 46, 47, 62, 63, 76, 77, 90, 91, 104, 105, 118, 119, 122, 123),
    (0, 1, 16, 17, 32, 33, 48, 49),
    (2, 3, 18, 19, 34, 35, 50, 51, 64, 65, 78, 79, 92, 93, 106, 107),
    (4, 5, 20, 21, 36, 37, 52, 53, 66, 67, 80, 81, 94, 95, 108, 109),
    (6, 7, 22, 23, 38, 39, 54, 55, 68, 69, 82, 83, 96, 97, 110, 111),
    (8, 9, 24, 25, 40, 41, 56, 57, 70, 71, 84, 85, 98, 99, 112, 113),
    (10, 11, 26, 27, 42, 43, 58, 59, 72, 73, 86, 87, 100, 101, 114, 115),
    (12, 13, 28, 29, 44, 45, 60, 61, 74, 75, 88, 89, 102, 103, 116, 117, 120, 121),
)
"""The numbers that the SMs of each group call themselves by."""

SETUP = L2Setup(
    size_bytes=1 << 20,
    halves=2,
    ways=16,
    proven_ways=12,
    merge_share=1.0,
    merge_most=4,
    fetch_bytes=64,
    hints={},
    l1_lifetimes_ticks=(),
)
LOADS = {0: Role.CACHED_LOAD}


def make_window(line: list[int], *, block: list[int] | None = None, sectors: int = 15, instruction: int = 0) -> Window:
    """Blocks of one warp that touch these lines one after the other."""
    owner = np.array(block if block is not None else [0] * len(line), np.int32)
    position = np.array([int((owner[:place] == who).sum()) for place, who in enumerate(owner)], np.int32)
    count = int(owner.max()) + 1
    lines = Lines(
        first_block=0,
        block=owner,
        warp=np.zeros(len(line), np.int16),
        position=position,
        instruction=np.full(len(line), instruction, np.int32),
        line=np.array(line, np.int64),
        sectors=np.full(len(line), sectors, np.uint8),
        words=np.full(len(line), ALL_WORDS, np.uint32),
        positions=np.array([int((owner == who).sum()) for who in range(count)], np.int32),
        passes={},
        contention=NO_CONTENTION,
        complete=True,
    )
    return Window(count, lines, np.zeros(1, np.int64))


@given(
    st.integers(1, 6),
    st.sampled_from([4, 8, 32, 100, 128, 4096]),
    st.integers(0, 1 << 20),
    st.sampled_from(["strided", "scattered"]),
    st.integers(0, 1 << 30),
)
def test_lines_and_sectors_are_those_of_brute_force(warps: int, pitch: int, base: int, kind: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    if kind == "strided":
        addresses = base + pitch * np.arange(32)[None, :] + 128 * np.arange(warps)[:, None]
    else:
        addresses = base + generator.integers(0, 1 << 14, (warps, 32))
    active = generator.random((warps, 32)) < generator.choice([0.2, 0.9, 1.1])
    if not active.any():
        return
    row, line, sectors = fold_requests(addresses.astype(np.int64), active)
    expected = []
    for warp in range(warps):
        touched: dict[int, int] = {}
        for address in addresses[warp][active[warp]].tolist():
            touched[address // 128] = touched.get(address // 128, 0) | 1 << address // 32 % 4
        expected += [(warp, each, touched[each]) for each in sorted(touched)]
    assert list(zip(row.tolist(), line.tolist(), sectors.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 15)), min_size=1, max_size=20), st.integers(0, 9))
def test_shifted_lines_touch_the_same_sectors_further_on(pairs: list[tuple[int, int]], shift: int) -> None:
    window = make_window([line for line, _ in pairs])
    lines = replace(window.lines, sectors=np.array([bits for _, bits in pairs], np.uint8))
    moved = shift_lines(lines, np.full(len(pairs), shift, np.int64))

    def name_sectors(some: Lines) -> list[tuple[int, int]]:
        return sorted(
            (position, 4 * line + bit)
            for position, line, bits in zip(
                some.position.tolist(), some.line.tolist(), some.sectors.tolist(), strict=True
            )
            for bit in range(4)
            if bits >> bit & 1
        )

    assert name_sectors(moved) == [(position, sector + shift) for position, sector in name_sectors(lines)]


def make_l1(roles: dict[int, Role], depth: int = 0) -> L1Setup:
    return L1Setup(1 << 17, 16, roles, {0: depth})


@pytest.mark.parametrize(("depth", "late"), [(0, 2), (1, 3), (2, 4), (3, 4)])
def test_a_line_that_is_on_its_way_hits_and_is_waited_for(depth: int, late: int) -> None:
    """A warp asks for one line at three times in a row, after it had asked for another: who goes on without waiting
    for the first of them waits with it."""
    window = make_window([5, 7, 7, 7])
    found = simulate_l1(window, place_blocks(window.measure_blocks(), 1, (1,)), make_l1(LOADS, depth))
    assert (found.asked[0], found.hit[0]) == (16, 8)
    assert (found.late[0], found.waiting[0]) == ((late, 4), (late, 4))
    assert found.late_shares(0) == found.late_shares(99) == (late / 4, late / 4)


def test_loads_that_nobody_waits_between_are_a_batch() -> None:
    """The seventeen loads of a filter go out one after the other, before the first sum; the store is no load."""
    path = Path(__file__).parents[1] / "measured" / "corpus" / "image.sm_90.cubin"
    (kernel,) = [each for each in read_cubin(path.read_bytes(), path.name).kernels if each.name == "blur_rows"]
    depths = find_depths(kernel.instructions)
    loads = [depths[each.index] for each in kernel.instructions if each.opcode == "LDG"]
    assert loads == list(range(17))
    assert [depths[each.index] for each in kernel.instructions if each.opcode == "STG"] == [0]


def test_a_request_waits_for_any_of_its_lines() -> None:
    window = make_window([1, 2, 1, 2, 3])
    lines = replace(window.lines, position=np.array([0, 0, 1, 1, 1], np.int32))
    window = replace(window, lines=lines)
    found = simulate_l1(window, place_blocks(window.measure_blocks(), 1, (1,)), make_l1(LOADS))
    assert (found.late[0], found.waiting[0]) == ((3, 5), (2, 2))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200), st.sampled_from([4, 8, 16]))
def test_a_fully_associative_l1_forgets_the_least_recently_used(line: list[int], capacity: int) -> None:
    window = make_window(line)
    found = simulate_l1(
        window, place_blocks(window.measure_blocks(), 1, (1,)), L1Setup(capacity * 128, capacity, LOADS, {0: 0})
    )
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for each in line:
        hits += 4 * (each in cache)
        cache[each] = None
        cache.move_to_end(each)
        if len(cache) > capacity:
            cache.popitem(last=False)
    assert (found.asked[0], found.hit[0]) == (4 * len(line), hits)


def test_only_the_missing_sectors_are_brought() -> None:
    window = make_window([7, 7])
    lines = replace(window.lines, sectors=np.array([0b0011, 0b1111], np.uint8))
    window = Window(1, lines, window.issued)
    found = simulate_l1(window, place_blocks(window.measure_blocks(), 1, (1,)), make_l1(LOADS))
    assert (found.asked[0], found.hit[0]) == (6, 2)


def test_a_load_around_l1_never_hits_there() -> None:
    window = make_window([7, 7, 7])
    placement = place_blocks(window.measure_blocks(), 1, (1,))
    found = simulate_l1(window, placement, make_l1({0: Role.BYPASSING_LOAD}))
    assert found.hit_share(0) == 0
    flow = simulate_l2(window, placement, {0: Role.BYPASSING_LOAD}, SETUP)
    assert (flow.first.filled.get(0, 0) + flow.second.filled.get(0, 0), flow.first.dram_read) == (12, {0: 4})


def test_a_lone_sector_brings_its_neighbour_from_dram() -> None:
    for fetch_bytes, sectors_read in ((32, 1), (64, 2), (128, 4)):
        window = make_window([3], sectors=0b0100)
        placement = place_blocks(window.measure_blocks(), 1, H200)
        found = simulate_l2(window, placement, LOADS, replace(SETUP, fetch_bytes=fetch_bytes))
        assert found.first.dram_read == {0: sectors_read}


def test_hints_bring_more_than_the_sector_that_is_missing() -> None:
    """`LTC256B` on a request of one sector: two lines from DRAM, and two requests more at the L2 (k_pref_256b)."""
    window = make_window([10], sectors=0b0001)
    placement = place_blocks(window.measure_blocks(), 1, H200)
    for modifiers, read, fetched in (((), 1, 2), (("LTC64B",), 1, 2), (("LTC128B",), 1, 4), (("LTC256B",), 3, 8)):
        hint = read_hint(("E", *modifiers))
        found = simulate_l2(window, placement, LOADS, replace(SETUP, hints={0: hint} if hint else {}))
        assert (found.first.read, found.first.dram_read) == ({0: read}, {0: fetched})


def test_lines_that_are_to_leave_first_leave_others_in_the_l2() -> None:
    """A stream between two uses of a few lines pushes them out, unless its loads say that it is not used again."""
    line = [*range(256), *range(10_000, 30_000), *range(256)]
    window = make_window(line)
    instruction = np.array([0] * 256 + [1] * 20_000 + [0] * 256, np.int32)
    window = Window(1, replace(window.lines, instruction=instruction), window.issued)
    placement = place_blocks(window.measure_blocks(), 1, (1,))
    roles = {0: Role.BYPASSING_LOAD, 1: Role.BYPASSING_LOAD}
    hint = read_hint(("E", "EF"))
    assert hint is not None
    plain = simulate_l2(window, placement, roles, SETUP)
    hinted = simulate_l2(window, placement, roles, replace(SETUP, hints={1: hint}))
    assert plain.first.dram_read[0] == 2 * 4 * 256
    assert hinted.first.dram_read[0] == 4 * 256


def test_sms_of_one_group_share_a_request_four_at_a_time() -> None:
    """64 blocks, one an SM, that load the same line at once: 17 requests where none is late (17 or 18 measured)."""
    window = make_window([5] * 64, block=list(range(64)))
    placement = place_blocks(window.measure_blocks(), 1, H200)
    found = simulate_l2(window, placement, LOADS, SETUP)
    assert found.first.read[0] + found.second.read[0] == 4 * 17
    assert found.first.filled[0] + found.second.filled[0] == 4 * 64
    assert found.first.dram_read == {0: 4}
    assert found.second.dram_read == {}
    apart = replace(SETUP, merge_share=0.0)
    coming = simulate_l2(window, placement, LOADS, apart)
    assert coming.first.read[0] + coming.second.read[0] == 4 * 17  # DRAM is slower than they are apart
    there = simulate_l2(window, placement, LOADS, apart, warmed_by=0.0)
    assert there.first.read[0] + there.second.read[0] == 4 * 64


def test_half_of_what_one_sm_each_reads_crosses_between_the_halves() -> None:
    lines = list(range(4096))
    window = make_window(lines, block=[line % 132 for line in lines])
    placement = place_blocks(window.measure_blocks(), 1, H200)
    found = simulate_l2(window, placement, LOADS, replace(SETUP, size_bytes=1 << 24))
    crossed = found.first.crossed[0] + found.second.crossed[0]
    assert crossed == pytest.approx(2 * 4096, rel=0.05)


def test_a_second_pass_comes_from_the_l2_where_it_fits_and_from_dram_where_it_does_not() -> None:
    def read_twice(lines: int) -> float:
        window = make_window([*range(lines), *range(lines)])
        placement = place_blocks(window.measure_blocks(), 1, (1,))
        found = simulate_l2(window, placement, {0: Role.BYPASSING_LOAD}, SETUP)
        return found.first.dram_read[0] / 4 / lines

    assert read_twice(1024) == pytest.approx(1, rel=0.01)  # of 8,192 lines, some in both halves
    assert read_twice(16384) > 1.9


def test_of_blocks_that_run_at_once_each_brings_what_the_ones_before_it_do_not_touch() -> None:
    """A window of nine lines that moves on by one a block: the second half of the blocks brings a line each.

    In time it is the other way round where all run at once, and each begins with its last line.
    """
    blocks = 64
    block = [each for _ in range(9) for each in range(blocks)]
    window = make_window([each + 8 - step for step in range(9) for each in range(blocks)], block=block)
    placement = place_blocks(window.measure_blocks(), 1, H200)
    assert len(set(placement.sm.tolist())) == blocks
    found = simulate_l2(window, placement, {0: Role.BYPASSING_LOAD}, SETUP)
    assert (found.first.dram_read[0], found.second.dram_read[0]) == (4 * (blocks // 2 + 8), 4 * blocks // 2)


def test_stores_stay_dirty_until_they_are_pushed_out() -> None:
    window = make_window(list(range(1000)))
    placement = place_blocks(window.measure_blocks(), 1, H200)
    small = simulate_l2(window, placement, {0: Role.STORE}, SETUP)
    assert (small.first.dram_written, small.dirty_sectors) == (0, 4000)
    window = make_window(list(range(20000)))
    large = simulate_l2(window, place_blocks(window.measure_blocks(), 1, H200), {0: Role.STORE}, SETUP)
    assert large.first.dram_written + large.dirty_sectors == 80000
    assert large.dirty_sectors == pytest.approx(4 * 8192, rel=0.02)


def test_the_order_of_blocks_matters() -> None:
    """Sixteen blocks that share lines by fours: neighbours on one SM reuse them, strangers do not."""
    apart = [block % 4 for block in range(16)]
    together = [block // 4 for block in range(16)]

    def count_hits(group: list[int]) -> float:
        line = [100 * group[block] + step for step in range(8) for block in range(16)]
        window = make_window(line, block=[block for _ in range(8) for block in range(16)])
        placement = place_blocks(window.measure_blocks(), 4, (4,))
        return simulate_l1(window, placement, make_l1(LOADS)).hit[0]

    assert count_hits(apart) == 4 * 8 * 12
    assert count_hits(together) < count_hits(apart)


def test_blocks_go_round_the_sms_and_replace_those_that_end() -> None:
    placement = place_blocks(np.full(400, 10, np.int64), 2, H200)
    assert (np.bincount(placement.sm[:264], minlength=132) == 2).all()
    assert (placement.start[:264] == 0).all()
    assert (placement.start[264:] >= 10).all()


def test_blocks_are_dealt_as_an_h200_deals_them() -> None:
    """3,168 blocks, eight an SM, and 528, one an SM: the first of each SM, group by group, as the GPU's blocks said."""
    recorded = json.loads((Path(__file__).parents[1] / "measured" / "device" / "calibrate.json").read_text())
    group_of = {sm: number for number, group in enumerate(SMS_OF_GROUPS) for sm in group}
    for kind, blocks_per_sm in ((0, 1), (1, 8), (2, 8)):
        first = 132 * blocks_per_sm
        ran_on = [group_of[sm] for sm in recorded["block_sm"][kind][:first]]
        placement = place_blocks(np.full(first, 10, np.int64), blocks_per_sm, H200)
        placed = placement.group[placement.sm].tolist()
        if blocks_per_sm == 1:
            # Which of the others begins differs from launch to launch.
            begin = ran_on.index(1)
            ran_on = [*ran_on[:8], *ran_on[begin:], *ran_on[8:begin]]
        assert placed == ran_on


def test_hashes_spread_neighbouring_lines() -> None:
    counts = np.bincount(hash_lines(np.arange(1 << 14)) % 64, minlength=64)
    assert counts.min() > 0.7 * counts.mean()
    assert counts.max() < 1.3 * counts.mean()
