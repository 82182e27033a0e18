"""Turns our names of counts into the profiler's metrics: which view each belongs to, and what noise it has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sectorwise.analysis.verification import View


class Noise(StrEnum):
    """How a counter strays from what the kernel does: not at all, upwards only (replays), or either way."""

    NONE = "none"
    UPWARD = "upward"
    EITHER = "either"


class Reach(StrEnum):
    """Which instructions a total depends on: those that can touch this memory, bulk copies (TMA), or all."""

    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    BULK = "bulk"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Counter:
    """A count of ours and the metric that it equals.

    `follows_layout` is whether it depends on where the lanes lie to each other, and not on how often warps issue alone.
    """

    name: str
    metric: str
    view: View
    reach: Reach = Reach.ALL
    noise: Noise = Noise.NONE
    follows_layout: bool = True


SITE_COUNTERS: Final = (
    Counter("executed", "inst_executed", View.SOURCE, follows_layout=False),
    Counter("tag_requests", "memory_l1_tag_requests_global", View.SOURCE, follows_layout=False),
    Counter("sectors", "memory_l2_theoretical_sectors_global", View.SOURCE),
    Counter("sectors_ideal", "memory_l2_theoretical_sectors_global_ideal", View.SOURCE),
    Counter("sectors_local", "memory_l2_theoretical_sectors_local", View.SOURCE),
    Counter("wavefronts", "memory_l1_wavefronts_shared", View.SOURCE),
    Counter("wavefronts_ideal", "memory_l1_wavefronts_shared_ideal", View.SOURCE),
)
"""Counts of one memory instruction; the metrics are those of Nsight Compute's section SourceCounters.

The rule for copies around L1 that is modelled concerns sectors and wavefronts; its `tag_requests` are exact
(docs/counting-rules.md), hence `follows_layout` is false there.
"""


def _pipe(name: str, metric: str, reach: Reach, *, noise: Noise = Noise.NONE) -> Counter:
    return Counter(name, f"{metric}.sum", View.PIPE, reach, noise, follows_layout=not name.endswith("_requests"))


_L1 = "pipe_lsu_mem"
_DATA = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"

TOTAL_COUNTERS: Final = (
    Counter("instructions", "smsp__inst_executed.sum", View.PIPE, follows_layout=False),
    _pipe("global_load_requests", f"l1tex__t_requests_{_L1}_global_op_ld", Reach.GLOBAL),
    _pipe("global_load_sectors", f"l1tex__t_sectors_{_L1}_global_op_ld", Reach.GLOBAL),
    _pipe("global_store_requests", f"l1tex__t_requests_{_L1}_global_op_st", Reach.GLOBAL),
    _pipe("global_store_sectors", f"l1tex__t_sectors_{_L1}_global_op_st", Reach.GLOBAL, noise=Noise.EITHER),
    _pipe("global_atom_requests", f"l1tex__t_requests_{_L1}_global_op_atom", Reach.GLOBAL),
    _pipe("global_red_requests", f"l1tex__t_requests_{_L1}_global_op_red", Reach.GLOBAL),
    _pipe("local_load_requests", f"l1tex__t_requests_{_L1}_local_op_ld", Reach.LOCAL),
    _pipe("local_load_sectors", f"l1tex__t_sectors_{_L1}_local_op_ld", Reach.LOCAL),
    _pipe("local_store_requests", f"l1tex__t_requests_{_L1}_local_op_st", Reach.LOCAL),
    _pipe("local_store_sectors", f"l1tex__t_sectors_{_L1}_local_op_st", Reach.LOCAL),
    Counter("l1_tag_requests", "memory_l1_tag_requests_global", View.SOURCE, Reach.GLOBAL, follows_layout=False),
    Counter("l2_theoretical_sectors", "memory_l2_theoretical_sectors_global", View.SOURCE, Reach.GLOBAL),
    Counter("l2_theoretical_sectors_ideal", "memory_l2_theoretical_sectors_global_ideal", View.SOURCE, Reach.GLOBAL),
    Counter("l2_theoretical_sectors_local", "memory_l2_theoretical_sectors_local", View.SOURCE, Reach.LOCAL),
    Counter("shared_wavefronts", "memory_l1_wavefronts_shared", View.SOURCE, Reach.SHARED),
    Counter("shared_wavefronts_ideal", "memory_l1_wavefronts_shared_ideal", View.SOURCE, Reach.SHARED),
    _pipe("shared_load_wavefronts", f"{_DATA}_ld", Reach.SHARED, noise=Noise.UPWARD),
    _pipe("shared_store_wavefronts", f"{_DATA}_st", Reach.SHARED, noise=Noise.UPWARD),
    _pipe("shared_atom_wavefronts", f"{_DATA}_atom", Reach.SHARED, noise=Noise.UPWARD),
    _pipe("bulk_load_sectors", "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld", Reach.BULK),
    _pipe("bulk_store_sectors", "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st", Reach.BULK),
    _pipe("bulk_reduction_sectors", "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red", Reach.BULK),
)
"""Totals of a launch, by the names of `model.totals.Totals`.

The noise was seen on an H200: replays raise the wavefronts of launches that fill the GPU, and the pipe's store sectors
stray either way at any size (docs/counting-rules.md).
"""

TIME_METRIC: Final = "gpu__time_duration.sum"
"""Duration of a launch in nanoseconds."""
