from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.machine import numpy_engine, scheduler
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.numpy_engine import execute
from tests.machine.launching import Run, run
from tests.machine.test_divergence import SOURCE as DIVERGENCE
from tests.machine.test_memory import SOURCE as MEMORY
from tests.machine.test_outputs import SOURCE as OUTPUTS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.counting.request import Access

LAUNCHES = [
    (OUTPUTS, "transpose<<<(4, 4), (32, 8)>>>(f32[100*100]=uniform(1), f32[100*100], 100)"),
    (OUTPUTS, "gemm<<<(3, 4), (16, 16)>>>(f32[50*70]=uniform(1), f32[70*33]=uniform(2), f32[50*33], 50, 33, 70)"),
    (OUTPUTS, "histogram<<<5, 192>>>(u8[20000]=uniform(5), u32[256], 20000)"),
    (OUTPUTS, "reduce<<<7, 256>>>(i32[10000]=uniform(4), i32[1], 10000)"),
    (DIVERGENCE, "branch<<<8, 128>>>(i32[1024]=perm(3), i32[12288])"),
    (DIVERGENCE, "loop<<<16, 96>>>(i32[1536]=perm(5), i32[1536]=uniform(1), i32[1536])"),
    (DIVERGENCE, "choose<<<4, 128>>>(i32[512]=perm(2), i32[8192])"),
    (DIVERGENCE, "call<<<2, 96>>>(i32[192])"),
    (MEMORY, "beyond<<<2, 64>>>(f32[128]=arange, f32[128], 3)"),
    (MEMORY, "generic<<<2, 32>>>(i32[32]=perm(1), i32[32])"),
    (MEMORY, "spill<<<3, 64>>>(i32[64]=perm(6), i32[64])"),
]


def _summary(done: Run) -> tuple[object, ...]:
    execution = done.execution
    buffers = [execution.read_buffer(i).tobytes() for i in range(len(done.bound.allocations))]
    return (
        execution.sites,
        execution.issued.tolist(),
        execution.lanes.tolist(),
        execution.faults,
        execution.limitations,
        buffers,
    )


@pytest.mark.parametrize(("source", "launch"), LAUNCHES, ids=[launch.partition("<")[0] for _, launch in LAUNCHES])
def test_no_budget_changes_the_answer(source: str, launch: str) -> None:
    everything = _summary(run(source, launch))
    one_block = _summary(run(source, launch, ExecutionOptions(budget_bytes=1)))
    assert one_block == everything


@pytest.mark.parametrize(("source", "launch"), LAUNCHES, ids=[launch.partition("<")[0] for _, launch in LAUNCHES])
def test_no_order_of_the_sides_of_branches_changes_the_answer(
    source: str, launch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forwards = _summary(run(source, launch))
    monkeypatch.setattr(scheduler, "QUANTUM", 0)
    assert _summary(run(source, launch)) == forwards


def test_progress_counts_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_engine, "LANES_IN_BATCH", 512)
    bound = run(OUTPUTS, "gather<<<9, 128>>>(f32[1000], i32[1000], f32[1000], 1000)").bound
    seen: list[tuple[int, int]] = []
    execute(bound, ExecutionOptions(), lambda done, total: seen.append((done, total)))
    assert seen == [(4, 9), (8, 9), (9, 9)]


def test_issue_counts_of_a_straight_kernel() -> None:
    done = run(OUTPUTS, "gather<<<9, 128>>>(f32[1100], i32[1100], f32[1100], 1100)")
    code = done.bound.kernel.instructions
    exits = [instruction.index for instruction in code if instruction.opcode == "EXIT"]
    assert done.execution.issued[0] == 36
    assert done.execution.lanes[0] == 9 * 128
    # 1,100 lanes go past the bounds check, in 35 warps; the last of them is part full.
    assert (done.execution.issued[exits[-1]], done.execution.lanes[exits[-1]]) == (35, 1100)
    assert done.execution.blocks_executed == 9


class _Recorder:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def on_request(
        self,
        instruction: int,
        access: Access,
        warps: npt.NDArray[np.int64],
        addresses: npt.NDArray[np.int64],
        active: npt.NDArray[np.bool_],
    ) -> None:
        assert access.opcode
        for row, warp in enumerate(warps):
            self.seen.extend((instruction, int(warp), int(address)) for address in addresses[row][active[row]])


def test_observers_see_every_address_with_its_warp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_engine, "LANES_IN_BATCH", 96)
    recorder = _Recorder()
    launch = "beyond<<<3, 64>>>(f32[192]=arange, f32[192], 0)"
    done = run(MEMORY, launch, ExecutionOptions(observers=(recorder,)))
    reads, writes = (site.instruction for site in done.execution.sites)
    bases = {reads: done.bound.allocations[0].base, writes: done.bound.allocations[1].base}
    expected = {(site, i // 32, base + 4 * i) for site, base in bases.items() for i in range(192)}
    assert set(recorder.seen) == expected
    assert len(recorder.seen) == len(expected)
