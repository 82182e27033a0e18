"""The last wave of blocks fills few of the places that there are, and the whole device waits for it.

## What it does

Reports launches of more than one wave whose work, if each block takes as long alone as among others, takes at least a
fifth longer than if it were spread evenly.

## Why it costs

Blocks are dealt to the SMs as places become free. 133 blocks on 132 SMs that hold one each take twice as long as 132.

## Example

```cuda
// sectorwise: launch whole_sm<<<140, 1024, 200000>>>(f32[140*1024], f32[140*1024])
extern "C" __global__ void whole_sm(const float* in, float* out) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    out[i] = in[i] * 2;  // one block an SM: 132, then 8
}
```

## Use instead

A grid that is a multiple of what fits at once, smaller blocks, or blocks that stay and take work from a queue.

```cuda
// sectorwise: launch small_blocks<<<528, 256>>>(f32[528*256], f32[528*256])
extern "C" __global__ void small_blocks(const float* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = in[i] * 2;
}
```

## How it is computed

Waves are blocks over blocks an SM x SMs; the slowdown is the waves begun over the waves, for blocks of equal length.
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
    waves = model.pace.waves
    if waves.rounds < 2 or waves.slowdown_if_latency_bound < _SLOWDOWN:
        return
    yield Finding(
        code="SW403",
        severity=Severity.NOTE,
        message=(
            f"{waves.blocks:,} blocks are {waves.waves:.2f} waves of {waves.blocks_per_wave:,}: the last is "
            f"{waves.last_wave_pct:.3g} % full, up to {waves.slowdown_if_latency_bound:.2f} times the time of even work"
        ),
        advice="make the grid a multiple of a wave, or the blocks smaller, or let blocks stay and take work in turn",
        evidence=Evidence("waves per SM", round(waves.waves, 4), float(waves.rounds)),
    )
