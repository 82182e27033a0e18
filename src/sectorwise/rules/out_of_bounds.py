"""A lane accesses memory outside of every buffer, or past the shared memory of its block: the result is wrong.

## What it does

Reports the first access of each line that lies in no buffer of the launch, outside of the block's shared memory
or outside of the thread's stack, with line, lane and block, and how many lanes did likewise.

## Why it costs

This is wrong, not slow. On a GPU it faults, or silently reads and overwrites what lies there: allocations are rounded
up, so that small overruns often go unnoticed until they do not.

## Example

```cuda
// sectorwise: launch scale<<<132, 128>>>(f32[16800])
extern "C" __global__ void scale(float* values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] *= 2;  // 16,896 threads, 16,800 values
}
```

## Use instead

```cuda
// sectorwise: launch scale_guarded<<<132, 128>>>(f32[16800], n=16800)
extern "C" __global__ void scale_guarded(float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2;
}
```

## How it is computed

Each lane's address is compared with the buffers of the launch, which lie apart from each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.execution import FaultKind
from sectorwise.rules.faults import report_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line with an access outside."""
    return report_faults(
        model, FaultKind.OUT_OF_BOUNDS, "SW901", "guard the access, or check the sizes that the launch gives"
    )
