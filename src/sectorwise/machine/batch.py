"""Turns some blocks of a launch into the machine state that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, field

from sectorwise.machine.clusters import open_clusters
from sectorwise.machine.convergence import Groups, start_groups
from sectorwise.machine.memory import BatchMemory, FaultLog, GlobalMemory, open_batch_memory
from sectorwise.machine.registers import RegisterFile
from sectorwise.machine.special import special_registers

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.flow import Flow
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.clusters import Clusters
    from sectorwise.machine.copy_sums import CopyCounter
    from sectorwise.machine.execution import ExecutionOptions, Waiting
    from sectorwise.machine.program import Program
    from sectorwise.machine.regions import Region
    from sectorwise.machine.registers import Array, Levels
    from sectorwise.machine.sites import SiteCounter


PATIENCE = 64
"""Basic blocks that a frame runs, while nobody spins, before it ends at the next jump backwards."""


_MOST_LENGTHS: Final = 1 << 22
"""Of a grid with more blocks no lengths are kept: so many even out, and each takes eight bytes."""


def open_lengths(blocks: int) -> npt.NDArray[np.float64] | None:
    """Room for the lengths of so many blocks, none of them known."""
    return np.full(blocks, np.nan) if blocks <= _MOST_LENGTHS else None


class Tally(Struct):
    """What a launch has counted so far, over all of its batches.

    `origins` maps instructions to why what they wrote is not known; `limitations` are what could not be followed
    (those among `uncomputed` are about values alone, and no count hangs on them but by what says so itself),
    `unknown_conditions` branches whose condition was not known, `regions` what depends on doubtful branches
    (`doubtful_branches`: all that was uncertain about the conditions of each). `work` counts instructions that frames
    have run, `lengths` [blocks] those of each block's warps (NaN: none yet; None: too many to keep). `bulk` has
    the sums of copies of tiles and whole ranges; `products` maps products of
    warpgroups to all that was uncertain about the way to them. Copies of tiles leave shared memory as it is unless
    `brings`. `hangs` counts warps that wait for ever, by instruction, by what for, and by what may end it after all
    (empty: nothing).
    """

    program: Program
    bound: BoundLaunch
    options: ExecutionOptions
    global_memory: GlobalMemory
    banks: dict[int, npt.NDArray[np.uint32]]
    counters: dict[int, SiteCounter]
    issued: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.int64]
    faults: FaultLog = field(default_factory=FaultLog)
    origins: dict[int, str] = field(default_factory=dict)
    limitations: dict[tuple[int, str], None] = field(default_factory=dict)
    uncomputed: set[tuple[int, str]] = field(default_factory=set)
    unknown_conditions: set[int] = field(default_factory=set)
    flow: Flow | None = None
    regions: dict[int, Region | None] = field(default_factory=dict)
    doubtful_branches: dict[int, int] = field(default_factory=dict)
    work: int = 0
    lengths: npt.NDArray[np.float64] | None = None
    bulk: dict[int, CopyCounter] = field(default_factory=dict)
    brings: bool = True
    products: dict[int, int] = field(default_factory=dict)
    hangs: dict[tuple[int, Waiting, str], int] = field(default_factory=dict)


class Moment(Struct, frozen=True):
    """State of a batch before a frame: its groups, registers and taints, threads that had arrived at barriers.

    `changes` is the memory's count of changes, `issued` how often each instruction of the launch had been issued.
    """

    clock: int
    changes: int
    pc: npt.NDArray[np.int64]
    mask: npt.NDArray[np.uint32]
    state: npt.NDArray[np.int8]
    values: tuple[Array, ...]
    taints: dict[int, Levels]
    arrived: npt.NDArray[np.int64]
    issued: npt.NDArray[np.int64]


class Batch(Struct):
    """State of the warps of some blocks, whose linear `numbers` [blocks] begin with `first_block`.

    `live` are the lanes of each warp that have not exited. `steps` counts instructions of each warp. `ways` [warps] are
    the levels of all values that decided where a warp is (`some_ways`: any is set), `doubtful` the branch that began
    the doubt (-1: none, -2: it does not end) and `doubted` the lanes that came to it. `resumes` [warps, 32, 2] is, for
    lanes in a collective, where they go on after it and the first lane of the group that they came in. `arrived`
    counts threads that passed a block barrier without waiting, `votes` [blocks, 16, 2] how many lanes said yes to
    BAR.RED and how many it has asked, `last_vote` [blocks] what came of it. `moment` is the state that the present one
    is compared with; `some_spin` says that groups wait for memory to change since its count of changes was `spun_at`.
    """

    tally: Tally
    blocks: int
    warps_per_block: int
    first_block: int
    numbers: npt.NDArray[np.int64]
    registers: RegisterFile
    memory: BatchMemory
    special: dict[str, npt.NDArray[np.uint32]]
    groups: Groups
    live: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.int64]
    ways: npt.NDArray[np.uint8]
    doubtful: npt.NDArray[np.int64]
    doubted: npt.NDArray[np.uint32]
    resumes: npt.NDArray[np.int64]
    arrived: npt.NDArray[np.int64]
    votes: npt.NDArray[np.int64]
    last_vote: npt.NDArray[np.int64]
    clusters: Clusters | None = None
    unsettled: bool = False
    some_ways: bool = False
    clock: int = 0
    moment: Moment | None = None
    patience: int = PATIENCE
    some_spin: bool = False
    spun_at: int = 0
    woken: int = 0
    constants: dict[tuple[int, int], npt.NDArray[Any]] = field(default_factory=dict)


def open_batch(tally: Tally, numbers: npt.NDArray[np.int64]) -> Batch:
    """Fresh state for blocks of these linear numbers, in order, and of whole clusters."""
    threads, blocks = tally.bound.launch.threads_per_block, len(numbers)
    warps_per_block = -(-threads // 32)
    warps = blocks * warps_per_block
    clusters = open_clusters(tally.bound, numbers, warps)
    masks = np.full(warps, 0xFFFFFFFF, np.uint32)
    if threads % 32:
        masks[warps_per_block - 1 :: warps_per_block] = (1 << threads % 32) - 1
    return Batch(
        tally,
        blocks,
        warps_per_block,
        int(numbers[0]),
        numbers,
        RegisterFile(warps),
        open_batch_memory(tally.bound, tally.global_memory, tally.faults, numbers, warps_per_block, clusters),
        special_registers(tally.bound, numbers),
        start_groups(masks),
        masks.copy(),
        np.zeros(warps, np.int64),
        np.zeros(warps, np.uint8),
        np.full(warps, -1, np.int64),
        np.zeros(warps, np.uint32),
        np.zeros((warps, 32, 2), np.int64),
        np.zeros((blocks, 16), np.int64),
        np.zeros((blocks, 16, 2), np.int64),
        np.zeros(blocks, np.int64),
        clusters,
    )
