"""The lanes of a warp are spread over several rows, each too short to fill the sectors that it touches.

## What it does

Reports accesses of global memory whose lanes form runs of equal length, less than a line of 128 bytes, which leave
parts of their sectors unused: mostly a block whose threadIdx.x is narrower than a sector.

## Why it costs

Four floats of a row are 16 bytes, half of a sector: a warp of eight such rows moves eight sectors instead of four, and
asks for eight lines instead of one.

## Example

```cuda
// sectorwise: launch scale<<<(64, 8), (4, 32)>>>(f32[256*256], n=256)
extern "C" __global__ void scale(float* a, int n) {
    int x = blockIdx.x * 4 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    a[y * n + x] *= 2;  // a warp is 8 rows of 16 bytes
}
```

## Use instead

Blocks whose threadIdx.x spans 32 lanes, or at least whole sectors.

```cuda
// sectorwise: launch scale_rows<<<(8, 64), (32, 4)>>>(f32[256*256], n=256)
extern "C" __global__ void scale_rows(float* a, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    a[y * n + x] *= 2;
}
```

## How it is computed

The active lanes of the request that costs most are joined to runs without gaps; all runs have the same length, longer
than one lane's bytes and shorter than 128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.rules.causes import Cause, find_by_cause
from sectorwise.rules.requests import Wording, report_sectors
from sectorwise.rules.wording import describe_sectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

_WORDING: Final = Wording(
    "SW106", describe_sectors, "widen the block along x, so that a warp covers whole rows of 128 bytes"
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line whose warps cover short rows."""
    return report_sectors(model, find_by_cause(model, Cause.SHORT_ROWS), _WORDING)
