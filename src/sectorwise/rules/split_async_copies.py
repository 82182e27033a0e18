"""An asynchronous copy scatters what one sector holds over shared memory, and so moves the sector more than once.

## What it does

Reports cp.async around L1 (`.cg`, 16 bytes a lane) whose source sectors are few enough, but whose two halves go to
different blocks of 32 bytes in shared memory.

## Why it costs

Such a copy is served for each pair of source sector and destination block: a destination layout that parts the two
16-byte halves of a sector doubles the sectors that the copy moves.

## Example

```cuda
// sectorwise: launch split<<<132, 128>>>(f32[132*512], f32[132*512])
extern "C" __global__ void split(const float4* in, float4* out) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 128 + threadIdx.x;
    unsigned to = __cvta_generic_to_shared(&tile[threadIdx.x * 2]);  // every second chunk
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = tile[threadIdx.x * 2];
}
```

## Use instead

Keep neighbouring 16-byte chunks together in pairs: swizzle in units of 32 bytes, or pad whole rows.

```cuda
// sectorwise: launch together<<<132, 128>>>(f32[132*512], f32[132*512])
extern "C" __global__ void together(const float4* in, float4* out) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    unsigned to = __cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = tile[threadIdx.x];
}
```

## How it is computed

Sectors of a `.cg` copy are the distinct pairs of source sector and destination block, as the profiler counts them
(measured on an H200); the finding is made where the source sectors alone would not exceed the ideal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.rules.causes import Cause, find_by_cause
from sectorwise.rules.requests import Wording, report_sectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.machine.execution import Pattern
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.rules.shapes import Shape


def _describe(shape: Shape, pattern: Pattern) -> str:
    return (
        f"{shape.touched_sectors} source sectors go to shared memory in pieces: {pattern.sectors} sectors "
        f"where {pattern.sectors_ideal} would do"
    )


_WORDING: Final = Wording("SW109", _describe, "keep the two 16-byte halves of a sector together in shared memory")


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line whose copies are split."""
    return report_sectors(model, find_by_cause(model, Cause.SPLIT_COPY), _WORDING)
