"""Some blocks do much more than others, and SMs that have finished theirs wait for them.

## What it does

Reports launches whose blocks issue so different numbers of instructions that the launch takes at least a fifth longer
than with as much work in equal blocks.

## Why it costs

A block stays on its SM until its last warp ends. The longest block, or the SM that got several long ones last, decides
when the launch ends; the other SMs idle meanwhile.

## Example

```cuda
// sectorwise: launch triangle<<<264, 256>>>(f32[65536], f32[67584])
extern "C" __global__ void triangle(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < 8 * (int)blockIdx.x; ++k) sum += in[(k * 256 + threadIdx.x) & 65535];  // the last does most
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
```

## Use instead

Long blocks first, so that short ones fill what is left at the end; or a long and a short part of the work for each
block, as here; or smaller blocks that take work from a queue.

```cuda
// sectorwise: launch paired<<<132, 256>>>(f32[65536], f32[67584])
extern "C" __global__ void paired(const float* in, float* out) {
    for (int part = 0; part < 2; ++part) {
        int row = part ? 263 - blockIdx.x : blockIdx.x;
        float sum = 0;
        for (int k = 0; k < 8 * row; ++k) sum += in[(k * 256 + threadIdx.x) & 65535];
        out[row * 256 + threadIdx.x] = sum;
    }
}
```

## How it is computed

A block is as long as the warp instructions that it issued (of a sampled launch, those of the nearest block that ran).
Blocks are dealt in launch order, each to the place that is free first; the slowdown is the end of that over the end of
as many blocks of the mean length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel

_SLOWDOWN: Final = 1.2


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch."""
    balance = model.pace.balance
    if balance is None or balance.slowdown < _SLOWDOWN:
        return
    yield Finding(
        code="SW407",
        severity=Severity.NOTE,
        message=(
            f"blocks are uneven: block {balance.longest_block:,} issues {balance.longest_times:.3g} times the "
            f"instructions of the mean, and the launch takes up to {balance.slowdown:.3g} times as long as with equal "
            "blocks"
        ),
        advice="start long blocks first, give each a long and a short part, or let blocks take work from a queue",
        evidence=Evidence("instructions over the mean", round(balance.longest_times, 4), 1.0),
    )
