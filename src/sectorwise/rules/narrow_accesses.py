"""The lanes take few bytes each where 16 would fit, so that a warp needs more instructions for the same bytes.

## What it does

Reports loads from global memory of less than 16 bytes a lane whose lanes lie side by side at multiples of 16 bytes, in
launches that leave the memory idle for want of bytes in flight (SW401).

## Why it costs

A request of 4 bytes a lane moves 128 bytes, one of 16 bytes 512: a quarter of the issue slots, and four times the
bytes in flight for each request that waits. On an H200 a copy of 2^26 floats, one element a thread, took 197
microseconds with 4-byte and 124 with 16-byte accesses.

## Example

```cuda
// sectorwise: launch total<<<132, 128>>>(f32[132*128*64], f32[132*128])
extern "C" __global__ void total(const float* in, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += in[k * 132 * 128 + i];
    out[i] = sum;
}
```

## Use instead

```cuda
// sectorwise: launch total_of_four<<<1056, 256>>>(f32[1056*256*8], f32[1056*256])
extern "C" __global__ void total_of_four(const float4* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 a = in[i], b = in[1056 * 256 + i];
    out[i] = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
}
```

## How it is computed

All lanes are active, lie side by side, and begin at a multiple of 16 bytes in every pattern that was kept; the issue
slots lost are the requests less those that 16 bytes a lane would need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.requests import find_sector_shape
from sectorwise.rules.streams import find_starved, list_global_loads

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from sectorwise.machine.execution import Site
    from sectorwise.model.kernel_model import KernelModel

_VECTOR_BYTES: Final = 16


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line."""
    if find_starved(model) is None:
        return
    lines: dict[Hashable, list[Site]] = {}
    for site in list_global_loads(model):
        if _could_be_wider(site):
            instruction = model.bound.kernel.instructions[site.instruction]
            lines.setdefault((instruction.location or instruction.index, site.access.width_bytes), []).append(site)
    for sites in lines.values():
        width_bytes = sites[0].access.width_bytes
        executed = sum(site.executed for site in sites)
        needed = -(-executed * width_bytes // _VECTOR_BYTES)
        yield Finding(
            code="SW103",
            severity=Severity.NOTE,
            message=(
                f"lanes load {width_bytes} B each, side by side: {executed:,} requests where {needed:,} of 16 B a lane "
                f"would do, {executed - needed:,} issue slots lost"
            ),
            advice="load vectors (float4, or 16 bytes of smaller elements), each thread neighbouring elements",
            instructions=tuple(site.instruction for site in sites),
            evidence=Evidence("instructions executed", executed, needed, executed),
        )


def _could_be_wider(site: Site) -> bool:
    if site.access.width_bytes >= _VECTOR_BYTES or not site.patterns:
        return False
    for pattern in site.patterns:
        shape = find_sector_shape(site, pattern)
        is_whole = shape.lanes == 32 and shape.step_bytes == site.access.width_bytes
        if not is_whole or shape.runs[0].start % _VECTOR_BYTES:
            return False
    return True
