"""A lane accesses several bytes at an address that is no multiple of their number: the GPU stops with a fault.

## What it does

Reports accesses of 2 to 32 bytes a lane whose address is not a multiple of the width.

## Why it costs

This is wrong, not slow: the GPU raises "misaligned address" and the launch fails. It mostly follows from a cast to a
vector type of a pointer that is aligned for one element only, or from a padding that is no multiple of the vector.

## Example

```cuda
// sectorwise: launch copy_shifted<<<132, 128>>>(f32[132*512+8], f32[132*512])
extern "C" __global__ void copy_shifted(const float* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = reinterpret_cast<const float4*>(in + 1)[i];  // 4 bytes past a multiple of 16
}
```

## Use instead

```cuda
// sectorwise: launch copy_aligned<<<132, 128>>>(f32[132*512+8], f32[132*512])
extern "C" __global__ void copy_aligned(const float* in, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = reinterpret_cast<const float4*>(in + 8)[i];
}
```

## How it is computed

Each lane's address modulo the width of the access.
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
    """One finding for each line with a misaligned access."""
    return report_faults(
        model,
        FaultKind.MISALIGNED,
        "SW902",
        "keep the address a multiple of the vector's size, or use a narrower access",
    )
