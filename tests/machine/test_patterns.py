"""The patterns that a site keeps for findings: real shapes, with how often they came, and the first real request."""

from __future__ import annotations

import numpy as np

from sectorwise.counting.request import Access, Operation, Space
from sectorwise.machine.sites import Patterns, SiteCounter, close_site, find_first, record

LOAD = Access(Space.GLOBAL, Operation.LOAD, 4, "LDG")
BASE = 0x7F00_0000_1000


def test_patterns_have_their_multiplicity_and_the_dearest_comes_first() -> None:
    counter = SiteCounter(0, LOAD)
    lanes = np.arange(32)
    steps = np.array([4, 4, 128, 4, 8])
    record(counter, Patterns(5, 5, BASE + steps[:, None] * lanes + 256 * np.arange(5)[:, None]))
    site = close_site(counter, None)
    found = [(each.addresses[1] - each.addresses[0], each.times, each.sectors) for each in site.patterns]
    assert found == [(128, 1, 32), (8, 1, 8), (4, 3, 4)]
    assert {each.mask for each in site.patterns} == {(1 << 32) - 1}
    assert sum(each.times * each.sectors for each in site.patterns) == site.sectors


def test_dear_patterns_outlive_cheap_ones() -> None:
    counter = SiteCounter(0, LOAD)
    lanes = np.arange(32)
    for shift in range(40):
        record(counter, Patterns(1, 1, (BASE + 4 * shift + 4 * lanes)[None]))
    record(counter, Patterns(1, 1, (BASE + 512 * lanes)[None]))
    site = close_site(counter, None)
    assert site.patterns[0].sectors == 32
    assert site.patterns[0].addresses[31] - site.patterns[0].addresses[0] == 512 * 31


def test_first_request_has_real_addresses() -> None:
    addresses = BASE + 4 * np.arange(96).reshape(3, 32)
    active = np.zeros((3, 32), np.bool_)
    active[1, 3:5] = True
    first = find_first(addresses, active, np.array([4, 6, 9]), np.arange(100, 110))
    assert first is not None
    assert (first.warp, first.mask) == (106, 0b11000)
    assert first.addresses[3:6] == (int(addresses[1, 3]), int(addresses[1, 4]), 0)
    assert find_first(addresses, np.zeros((3, 32), np.bool_), None, np.arange(3)) is None
