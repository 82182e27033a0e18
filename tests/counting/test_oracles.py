"""Every vectorised rule equals a formulation in plain Python, one warp at a time, over random addresses and masks."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from sectorwise.counting.count import count_requests
from sectorwise.counting.request import Access, Counts, Operation, Requests, Space

Warp = tuple[list[int], list[bool]]


@st.composite
def warps(draw: st.DrawFn, width: int, span: int = 64) -> list[Warp]:
    """Rows of 32 aligned addresses: scattered, strided or pairwise equal, with masks from full to empty."""
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        match draw(st.sampled_from(["scattered", "strided", "paired"])):
            case "scattered":
                units = draw(st.lists(st.integers(0, span), min_size=32, max_size=32))
            case "strided":
                start, stride = draw(st.integers(0, span)), draw(st.integers(0, 40))
                units = [start + lane * stride for lane in range(32)]
            case _:
                half = draw(st.lists(st.integers(0, span), min_size=16, max_size=16))
                distance = draw(st.sampled_from([1, 2]))
                units = [half[lane // 2 if distance == 1 else (lane // 4 * 2 + lane % 2)] for lane in range(32)]
        mask = draw(st.one_of(st.just([True] * 32), st.lists(st.booleans(), min_size=32, max_size=32)))
        rows.append(([unit * width for unit in units], mask))
    return rows


def counted(
    rows: list[Warp], space: Space, operation: Operation, width: int, modifiers: tuple[str, ...] = (), matrices: int = 0
) -> Counts:
    access = Access(space, operation, width, "TEST", modifiers, matrices)
    addresses = np.array([row[0] for row in rows], dtype=np.int64)
    return count_requests(Requests(access, addresses, np.array([row[1] for row in rows])))


def active(row: Warp) -> list[int]:
    return [address for address, on in zip(*row, strict=True) if on]


def passes(addresses: list[int], width: int) -> int:
    """The most distinct words in one bank, word by word."""
    banks: dict[int, set[int]] = defaultdict(set)
    for address in addresses:
        for byte in range(address, address + width):
            banks[byte // 4 % 32].add(byte // 4)
    return max((len(words) for words in banks.values()), default=0)


def split(row: Warp, lanes: int) -> list[Warp]:
    return [(row[0][k : k + lanes], row[1][k : k + lanes]) for k in range(0, 32, lanes)]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_global_counts_are_sets_of_blocks(data: st.DataObject, width: int) -> None:
    rows = data.draw(warps(width))
    counts = counted(rows, Space.GLOBAL, Operation.LOAD, width)
    for k, row in enumerate(rows):
        touched = {byte for address in active(row) for byte in range(address, address + width)}
        sectors = len({byte // 32 for byte in touched})
        assert counts.sectors[k] == sectors
        assert counts.tag_requests[k] == len({byte // 128 for byte in touched})
        assert counts.sectors_ideal[k] == min(sectors, -(-len(active(row)) * width // 32))
        assert counts.wavefronts[k] == counts.wavefronts_hardware[k] == counts.sectors_local[k] == 0


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4, 8, 16]))
def test_local_sectors_interleave_lanes_by_words(data: st.DataObject, width: int) -> None:
    rows = data.draw(warps(width))
    counts = counted(rows, Space.LOCAL, Operation.STORE, width)
    for k, row in enumerate(rows):
        blocks = {
            (byte // 4, lane * 4 // 32)
            for lane, (address, on) in enumerate(zip(*row, strict=True))
            if on
            for byte in range(address, address + width)
        }
        assert counts.sectors_local[k] == len(blocks)
        assert counts.sectors[k] == counts.tag_requests[k] == 0


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4, 8, 16]))
def test_shared_stores_take_their_passes_one_by_one(data: st.DataObject, width: int) -> None:
    rows = data.draw(warps(width, span=256))
    counts = counted(rows, Space.SHARED, Operation.STORE, width)
    lanes = {8: 16, 16: 8}.get(width, 32)
    for k, row in enumerate(rows):
        assert counts.wavefronts[k] == sum(passes(active(part), width) for part in split(row, lanes))
        ideal = min(int(counts.wavefronts[k]), -(-len(active(row)) * width // 128))
        assert counts.wavefronts_ideal[k] == ideal


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4]))
def test_narrow_shared_loads_cost_distinct_words_of_the_fullest_bank(data: st.DataObject, width: int) -> None:
    rows = data.draw(warps(width, span=256))
    counts = counted(rows, Space.SHARED, Operation.LOAD, width)
    for k, row in enumerate(rows):
        assert counts.wavefronts[k] == counts.wavefronts_hardware[k] == passes(active(row), width)


def pair_up(row: Warp, lanes: range, *, inactive_differs: bool = False) -> bool:
    """Whether every lane equals its neighbour i^1, or every lane its neighbour i^2."""
    addresses, mask = row

    def equal(left: int, right: int) -> bool:
        if mask[left] != mask[right]:
            return not inactive_differs
        return not mask[left] or addresses[left] == addresses[right]

    return any(all(equal(lane, lane ^ distance) for lane in lanes) for distance in (1, 2))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_eight_byte_loads_merge_where_nothing_conflicts(data: st.DataObject) -> None:
    rows = data.draw(warps(8, span=40))
    counts = counted(rows, Space.SHARED, Operation.LOAD, 8)
    for k, row in enumerate(rows):
        apart = sum(passes(active(part), 8) for part in split(row, 16))
        together = passes(active(row), 8)
        merges = pair_up(row, range(32))
        assert counts.wavefronts_hardware[k] == (together if merges else apart)
        assert counts.wavefronts[k] == (together if merges and together <= 1 else apart)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_sixteen_byte_loads_merge_by_half_warps(data: st.DataObject) -> None:
    rows = data.draw(warps(16, span=20))
    counts = counted(rows, Space.SHARED, Operation.LOAD, 16)
    for k, row in enumerate(rows):
        quarters = [passes(active(part), 16) for part in split(row, 8)]
        halves = [passes(active(part), 16) for part in split(row, 16)]
        assert counts.wavefronts_hardware[k] == sum(halves if pair_up(row, range(32)) else quarters)
        lower = pair_up(row, range(16), inactive_differs=True) or not row[1][31]
        upper = pair_up(row, range(16, 32))
        expected = halves[0] if lower and halves[0] <= 1 else sum(quarters[:2])
        expected += halves[1] if upper and halves[1] <= 1 else sum(quarters[2:])
        assert counts.wavefronts[k] == expected


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([4, 8]))
def test_compare_and_swap_passes_twice_and_loops_take_two_passes(data: st.DataObject, width: int) -> None:
    rows = data.draw(warps(width, span=96))
    swap = counted(rows, Space.SHARED, Operation.ATOMIC, width, ("CAS",))
    exchange = counted(rows, Space.SHARED, Operation.ATOMIC, width, ("EXCH",))
    attempt = counted(rows, Space.SHARED, Operation.ATOMIC, width, ("CAST", "SPIN"))
    for k, row in enumerate(rows):
        serial = 0
        for part in split(row, 128 // width):
            places = [address // width % (128 // width) for address in active(part)]
            serial += max((places.count(place) for place in places), default=0)
        assert exchange.wavefronts[k] == serial
        assert swap.wavefronts[k] == 2 * serial
        assert attempt.wavefronts[k] == 2 * sum(bool(active(part)) for part in split(row, 128 // width))
        assert swap.wavefronts_ideal[k] == min(2 * serial, 2 * -(-len(active(row)) * width // 128))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([4, 8, 16]))
def test_copies_through_l1_cost_their_most_disturbed_lane(data: st.DataObject, width: int) -> None:
    sources, targets = data.draw(warps(width, span=200)), data.draw(warps(width, span=200))
    count = min(len(sources), len(targets))
    access = Access(Space.GLOBAL, Operation.ASYNC_COPY, width, "LDGSTS", ("E",))
    counts = count_requests(Requests(access, *arrays(sources, count), arrays(targets, count)[0]))
    group = 128 // width
    for k in range(count):
        mask, cost = sources[k][1], 0
        for first in range(0, 32, group):
            lanes = [lane for lane in range(first, first + group) if mask[lane]]
            read = {lane: sources[k][0][lane] // width % group for lane in lanes}
            written = {lane: targets[k][0][lane] // width % group for lane in lanes}
            met = [sum(read[a] == read[b] or written[a] == written[b] for b in lanes) for a in lanes]
            cost += max(met, default=0)
        assert counts.wavefronts[k] == cost
        assert counts.sectors[k] == len({address // 32 for address in active(sources[k])})


def arrays(rows: list[Warp], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    return np.array([row[0] for row in rows[:count]]), np.array([row[1] for row in rows[:count]])


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4]))
def test_matrix_loads_take_one_group_of_eight_rows_a_matrix(data: st.DataObject, matrices: int) -> None:
    rows = data.draw(warps(16, span=256))
    counts = counted(rows, Space.SHARED, Operation.MATRIX_LOAD, 16, matrices=matrices)
    for k, row in enumerate(rows):
        groups = split(row, 8)[:matrices]
        assert counts.wavefronts[k] == sum(passes(active(group), 16) for group in groups)
        addressed = sum(len(active(group)) for group in groups)
        assert counts.wavefronts_ideal[k] == min(int(counts.wavefronts[k]), -(-addressed * 16 // 128))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_shared_atomics_serialise_lanes_of_a_bank_but_counts_of_lanes_do_not(data: st.DataObject) -> None:
    rows = data.draw(warps(4, span=96))
    adding = counted(rows, Space.SHARED, Operation.ATOMIC, 4, ("ADD",))
    counting = counted(rows, Space.SHARED, Operation.ATOMIC, 4, ("POPC", "INC", "32"))
    for k, row in enumerate(rows):
        banks = [address // 4 % 32 for address in active(row)]
        assert adding.wavefronts[k] == max((banks.count(bank) for bank in banks), default=0)
        assert counting.wavefronts[k] == passes(active(row), 4)
