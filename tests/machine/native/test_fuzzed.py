from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.native.alike import find_alike_registers
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.origins import find_reach
from sectorwise.machine.native.relevance import find_relevant
from sectorwise.machine.program import decode
from tools.fuzz_engines import compare, list_indices, list_values

if TYPE_CHECKING:
    import pytest

INDICES = range(5000, 5048)


def test_what_is_proven_of_blocks_is_what_all_of_them_do(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m tools.fuzz_engines --indices 0:2000` compares more."""
    count, left, wrong = compare(list_indices(INDICES), races=True)
    assert (count, left, wrong) == (len(INDICES), 0, 0), capsys.readouterr().out


def test_many_of_the_generated_kernels_have_blocks_that_are_alike() -> None:
    ways = {"alike": 0, "split by tables": 0, "all run": 0}
    for _, bound in list_indices(range(5000, 5096)):
        flow = find_flow(decode(bound.kernel))
        reach = find_reach(flow, bound)
        alike = find_alike_registers(flow, frozenset(find_relevant(flow, reach)), bound, reach)
        ways["all run" if alike is None else "split by tables" if alike.port.splits else "alike"] += 1
    assert min(ways.values()) >= 2, ways


def test_engines_agree_on_fuzzed_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m tools.fuzz_engines --values 0:2000` compares more."""
    seeds = range(700, 710)
    count, left, wrong = compare(list_values(seeds))
    assert (count, wrong) == (len(seeds), 0), capsys.readouterr().out
    assert left <= 3
