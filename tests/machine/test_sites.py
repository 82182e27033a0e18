from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.counting.count import count_requests
from sectorwise.counting.request import Access, Operation, Requests, Space
from sectorwise.machine import sites
from sectorwise.machine.execution import Certainty
from sectorwise.machine.sites import Patterns, SiteCounter, close_site, record, record_silent

LOAD = Access(Space.GLOBAL, Operation.LOAD, 4, "LDG", ("E",))
SHARED = Access(Space.SHARED, Operation.LOAD, 16, "LDS", ("128",))
COPY = Access(Space.GLOBAL, Operation.ASYNC_COPY, 16, "LDGSTS", ("E", "128"))
GENERIC = Access(Space.GENERIC, Operation.LOAD, 4, "LD", ("E",))
FIELDS = ("sectors", "sectors_ideal", "tag_requests", "wavefronts", "wavefronts_ideal", "wavefronts_hardware")


def _each_by_itself(access: Access, patterns: Patterns) -> dict[str, int]:
    """Counts of every request, without looking for likeness."""

    def full(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else np.array(np.broadcast_to(array, (patterns.warps, 32)))

    mask = np.ones((patterns.warps, 32), np.bool_) if patterns.active is None else patterns.active
    addresses = full(patterns.primary)
    assert addresses is not None
    requests = Requests(
        access, addresses, mask, full(patterns.secondary), full(patterns.source_bytes), full(patterns.generic_spaces)
    )
    counts = count_requests(requests)
    return {name: int(getattr(counts, name).sum()) for name in (*FIELDS, "sectors_local")}


def _check(access: Access, patterns: Patterns) -> SiteCounter:
    counter = SiteCounter(3, access)
    record(counter, patterns)
    site = close_site(counter, None)
    assert {name: getattr(site, name) for name in (*FIELDS, "sectors_local")} == _each_by_itself(access, patterns)
    assert site.executed == patterns.issuing
    lanes = patterns.warps * 32 if patterns.active is None else int(patterns.active.sum())
    assert site.lanes == lanes
    return counter


def _patterns(seed: int, warps: int, spread: int, *, masked: float = 0, width: int = 4) -> Patterns:
    random = np.random.default_rng(seed)
    kinds = random.integers(0, spread, (4, 32)) * width
    addresses = (1 << 33) + kinds[random.integers(0, 4, warps)] + random.integers(0, 64, (warps, 1)) * width
    active = random.random((warps, 32)) < random.choice([0.0, 0.5, 0.9], (warps, 1)) if masked else None
    return Patterns(warps, warps, addresses.astype(np.int64), active)


@given(st.integers(0, 1 << 30), st.integers(1, 200), st.sampled_from([2, 40, 100_000]), st.sampled_from([0.0, 1.0]))
def test_likeness_changes_no_count(seed: int, warps: int, spread: int, masked: float) -> None:
    _check(LOAD, _patterns(seed, warps, spread, masked=masked))
    _check(SHARED, _patterns(seed, warps, spread % 512 + 1, masked=masked, width=16))


@given(st.integers(0, 1 << 30), st.integers(1, 100), st.sampled_from([0.0, 1.0]))
def test_async_copies_depend_on_both_addresses_and_on_size(seed: int, warps: int, masked: float) -> None:
    source = _patterns(seed, warps, 64, masked=masked, width=16)
    target = _patterns(seed + 1, warps, 64, masked=False, width=16)
    sizes = np.random.default_rng(seed).integers(0, 2, (warps, 32)) * 16
    shared = (target.primary & 0xFFFF).astype(np.int64)
    _check(COPY, Patterns(warps, warps, source.primary, source.active, shared, sizes))


@given(st.integers(0, 1 << 30), st.integers(1, 100))
def test_generic_accesses_depend_on_the_space_of_each_lane(seed: int, warps: int) -> None:
    plain = _patterns(seed, warps, 300, masked=True)
    spaces = np.random.default_rng(seed).integers(0, 3, (warps, 32)).astype(np.int8)
    _check(GENERIC, Patterns(warps, warps, plain.primary, plain.active, generic_spaces=spaces))


@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (1, 32)])
def test_addresses_that_are_alike_need_no_full_array(shape: tuple[int, int]) -> None:
    addresses = (np.arange(shape[0] * shape[1]) * 36).reshape(shape) + 4096
    _check(LOAD, Patterns(7, 7, addresses))
    active = np.tile(np.arange(32) % 3 == 1, (7, 1))
    _check(LOAD, Patterns(7, 7, addresses, active))


def test_warps_that_do_not_issue_are_not_counted() -> None:
    active = np.zeros((5, 32), np.bool_)
    active[2] = True
    counter = SiteCounter(0, LOAD)
    record(counter, Patterns(5, 1, np.arange(32)[None, :] * 4, active))
    record_silent(counter, 2)
    site = close_site(counter, None)
    assert (site.executed, site.lanes, site.sectors, site.certainty) == (3, 32, 4, Certainty.EXACT)


def test_memo_gives_what_counting_gives() -> None:
    patterns = _patterns(7, 50, 40, masked=True)
    counter = _check(LOAD, patterns)
    once = counter.sums.copy()
    assert counter.memo
    record(counter, patterns)
    np.testing.assert_array_equal(counter.sums, 2 * once)


def test_a_hash_collision_cannot_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "HASH_FACTORS", np.zeros_like(sites.HASH_FACTORS))
    _check(LOAD, _patterns(11, 120, 100_000, masked=True))


def test_memo_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "_MEMO_LIMIT", 8)
    counter = SiteCounter(0, LOAD)
    expected = 0
    for seed in range(40):
        patterns = _patterns(seed, 6, 100_000, masked=False)
        record(counter, patterns)
        expected += _each_by_itself(LOAD, patterns)["sectors"]
    assert counter.sums[0] == expected
    assert len(counter.memo) <= 8 + 6
