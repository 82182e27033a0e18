"""DRAM delivers 64 bytes for each sector of 32 that is missed alone, and half of what it delivers is not used.

## What it does

Reports launches that read 1 MiB or more from DRAM, at least a third more than what lies in sectors that loads want. It
needs the traffic model (`--caches`).

## Why it costs

The sectors of a request count 32 bytes each, but DRAM fetches pairs of them (measured on an H200). Lanes that step 64
bytes and more take one sector of each pair: twice the bytes that the sectors show, which are twice the bytes in use.

## Example

```cuda
// sectorwise: launch every_sixteenth<<<264, 128>>>(f32[264*128*16], f32[264*128])
extern "C" __global__ void every_sixteenth(const float* in, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = in[i * 16];  // one word of each 64 bytes
}
```

## Use instead

Keep what is used together side by side: at least 64 bytes of it.

```cuda
// sectorwise: launch packed<<<264, 128>>>(f32[264*128], f32[264*128])
extern "C" __global__ void packed(const float* in, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = in[i];
}
```

## How it is computed

Bytes that the cache model reads from DRAM, over those of them in sectors that loads ask for: at once, or later, when
the L2 has them because a neighbour was missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel

_LEAST_BYTES: Final = 1 << 20
_RATIO: Final = 4 / 3


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch, at the loads that miss most."""
    traffic = model.traffic
    if traffic is None or traffic.dram_bytes_read < _LEAST_BYTES:
        return
    wanted_bytes = traffic.wanted_bytes_read
    if not wanted_bytes or traffic.dram_bytes_read < _RATIO * wanted_bytes:
        return
    loads = sorted((site for site in traffic.sites if site.dram), key=lambda site: -site.dram)
    excess_bytes = traffic.dram_bytes_read - wanted_bytes
    yield Finding(
        code="SW108",
        severity=Severity.NOTE,
        message=(
            f"DRAM reads {traffic.dram_bytes_read:,} B for {wanted_bytes:,} B of sectors that loads ask for: "
            "sectors missed alone bring their neighbours (modelled)"
        ),
        advice="keep at least 64 bytes side by side of what is used together",
        instructions=tuple(site.instruction for site in loads),
        evidence=Evidence("DRAM bytes read", traffic.dram_bytes_read, wanted_bytes),
        cost_ns=excess_bytes / model.bound.device.memory_bandwidth_gbs,
    )
