from __future__ import annotations

import numpy as np
import pytest

from sectorwise.counting.request import Access, Operation, Space
from sectorwise.machine import site_rows
from sectorwise.machine.site_rows import record_rows
from sectorwise.machine.sites import HASH_FACTORS, Parts, Patterns, SiteCounter, close_site, record

LOAD = Access(Space.GLOBAL, Operation.LOAD, 4, "LDG", ("E",))


@pytest.mark.parametrize("factors", [HASH_FACTORS, np.zeros_like(HASH_FACTORS)], ids=["hashes", "all collide"])
def test_rows_of_many_sites_are_counted_as_each_site_by_itself(
    factors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_rows, "HASH_FACTORS", factors)
    generator = np.random.default_rng(5)
    rows, owners = 400, generator.choice([3, 6, 9, 12], 400)
    lanes = 4 * generator.integers(0, 40, (rows, 32))
    lanes[100:] = lanes[generator.integers(0, 100, 300)]  # some come again, with the same owner or another
    active = generator.random((rows, 32)) < generator.choice([0.1, 1.0], (rows, 1))
    active[:, 0] = True
    times = generator.integers(1, 5, rows)
    masks = np.packbits(active, axis=1, bitorder="little").view("<u4").astype(np.int64)
    place = lanes[:, :1] & 127
    keys = np.concatenate([masks, np.where(active, lanes - lanes[:, :1], 0), place], axis=1)
    together = {number: SiteCounter(number, LOAD) for number in (3, 6, 9, 12)}
    record_rows(together, owners, keys, Parts(), (times, times * active.sum(axis=1)))
    for number, counter in together.items():
        alone = SiteCounter(number, LOAD)
        own = np.repeat(np.flatnonzero(owners == number), times[owners == number])
        record(alone, Patterns(len(own), len(own), lanes[own], active[own]))
        assert counter.sums.tolist() == alone.sums.tolist()
        assert counter.lanes == alone.lanes
        dearest = [
            max(pattern.sectors - pattern.sectors_ideal for pattern in close_site(each, None).patterns)
            for each in (counter, alone)
        ]
        assert dearest[0] == dearest[1] > 0
