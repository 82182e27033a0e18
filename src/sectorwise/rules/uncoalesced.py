"""The lanes of a warp lie apart in global memory, so that each moves a sector of 32 bytes for a few bytes of it.

## What it does

Reports loads, stores and atomics of global memory whose lanes touch more sectors than their bytes would fill, and
lie further apart than the fields of a record: along the wrong axis of a matrix, or wherever loaded indices point.

## Why it costs

Memory moves in sectors of 32 bytes. 32 lanes of 4 bytes side by side are 4 sectors; 32 lanes in different rows of a
matrix are 32, eight times the traffic for the same values. L1 may serve the rest of a sector later, if it is still
there: then DRAM is spared, but each request still takes its sectors through the L1 and L2.

## Example

```cuda
// sectorwise: launch column_sums<<<132, 32>>>(f32[4224*64], f32[4224], n=64)
extern "C" __global__ void column_sums(const float* rows, float* sums, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += rows[row * n + k];  // lanes step a whole row
    sums[row] = sum;
}
```

## Use instead

Let neighbouring lanes take neighbouring addresses: a warp a row, or the transpose through shared memory.

```cuda
// sectorwise: launch row_sums<<<1056, 128>>>(f32[4224*64], f32[4224], n=64)
extern "C" __global__ void row_sums(const float* rows, float* sums, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int k = lane; k < n; k += 32) sum += rows[row * n + k];  // lanes side by side
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[row] = sum;
}
```

## How it is computed

Sectors of a request are the distinct 32-byte blocks of its active lanes; the ideal is active lanes x width / 32,
rounded up, and never more than the sectors. The profiler shows both as L2 theoretical sectors global, and ideal.
A broadcast is no finding: all lanes at one address are one sector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.rules.causes import Cause, find_by_cause
from sectorwise.rules.requests import Wording, report_sectors
from sectorwise.rules.wording import ALONG_ROWS, advise_order, describe_sectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

_WORDING: Final = Wording(
    "SW101",
    describe_sectors,
    ALONG_ROWS,
    advise_order,
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line whose lanes lie scattered."""
    return report_sectors(model, find_by_cause(model, Cause.SCATTERED), _WORDING)
