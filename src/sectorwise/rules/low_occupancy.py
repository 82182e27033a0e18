"""Registers or shared memory let fewer than half of the warps be resident that an SM could hold.

## What it does

Reports launches that could fill the SMs, but whose occupancy is below 50 % because of registers or shared memory, with
the nearest value at which one more block fits.

## Why it costs

Fewer warps hide less latency. Whether that costs depends on what each warp keeps in flight by itself: kernels with
large tiles in registers often run best at low occupancy. Hence a note.

## Example

```cuda
// sectorwise: launch tile<<<1056, 64>>>(f32[1056*64], f32[1056*64])
extern "C" __global__ void tile(const float* in, float* out) {
    __shared__ float staged[10000];  // 40,000 bytes for 64 threads: 5 blocks, 10 warps
    int i = blockIdx.x * 64 + threadIdx.x;
    staged[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = staged[63 - threadIdx.x];
}
```

## Use instead

```cuda
// sectorwise: launch small_tile<<<1056, 64>>>(f32[1056*64], f32[1056*64])
extern "C" __global__ void small_tile(const float* in, float* out) {
    __shared__ float staged[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    staged[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = staged[63 - threadIdx.x];
}
```

## How it is computed

As the CUDA occupancy calculator does, with the driver's choice of carve-out as measured; the next cliff is the nearest
value of the limiting resource, all else as it is, at which another block fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.model.cliffs import find_cliffs
from sectorwise.model.occupancy import Limiter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel

_LOW_PCT: Final = 50.0
_UNITS: Final = {Limiter.REGISTERS: "registers a thread", Limiter.SHARED: "B of shared memory a block"}


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch."""
    held = model.occupancy
    unit = _UNITS.get(held.limiter)
    if unit is None or held.theoretical_pct >= _LOW_PCT or model.pace.waves.waves < 1:
        return
    used = held.registers_per_thread if held.limiter is Limiter.REGISTERS else held.shared_bytes_per_block
    gain = find_cliffs(held, held.limiter).gain
    next_step = "" if gain is None else f"; {gain.blocks_per_sm} fit at {gain.last:,} or less"
    yield Finding(
        code="SW402",
        severity=Severity.NOTE,
        message=(
            f"occupancy {held.theoretical_pct:.4g} %: {held.blocks_per_sm} "
            f"block{'s' if held.blocks_per_sm != 1 else ''} an SM, for {used:,} {unit}{next_step}"
        ),
        advice=f"see whether fewer {unit} pay: more warps help where latency is not hidden otherwise",
        evidence=Evidence("theoretical occupancy, %", held.theoretical_pct, 100.0),
    )
