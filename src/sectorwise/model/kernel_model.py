"""Turns a bound launch and its execution into the model of a kernel that rules and reports read."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.model.occupancy import occupancy
from sectorwise.model.pace import estimate_pace
from sectorwise.model.totals import sum_totals

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution
    from sectorwise.model.caches.chain import Chain
    from sectorwise.model.causes import Cause
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.pace import Pace
    from sectorwise.model.time import Time
    from sectorwise.model.totals import Totals
    from sectorwise.model.traffic import Traffic

LEAST_REGISTERS = 16
"""What a thread gets at least: an H200 reports 16 for all kernels that need 8 to 15, of 875 recorded launches."""


class KernelModel(Struct, frozen=True):
    """Everything known of one launch: what ran, what it counted, and what follows from the counts.

    `causes` are what the time is lost to, the dearest first; empty where `time` is None.
    """

    bound: BoundLaunch
    execution: Execution
    totals: Totals
    occupancy: Occupancy
    traffic: Traffic | None
    time: Time | None
    causes: tuple[Cause, ...]
    pace: Pace


def model_kernel(
    bound: BoundLaunch,
    execution: Execution,
    *,
    follow_caches: bool = False,
    warm: bool = False,
    chain: Chain | None = None,
) -> KernelModel:
    """The model of a launch that has been executed.

    `traffic` and `time` are None where an address is not known, and without `follow_caches`, which takes about a
    second; what hangs has no time. The L2 is empty before the launch, or `warm` from the same launch, or has what
    launches of a `chain` left: `traffic.left` is the chain with this launch.
    """
    launch, needs = bound.launch, bound.kernel.resources
    held = occupancy(
        launch.threads_per_block,
        max(needs.registers_per_thread, LEAST_REGISTERS),
        needs.static_shared_bytes + launch.dynamic_shared_bytes,
        device=bound.device,
        barriers=needs.barriers,
        cluster_blocks=1 if needs.cluster is None else prod(needs.cluster),
    )
    totals = sum_totals(execution.sites, int(execution.issued.sum()), execution.bulk)
    traffic: Traffic | None = None
    time: Time | None = None
    causes: tuple[Cause, ...] = ()
    if follow_caches:
        from sectorwise.model.causes import find_causes
        from sectorwise.model.time import estimate_time
        from sectorwise.model.traffic import estimate_traffic

        traffic = estimate_traffic(bound, execution, held, warm=warm, chain=chain)
        if traffic is not None and not execution.hangs:
            time = estimate_time(bound, execution, held, traffic)
        if traffic is not None and time is not None:
            causes = find_causes(bound, execution, held, traffic, time)
    return KernelModel(
        bound=bound,
        execution=execution,
        totals=totals,
        occupancy=held,
        traffic=traffic,
        time=time,
        causes=causes,
        pace=estimate_pace(bound, execution, totals, held, traffic, time),
    )
