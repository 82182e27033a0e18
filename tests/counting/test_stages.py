"""The tag and data stages of the L1 equal the pipe's counters of launches with one load each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sectorwise.counting.stages import count_data_wavefronts, count_tag_wavefronts

RULES = Path(__file__).parents[1] / "measured" / "rules"
LANES = np.arange(32)
BLOCKS = 64
Addresses = npt.NDArray[np.int64]


def read_load(case: dict[str, Any], base: int) -> tuple[Addresses, npt.NDArray[np.bool_], int]:
    """Addresses, mask and width of the one load of a `global*_one` launch, as `spaces.cu` computes them."""
    table, site, order, size, step, mask = case["args"][:6]
    width = int(case["kernel"].removeprefix("global").removesuffix("_one"))
    seed = int(table["init"].removeprefix("perm:"))
    row = np.random.default_rng(seed).permutation(table["size"])[site["value"] * 32 :][:32]
    stride = step["value"]
    unit = {
        0: row,
        1: LANES * stride + row[0],
        2: (31 - LANES) * stride + row[0],
        3: (LANES & 7) + (LANES >> 3) * stride,
    }[order["value"]]
    addresses = base + width * (unit & (size["value"] - 1))
    return addresses[None], (mask["value"] >> LANES & 1)[None].astype(np.bool_), width


def read_cases(name: str) -> list[dict[str, Any]]:
    cases = json.loads((RULES / name).read_text())["cases"]
    return [case for case in cases if case["kernel"].endswith("_one")]


def loads_of_table(case: dict[str, Any]) -> int:
    """Warp loads before the measured one: each reads one line of the table."""
    return int(case["measured"]["totals"]["global_load_requests"]) // BLOCKS - 1


def test_tag_wavefronts_of_every_recorded_load() -> None:
    cases = read_cases("tags.json")
    assert len(cases) == 200
    for case in cases:
        addresses, mask, _ = read_load(case, case["measured"]["buffer_addresses"][1])
        counted = int(count_tag_wavefronts(addresses, mask)[0]) + loads_of_table(case)
        assert counted * BLOCKS == case["measured"]["totals"]["tag_wavefronts_global_load"], case["name"]


def test_tag_wavefronts_of_launches_that_the_rule_was_not_found_with() -> None:
    cases = read_cases("spaces.json")
    assert len(cases) == 71
    for case in cases:
        addresses, mask, _ = read_load(case, 1 << 14)
        counted = int(count_tag_wavefronts(addresses, mask)[0]) + loads_of_table(case)
        assert counted * BLOCKS == case["measured"]["totals"]["tag_wavefronts_global_load"], case["name"]


def test_data_wavefronts_of_every_narrow_load() -> None:
    """The rest of the launch (its store, its loads of the table) takes the same passes in launches of one form."""
    rest: dict[tuple[int, int], set[int]] = {}
    for case in read_cases("tags.json"):
        addresses, mask, width = read_load(case, case["measured"]["buffer_addresses"][1])
        if width <= 4:
            counted = int(count_data_wavefronts(addresses, mask, width)[0]) * BLOCKS
            form = (width, loads_of_table(case))
            rest.setdefault(form, set()).add(case["measured"]["totals"]["l1_data_wavefronts"] - counted)
    assert {form: len(others) for form, others in rest.items()} == dict.fromkeys(rest, 1)


def test_column_walks_conflict_in_the_banks_and_the_tags() -> None:
    every = np.ones((1, 32), np.bool_)
    column = (LANES * 128)[None]
    assert count_data_wavefronts((LANES * 4)[None], every, 4).tolist() == [1]
    assert count_data_wavefronts(column, every, 4).tolist() == [32]
    assert count_tag_wavefronts(column, every).tolist() == [8]
    assert count_tag_wavefronts(column * 0, every & False).tolist() == [0]
