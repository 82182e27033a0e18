"""A tiled kernel is past the ridge at every level, and its tiles take the shared memory that more blocks could use.

## What it does

Reports kernels that stage tiles in shared memory, spend twice as long on arithmetic as any memory takes, have four
times the operations a byte that the ridge asks for at the L2, and let fewer blocks be resident for their shared memory
than other limits would.

## Why it costs

Past the ridge a larger tile saves bytes that nobody waits for. It still costs: one block on an SM cannot hide its own
barriers and its beginning and end, and few large blocks make the last wave uneven.

## Example

```cuda
// sectorwise: launch polynomials<<<264, 256>>>(f32[264*24576], f32[264*256])
extern "C" __global__ void polynomials(const float* in, float* out) {
    __shared__ float tile[12000];  // 48,000 bytes, of which a block needs 1,024 at a time
    float sum = threadIdx.x;
    for (int k = threadIdx.x; k < 12000; k += 256) tile[k] = in[blockIdx.x * 24576 + k];
    __syncthreads();
    for (int k = threadIdx.x; k < 12000; k += 256)
        for (int q = 0; q < 200; ++q) sum = sum * 0.999f + tile[k];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
```

## Use instead

```cuda
// sectorwise: launch polynomials_small<<<264, 256>>>(f32[264*24576], f32[264*256])
extern "C" __global__ void polynomials_small(const float* in, float* out) {
    __shared__ float tile[256];
    float sum = threadIdx.x;
    for (int k = threadIdx.x; k < 12000; k += 256) {
        tile[threadIdx.x] = in[blockIdx.x * 24576 + k];
        __syncthreads();
        for (int q = 0; q < 200; ++q) sum = sum * 0.999f + tile[threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
```

## How it is computed

The roofline of the launch, from its counts, and the occupancy calculator's limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.model.occupancy import Limiter
from sectorwise.model.roofline import Level
from sectorwise.rules.tiles import find_tiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel

_FAR_PAST: Final = 4.0


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch."""
    roofline, held = model.pace.kernel_roofline, model.occupancy
    place = next((place for place in roofline.places if place.level is Level.L2), None)
    memory_ns = max((each.least_ns for each in roofline.places if each.level is not Level.ISSUE), default=0.0)
    if 2 * memory_ns > roofline.compute_ns or place is None or place.intensity is None or not find_tiled(model):
        return
    ridge = model.pace.roofline.ridge(roofline.data_type, Level.L2)
    if place.intensity < _FAR_PAST * ridge or held.limiter is not Limiter.SHARED:
        return
    others = min(held.limit_warps, held.limit_registers, held.limit_blocks)
    yield Finding(
        code="SW501",
        severity=Severity.NOTE,
        message=(
            f"{place.intensity:.3g} {roofline.data_type} operations a byte at the L2, {place.intensity / ridge:.1f} "
            f"times the ridge, with {held.shared_bytes_per_block:,} B of shared memory a block: {held.blocks_per_sm} "
            f"resident where {others} could be"
        ),
        advice="make the tiles smaller: past the ridge they save what nobody waits for",
        evidence=Evidence("operations a byte at the L2", round(place.intensity, 3), round(ridge, 3)),
    )
