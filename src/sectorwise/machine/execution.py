"""Turns what happened in a launch into frozen data: counts of memory instructions, issue counts, faults, buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation, Space

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from sectorwise.counting.request import Access
    from sectorwise.machine.copy_forms import CopyForm
    from sectorwise.machine.observers import Observer


class Certainty(StrEnum):
    """How sure a number is; the order is from most to least."""

    EXACT = "exact"
    SAMPLED = "sampled"
    MODELLED = "modelled"
    ASSUMED = "assumed"
    SCHEDULE_DEPENDENT = "schedule_dependent"


@dataclass(frozen=True, slots=True)
class Pattern:
    """How the lanes of one request lie to each other, what one such request costs, and how many of the site lie so.

    `addresses` are those of the 32 lanes, in bytes, moved as a whole by a multiple of 128 (zero for a lane that is not
    active; bit l of `mask` is lane l); `shared_addresses` the destinations of async copies, `source_bytes` their source
    sizes, `generic_spaces` the space of each lane of a generic access, as in `counting.request.Requests`. `times` is a
    lower bound where a site has more patterns than are kept.
    """

    addresses: tuple[int, ...]
    mask: int
    times: int
    sectors: int
    sectors_ideal: int
    wavefronts: int
    wavefronts_ideal: int
    shared_addresses: tuple[int, ...] | None = None
    source_bytes: tuple[int, ...] | None = None
    generic_spaces: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The first request of a site that accessed memory: real addresses (zero for lanes that are not in `mask`).

    `warp` is the linear block x warps a block + warp.
    """

    warp: int
    addresses: tuple[int, ...]
    mask: int


@dataclass(frozen=True, slots=True)
class Site:
    """Counts of one memory instruction over the launch.

    `executed` counts warps that issued it, also with every lane predicated off; `lanes` the lanes that accessed.
    `unknown_because` is set when an address was not known: then counts other than `executed` must not be shown.
    """

    instruction: int
    """Index into `kernel.instructions`."""
    access: Access
    executed: int
    lanes: int
    sectors: int
    sectors_ideal: int
    tag_requests: int
    wavefronts: int
    wavefronts_ideal: int
    wavefronts_hardware: int
    sectors_local: int
    certainty: Certainty
    unknown_because: str | None = None
    sectors_hardware: int = 0
    """Sectors as the L1 pipe counts them; copies around L1 differ from `sectors`, the source view's."""
    silent: int = 0
    """Of `executed`, those with no active lane, and copies that only fill zeros, as far as that is known: the pipe sees
    no request of them."""
    patterns: tuple[Pattern, ...] = field(default=(), compare=False, repr=False)
    """The dearest distinct patterns, and the first among equals; not all where there are many."""
    first: FirstRequest | None = field(default=None, compare=False, repr=False)
    elsewhere: bool = False
    """Whether lanes reached into shared memory of other blocks, of which the source view counts nothing."""

    @property
    def certainty_hardware(self) -> Certainty:
        """Certainty of what the pipe counts, where that rule is less sure than the source view's.

        Of copies through L1 the passes are modelled; of generic accesses to global and local memory the requests and
        sectors (`docs/counting-rules.md`, "Where source view and pipe differ"), and of accesses to other blocks.
        """
        through_l1 = self.access.operation is Operation.ASYNC_COPY and "BYPASS" not in self.access.modifiers
        split = self.access.space is Space.GENERIC and self.sectors_local > 0 and self.sectors > 0
        if self.certainty is Certainty.EXACT and (through_l1 or split or self.elsewhere):
            return Certainty.MODELLED
        return self.certainty


class FaultKind(StrEnum):
    """What is wrong with an access."""

    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"


@dataclass(frozen=True, slots=True)
class Fault:
    """The first wrong access of an instruction, and how many lanes did likewise over the launch.

    `certainty` is that of the instruction's addresses, its guard and the way to it; the message says what is not exact.
    """

    kind: FaultKind
    instruction: int
    block: tuple[int, int, int]
    warp: int
    lane: int
    address: int
    width_bytes: int
    occurrences: int
    message: str
    certainty: Certainty = Certainty.EXACT


class Waiting(StrEnum):
    """What warps wait for that does not come."""

    LOOP = "loop"
    """Whatever would end a loop in which nothing changes any more."""
    MBARRIER = "mbarrier"
    BLOCK_BARRIER = "block_barrier"
    CLUSTER_BARRIER = "cluster_barrier"
    LANES = "lanes"
    """Lanes of their own warp."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Warps that wait at one instruction when nobody can go on, by all that is known.

    Where it may be what is not known that they wait for there is a `Limitation` instead. Not `is_certain`: estimates
    led there, or blocks that find no room beside might end it; the message says which.
    """

    instruction: int
    waiting: Waiting
    warps: int
    message: str
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Limitation:
    """Something that could not be known: which instruction, and why, in words for the report.

    `of_values`: of what it computes alone; a count that hangs on such a value has a limitation of its own.
    """

    instruction: int
    because: str
    of_values: bool = False


