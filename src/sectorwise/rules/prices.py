"""Turns a finding into the same finding with what it costs the launch, where the time of the launch is known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.model.bounds import Obstacle
from sectorwise.model.causes import price_requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

OBSTACLES: Final[Mapping[str, Obstacle]] = {
    "SW205": Obstacle.ATOMICS,
    "SW401": Obstacle.LATENCY,
    "SW402": Obstacle.LATENCY,
    "SW403": Obstacle.LAST_WAVE,
    "SW404": Obstacle.LAST_WAVE,
    "SW406": Obstacle.LATENCY,
    "SW408": Obstacle.LATENCY,
}
"""Rules about the launch as a whole, and what stands in the way where they find something."""

REQUESTS: Final = frozenset(
    {"SW101", "SW102", "SW105", "SW106", "SW201", "SW202", "SW203", "SW204", "SW206", "SW301", "SW302"}
)
"""Rules about requests that could take fewer sectors or passes."""


def price(finding: Finding, model: KernelModel) -> Finding:
    """The finding with the ns that the launch would take less without it; unchanged where the time is not known.

    Requests are priced by estimating the time again as if they took as little as they can: what other work hides costs
    nothing. So a fault that is large by count may be cheap.
    """
    if model.time is None or model.traffic is None:
        return finding
    if finding.code in OBSTACLES:
        found = {cause.obstacle: cause.ns for cause in model.causes}
        return replace(finding, cost_ns=found.get(OBSTACLES[finding.code], 0.0))
    if finding.code in REQUESTS and finding.instructions:
        ns = price_requests(
            model.bound, model.execution, model.occupancy, model.traffic, model.time, finding.instructions
        )
        return replace(finding, cost_ns=ns)
    return finding
