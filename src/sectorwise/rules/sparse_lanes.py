"""Most lanes of the warps sit out an access that is made over and over, so that each request moves little.

## What it does

Reports lines whose loads or stores each warp issues four times or more and in which, on average, eight lanes or fewer
take part, where they make up a tenth of the kernel's memory requests.

## Why it costs

A request costs its issue slot, its tags and its latency whatever the number of its lanes: work that a quarter of the
lanes does takes four times the requests.

## Example

```cuda
// sectorwise: launch first_lanes<<<264, 128>>>(f32[264*128], f32[264*4])
extern "C" __global__ void first_lanes(const float* in, float* out) {
    int warp = blockIdx.x * 4 + threadIdx.x / 32;
    if (threadIdx.x % 32 != 0) return;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 32; ++k) sum += in[warp * 32 + k];  // one lane of 32 works
    out[warp] = sum;
}
```

## Use instead

```cuda
// sectorwise: launch all_lanes<<<264, 128>>>(f32[264*128], f32[264*4])
extern "C" __global__ void all_lanes(const float* in, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float sum = in[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (i % 32 == 0) out[i / 32] = sum;
}
```

## How it is computed

Active lanes over requests of each memory instruction; the lanes that the guard or a branch excludes are not active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.requests import group_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.machine.execution import Site
    from sectorwise.model.kernel_model import KernelModel

_LANES: Final = 32
_FEW_LANES: Final = 8
_OFTEN: Final = 4
_SHARE: Final = 0.1


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line and kind of access."""
    launch = model.bound.launch
    warps = launch.blocks_total * -(-launch.threads_per_block // _LANES)
    requests = sum(site.executed for site in model.execution.sites)
    sparse = [site for site in model.execution.sites if _is_sparse(site)]
    for sites in group_sites(model, sparse, lambda site: site.executed):
        executed, lanes = sum(site.executed for site in sites), sum(site.lanes for site in sites)
        if executed < _OFTEN * warps or executed < _SHARE * requests:
            continue
        alike = f"; {len(sites)} instructions" if len(sites) > 1 else ""
        yield Finding(
            code="SW107",
            severity=Severity.NOTE,
            message=(
                f"{sites[0].access.space} {sites[0].access.operation}: {lanes / executed:.3g} of {_LANES} lanes take "
                f"part, {executed // warps} times a warp{alike}"
            ),
            advice="give the other lanes a part of the work, then combine their results",
            instructions=tuple(site.instruction for site in sites),
            evidence=Evidence("active lanes", lanes, float(_LANES * executed), executed),
        )


def _is_sparse(site: Site) -> bool:
    """Whether few lanes take part in a load or store."""
    plain = site.access.operation in {Operation.LOAD, Operation.STORE} and site.unknown_because is None
    return plain and site.executed > 0 and site.lanes <= _FEW_LANES * site.executed