@dataclass(frozen=True, slots=True)
class Sampling:
    """Blocks that ran, as linear indices, and stand for `of` blocks, themselves among them, without a proof.

    `change` is how far the last doubling of the sample moved any count, as a fraction; `instructions` how many warp
    instructions all of them would run. `error` is by how much that is off, as a fraction, in 19 of 20 samples as large
    of blocks that differ as those that ran do (None: it was not followed); rare blocks may differ more.
    """

    blocks: tuple[int, ...]
    of: int
    change: float
    instructions: int
    error: float | None = None


@dataclass(frozen=True, slots=True)
class BulkCopies:
    """What the copies of whole tiles or ranges (TMA) by one instruction did over the launch.

    `executed` counts warps that issued it, also with every lane predicated off; `copies` those made, each by one warp;
    `targets` the blocks that got one: more than `copies` where one goes to several of a cluster, none of a prefetch.
    `asked_bytes` are those of whole tiles or ranges, of which `outside_bytes` lie outside of their tensor: loads fill
    them in shared memory, stores leave them out. `row_bytes` is the shortest run of neighbouring bytes of global memory
    that one copies: the first extent of its box, or the range. `sectors` are what the profiler's counters of TMA count
    (`l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld` and kin), what is filled and every target included;
    `sectors_ideal` what as many bytes side by side would take; `sectors_l2` what is asked of the L2, or goes there;
    `written_bytes` those that arrive in shared memory, at every target, or in global memory.
    Where `unknown_because` is set some copies are in none of these: none of them must be shown.
    `landings` are the places in a block's own shared memory that loads fill, first byte and the one behind the last;
    not all where there are many. `barriers` are the mbarriers that are told of it: a ring of stages has one for each.
    """

    instruction: int
    form: CopyForm
    executed: int
    copies: int
    targets: int
    asked_bytes: int
    outside_bytes: int
    row_bytes: int
    sectors: int
    sectors_ideal: int
    sectors_l2: int
    written_bytes: int
    certainty: Certainty
    unknown_because: str | None = None
    landings: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)
    barriers: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Execution:
    """What the machine saw of one launch.

    `issued` int64 [instructions]: warps that issued each instruction; `lanes` int64 [instructions]: lanes active in
    them.
    """

    sites: tuple[Site, ...]
    issued: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.int64]
    faults: tuple[Fault, ...]
    limitations: tuple[Limitation, ...]
    read_buffer: Callable[[int], npt.NDArray[np.uint8]]
    """Final bytes of allocation i of the bound launch."""
    blocks_executed: int
    """Blocks that ran, or that a proof says do as one that ran."""
    sampling: Sampling | None = None
    lengths: npt.NDArray[np.float64] | None = None
    """Warp instructions of each block, [blocks]; those of a block that ran stand for blocks that are like it, and NaN
    for blocks that a sample leaves out. None: of a grid too large to keep them."""
    bulk: tuple[BulkCopies, ...] = ()
    hangs: tuple[Hang, ...] = ()
    """Where warps wait for ever: counts are of what ran until then."""


class Engine(StrEnum):
    """Which engine runs a launch; the result is the same."""

    AUTOMATIC = "automatic"
    REFERENCE = "reference"
    NATIVE = "native"


class Order(StrEnum):
    """Which of the groups that a warp has parted into runs first: nothing says so but the hardware."""

    LOWEST = "lowest"
    """The one whose place in the code is lowest."""
    HIGHEST = "highest"


class WorkLimitError(Exception):
    """A launch is longer than `ExecutionOptions.work_limit`; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How to run: `step_limit` warp instructions for one warp; `budget_bytes` for registers and memories in a batch.

    A loop that changes nothing is seen as such long before the limit; one that counts for ever takes about a minute to
    meet the default. `observers` see every memory request as it is issued. `engine` chooses who runs it. `work_limit`
    ends the reference engine when it has run so many instructions, each by as many warps as there are (WorkLimitError).
    `order` is that of parted groups in the reference engine: counts that it changes are not the kernel's own.
    Blocks that no proof covers are sampled where all would be more work than `sample_above`: a unit is a warp
    instruction that computes something, a memory access a hundred; a core does about 300 million a second. None runs
    them all. What machine code reads of buffers may take `memory_bytes` (None: any), else it ends with a
    MemoryBudgetError.
    """

    step_limit: int = 2_000_000
    budget_bytes: int = 512 << 20
    observers: tuple[Observer, ...] = ()
    engine: Engine = Engine.AUTOMATIC
    work_limit: int | None = None
    order: Order = Order.LOWEST
    sample_above: int | None = 1 << 29
    memory_bytes: int | None = None
