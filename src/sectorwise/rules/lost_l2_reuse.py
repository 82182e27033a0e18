"""What is used again has left the L2 before it is: DRAM is read more often than the buffers have bytes.

## What it does

Reports launches that read 1 MiB or more from DRAM, a third more than all buffers of the launch have bytes together.
It needs the traffic model (`--caches`).

## Why it costs

The order of blocks and loops decides how much lies between two uses of a byte. If that is more than the L2 holds, each
use comes from DRAM: a product of 4096 x 4096 matrices in tiles of 64 read 2.0 GB in the order of rows, and 0.7 GB in
groups of eight rows of blocks (measured on an H200).

## Example

```cuda
// sectorwise: launch two_passes<<<1056, 256>>>(f32[25165824], f32[1056*256], n=6291456)
extern "C" __global__ void two_passes(const float4* in, float* out, int n) {
    float sum = 0, squares = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1056 * 256) {
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1056 * 256) {
        float4 v = in[i];  // again, after 100 MB of others
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum + squares;
}
```

## Use instead

Use each byte as often as it is needed while it is near: fuse the passes, or go over pieces that fit.

```cuda
// sectorwise: launch one_pass<<<1056, 256>>>(f32[25165824], f32[1056*256], n=6291456)
extern "C" __global__ void one_pass(const float4* in, float* out, int n) {
    float sum = 0, squares = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1056 * 256) {
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum + squares;
}
```

## How it is computed

Bytes that the cache model reads from DRAM, over the sizes of all buffers: an upper bound of what has to be read once.
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
    buffers_bytes = sum(allocation.size_bytes for allocation in model.bound.allocations)
    if traffic.dram_bytes_read < _RATIO * buffers_bytes:
        return
    loads = sorted((site for site in traffic.sites if site.dram), key=lambda site: -site.dram)
    excess_bytes = traffic.dram_bytes_read - buffers_bytes
    yield Finding(
        code="SW405",
        severity=Severity.NOTE,
        message=(
            f"DRAM reads {traffic.dram_bytes_read:,} B, {traffic.dram_bytes_read / buffers_bytes:.2f} times the "
            f"{buffers_bytes:,} B of all buffers: what is used again has left the L2 (modelled)"
        ),
        advice="change the order of blocks or loops, so that what is used again is near: groups of rows, fused passes",
        instructions=tuple(site.instruction for site in loads),
        evidence=Evidence("DRAM bytes read", traffic.dram_bytes_read, buffers_bytes),
        cost_ns=excess_bytes / model.bound.device.memory_bandwidth_gbs,
    )
