"""The same bytes are loaded over and over from L1 and L2, where a tile in shared memory or registers would keep them.

## What it does

Reports launches that load 4 MiB or more and ask for each byte 16 times or more on average: the loads that caches serve.
It needs the traffic model (`--caches`).

## Why it costs

A hit in L1 is no free load: it takes an issue slot, its tags and a pass of the data stage, and the L2 has a fraction of
a register's bandwidth. A naive convolution loads each element once for each of its taps, a naive product of matrices
once for each row and column of the result.

## Example

```cuda
// sectorwise: launch smooth<<<264, 128>>>(f32[264*128+64], f32[264*128])
extern "C" __global__ void smooth(const float* in, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += in[i + k] * (1.0f / (k + 1));
    out[i] = sum;
}
```

## Use instead

Load what the block needs into shared memory once, and use each element many times from there.

```cuda
// sectorwise: launch smooth_tile<<<264, 128>>>(f32[264*128+64], f32[264*128])
extern "C" __global__ void smooth_tile(const float* in, float* out) {
    __shared__ float tile[192];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = in[i];
    if (threadIdx.x < 64) tile[threadIdx.x + 128] = in[i + 128];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tile[threadIdx.x + k] * (1.0f / (k + 1));
    out[i] = sum;
}
```

## How it is computed

Sectors that loads ask for, over the distinct ones among them, for the launch as a whole. Where not all of its blocks
were followed, those count that the cache model takes from DRAM and that loads want, with the neighbours that a missed
sector brings: it begins with cold caches, so that few come from there twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.shapes import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel

_TIMES: Final = 16
_LEAST_BYTES: Final = 4 << 20


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch, at the loads that ask for most."""
    if model.traffic is None:
        return
    if model.traffic.distinct_load_sectors is None and (model.traffic.warm or model.traffic.chained):
        return  # What DRAM gives is what a filled L2 has not: no measure of what is loaded at all.
    loads = sorted(model.traffic.sites, key=lambda site: -site.asked)
    asked, fetched = sum(site.asked for site in loads), model.traffic.wanted_bytes_read / SECTOR_BYTES
    if model.traffic.distinct_load_sectors is not None:
        fetched = model.traffic.distinct_load_sectors
    if asked * SECTOR_BYTES < _LEAST_BYTES or asked < _TIMES * fetched:
        return
    from_l1, from_l2 = sum(site.l1_hits for site in loads), sum(site.l2_hits for site in loads)
    yield Finding(
        code="SW104",
        severity=Severity.NOTE,
        message=(
            f"each sector is loaded {asked / max(fetched, 1):.0f} times: {100 * from_l1 / asked:.0f} % of the loads "
            f"hit in L1 and {100 * from_l2 / asked:.0f} % in the L2 (modelled)"
        ),
        advice="keep what is used again in a tile of shared memory, or in registers",
        instructions=tuple(site.instruction for site in loads),
        evidence=Evidence("sectors loaded", round(asked), round(fetched)),
    )
