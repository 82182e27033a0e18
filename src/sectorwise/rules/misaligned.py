"""The lanes of a warp lie side by side, but begin within a sector of 32 bytes, and so touch one sector too many.

## What it does

Reports accesses of global memory whose lanes cover gapless runs of bytes that would fill fewer sectors if they began
at a multiple of 32 bytes.

## Why it costs

32 lanes of 4 bytes that begin at byte 4 touch five sectors and not four: a quarter more traffic between L1 and L2.
Where the neighbouring warp needs the rest of the sector, L1 often serves it, and DRAM is spared.

## Example

```cuda
// sectorwise: launch shift<<<132, 128>>>(f32[20000], f32[20000], n=16896)
extern "C" __global__ void shift(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + 1];  // each warp straddles a fifth sector
}
```

## Use instead

Pad the pitch of rows to a multiple of 32 bytes (`cudaMallocPitch`), let a block begin at an aligned element, or load
the aligned piece into shared memory and shift there.

```cuda
// sectorwise: launch copy<<<132, 128>>>(f32[20000], f32[20000], n=16896)
extern "C" __global__ void copy(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
```

## How it is computed

The active lanes of a request are joined to runs without gaps. If the runs, each from a sector's beginning, would need
no more than the ideal sectors, misalignment is the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.rules.causes import Cause, find_by_cause
from sectorwise.rules.requests import Wording, report_sectors
from sectorwise.rules.shapes import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.machine.execution import Pattern
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.rules.shapes import Shape


def _describe(shape: Shape, pattern: Pattern) -> str:
    within = shape.runs[0].start % SECTOR_BYTES
    runs = "side by side" if len(shape.runs) == 1 else f"in {len(shape.runs)} runs"
    return (
        f"{shape.lanes} lanes {runs} begin {within} B into a sector: {pattern.sectors} sectors "
        f"where {pattern.sectors_ideal} would do"
    )


_WORDING: Final = Wording(
    "SW102", _describe, "begin at a multiple of 32 bytes: pad the pitch of rows, or shift in shared memory"
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line whose runs of lanes begin within a sector."""
    return report_sectors(model, find_by_cause(model, Cause.MISALIGNED), _WORDING)
