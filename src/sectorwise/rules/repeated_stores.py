"""All lanes of a warp store to, or update, the same address, where one would do after the warp has combined its values.

## What it does

Reports stores and atomics on global memory in which two or more active lanes all name one address, in every pattern
that was kept.

## Why it costs

Of several stores to one address one wins, and which is undefined. Atomics on one address are carried out one after the
other in the L2: a warp that combines its lanes first (`__reduce_add_sync`, shuffles) sends one instead of 32.

## Example

```cuda
// sectorwise: launch count<<<264, 128>>>(f32[264*128]=uniform(1), f32[1])
extern "C" __global__ void count(const float* in, float* sum) {
    int i = blockIdx.x * 128 + threadIdx.x;
    atomicAdd(sum, in[i]);  // 32 lanes, one address
}
```

## Use instead

```cuda
// sectorwise: launch count_by_warp<<<264, 128>>>(f32[264*128]=uniform(1), f32[1])
extern "C" __global__ void count_by_warp(const float* in, float* sum) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float part = in[i];
    for (int step = 16; step > 0; step /= 2) part += __shfl_down_sync(~0u, part, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, part);
}
```

## How it is computed

From the addresses of the lanes. It is a note: the profiler counts one sector, so that no counter shows the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.requests import SECTORS, find_sector_shape, group_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.machine.execution import Site
    from sectorwise.model.kernel_model import KernelModel

_UPDATES: Final = frozenset({Operation.STORE, Operation.ATOMIC, Operation.REDUCTION})


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line and kind of access."""
    repeated = [
        site
        for site in model.execution.sites
        if site.access.operation in _UPDATES and site.access.space is Space.GLOBAL and _is_repeated(site)
    ]
    for sites in group_sites(model, repeated, lambda site: site.executed):
        what = "store to" if sites[0].access.operation is Operation.STORE else "update"
        lanes, executed = sum(site.lanes for site in sites), sum(site.executed for site in sites)
        alike = f", by {len(sites)} instructions" if len(sites) > 1 else ""
        yield Finding(
            code="SW110",
            severity=Severity.NOTE,
            message=f"all {lanes / executed:.3g} active lanes {what} one address, {executed:,} times{alike}",
            advice="combine the values of the warp first, and let one lane write",
            instructions=tuple(site.instruction for site in sites),
            evidence=Evidence(
                SECTORS, sum(site.sectors for site in sites), sum(site.sectors_ideal for site in sites), executed
            ),
        )


def _is_repeated(site: Site) -> bool:
    if site.unknown_because is not None or not site.patterns:
        return False
    shapes = [find_sector_shape(site, pattern) for pattern in site.patterns]
    return all(shape.lanes > 1 and shape.step_bytes == 0 for shape in shapes)
