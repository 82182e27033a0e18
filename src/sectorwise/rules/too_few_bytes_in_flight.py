"""The warps of an SM keep too few bytes in flight, so that the memory waits for requests and not the other way round.

## What it does

Reports launches that load 4 MiB or more and whose resident warps, by the model of bytes in flight, leave the memory
idle for more than 30 % of the time because they wait for what they have asked for.

## Why it costs

Bandwidth is bytes in flight over latency. An H200 needs about 32 KB outstanding on each SM all the time; a burst drains
before the next begins, so that the average counts and not the peak.

## Example

```cuda
// sectorwise: launch sum_rows<<<132, 32>>>(f32[132*32*256], f32[132*32])
extern "C" __global__ void sum_rows(const float* in, float* out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 256; ++k) sum += in[k * 132 * 32 + i];  // one warp an SM, one load at a time
    out[i] = sum;
}
```

## Use instead

More resident warps, wider loads, or more loads before the first use (unrolling), up to what the table of bytes in
flight asks for.

```cuda
// sectorwise: launch sum_parts<<<1056, 256>>>(f32[1056*256*4], f32[1056*256*4])
extern "C" __global__ void sum_parts(const float4* in, float4* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 a = in[i];
    a.x += a.y + a.z + a.w;
    out[i] = a;
}
```

## How it is computed

Warps walk the schedule of the loop that loads the most, as its scoreboards say, with latencies drawn from those that
were measured on the device (or on the nearest one that was), all loads from DRAM. It is a model, not a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.streams import find_starved, list_global_loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch, at its loads."""
    found = find_starved(model)
    if found is None:
        return
    warps = "1 warp an SM keeps" if found.warps_per_sm == 1 else f"{found.warps_per_sm} warps an SM keep"
    loads = sorted(list_global_loads(model), key=lambda site: -site.sectors)
    yield Finding(
        code="SW401",
        severity=Severity.NOTE,
        message=(
            f"{warps} {found.in_flight_bytes_per_sm / 1000:.3g} KB in flight where "
            f"{found.needed_bytes_per_sm / 1000:.3g} KB fill DRAM: the memory is busy {found.memory_busy * 100:.0f} % "
            "of the time (modelled)"
        ),
        advice="keep more in flight: more resident warps, wider loads, or more loads before their first use",
        instructions=tuple(site.instruction for site in loads),
        evidence=Evidence(
            "bytes in flight an SM", round(found.in_flight_bytes_per_sm), round(found.needed_bytes_per_sm)
        ),
    )
