"""Which side of a branch runs first changes no count, or the site says that it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.machine.execution import Certainty, ExecutionOptions, Order, Site
from tests.fuzz.test_recorded import run_once
from tests.machine.launching import find_line, run
from tools.fuzz.on_engine import Outcome, run_on_engine

if TYPE_CHECKING:
    from sectorwise.machine.execution import Execution

FILES = (41, 166)
"""Files of generated kernels that are replayed anyway: 64 kernels of all families."""

RACED = r"""
extern "C" __global__ void raced(int* next, int* out) {
  int mine = 0;
  if (threadIdx.x % 2) {
#pragma unroll 1
    for (int k = 0; k < threadIdx.x; ++k) mine += atomicExch(next, k);
  } else {
#pragma unroll 1
    for (int k = 0; k < threadIdx.x; ++k) mine += atomicAdd(next, k);
  }
  if (mine < 64) out[threadIdx.x] = mine;                   // who was early
  __syncwarp();
  out[threadIdx.x + 32] = 1;                                // everyone
}
extern "C" __global__ void apart(int* next, int* out) {
  if (threadIdx.x % 3 == 0) { atomicAdd(next, 1); out[threadIdx.x] = 1; }      // one side
  else if (threadIdx.x % 3 == 1) out[threadIdx.x * 2] = 2;                     // another
  else for (int k = 0; k < threadIdx.x; ++k) out[threadIdx.x + 64 * k] = k;    // a loop of the third
  __syncwarp();
  next[1 + threadIdx.x] = 1;                                                   // all again
}
"""


def _counts(site: Site | None) -> tuple[int, ...] | None:
    return None if site is None else (site.executed, site.lanes, site.sectors, site.wavefronts, site.tag_requests)


def list_changed(first: Execution, second: Execution) -> list[int]:
    """Sites that claim to be sure, and whose counts differ between two executions."""
    here, there = ({site.instruction: site for site in each.sites} for each in (first, second))
    pairs = {index: (here.get(index), there.get(index)) for index in {*here, *there}}
    return [
        index
        for index, both in pairs.items()
        if _counts(both[0]) != _counts(both[1])
        and not any(site is not None and site.certainty is Certainty.SCHEDULE_DEPENDENT for site in both)
    ]


@pytest.mark.parametrize("number", FILES)
def test_counts_of_generated_kernels_do_not_depend_on_the_order_of_sides(number: int) -> None:
    compared = 0
    for kernel, outcome in run_once(number).outcomes:
        assert isinstance(outcome, Outcome)
        other = run_on_engine(kernel, outcome.kernel, Order.HIGHEST)
        assert list_changed(outcome.execution, other.execution) == [], kernel.seed
        compared += len(outcome.execution.sites)
    assert compared > 1000


def test_order_changes_who_is_early_and_that_is_said() -> None:
    lowest, highest = (
        run(RACED, "raced<<<1, 32>>>(i32[1], i32[64])", ExecutionOptions(order=order)) for order in Order
    )
    early = find_line(RACED, "// who was early")
    assert (lowest.output(1) != highest.output(1)).any()
    for done in (lowest, highest):
        assert {site.certainty for site in done.sites_at(early)} == {Certainty.SCHEDULE_DEPENDENT}
        (everyone,) = done.sites_at(find_line(RACED, "// everyone"))
        assert (everyone.executed, everyone.certainty) == (1, Certainty.EXACT)
    assert list_changed(lowest.execution, highest.execution) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_sides_that_do_not_meet_in_memory_count_alike(target: str) -> None:
    lowest, highest = (
        run(RACED, "apart<<<2, 64>>>(i32[65], i32[4096])", ExecutionOptions(order=order), target) for order in Order
    )
    assert [_counts(site) for site in lowest.execution.sites] == [_counts(site) for site in highest.execution.sites]
    assert {site.certainty for site in lowest.execution.sites} == {Certainty.EXACT}
