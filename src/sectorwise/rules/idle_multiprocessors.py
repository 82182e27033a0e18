"""The launch has fewer blocks than the device has SMs, so that some of them do nothing at all.

## What it does

Reports launches with fewer blocks than SMs.

## Why it costs

Each idle SM takes its share of arithmetic, shared memory and bandwidth to L1 and L2 with it; few SMs cannot keep enough
in flight to fill DRAM either.

## Example

```cuda
// sectorwise: launch few<<<16, 1024>>>(f32[16384], f32[16384])
extern "C" __global__ void few(const float* in, float* out) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    out[i] = in[i] * 2;
}
```

## Use instead

Smaller blocks, or split the work along another axis (split-K with a reduction after it).

```cuda
// sectorwise: launch many<<<264, 64>>>(f32[16896], f32[16896])
extern "C" __global__ void many(const float* in, float* out) {
    int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = in[i] * 2;
}
```

## How it is computed

Blocks of the grid against the SMs of the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.findings import Evidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch."""
    blocks, sms = model.bound.launch.blocks_total, model.bound.device.sm_count
    if blocks < sms:
        yield Finding(
            code="SW404",
            severity=Severity.NOTE,
            message=f"{blocks} block{'s' if blocks != 1 else ''} on {sms} SMs: {sms - blocks} SMs have nothing to do",
            advice="use smaller blocks, or split the work along another axis",
            evidence=Evidence("blocks", blocks, sms),
        )
