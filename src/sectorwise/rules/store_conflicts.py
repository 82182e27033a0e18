"""The lanes of a store to shared memory write different words of one bank, and are served one after the other.

## What it does

Reports stores to shared memory that take more passes (wavefronts) than their bytes need.

## Why it costs

As for loads: each bank takes one word a cycle, and lanes that meet in a bank wait for each other. Stores never merge:
a 16-byte store takes four passes also where all lanes write one place.

## Example

```cuda
// sectorwise: launch turn<<<132, (32, 32)>>>(f32[132*1024], f32[132*1024])
extern "C" __global__ void turn(const float* in, float* out) {
    __shared__ float tile[32][32];
    int base = blockIdx.x * 1024;
    tile[threadIdx.x][threadIdx.y] = in[base + threadIdx.y * 32 + threadIdx.x];  // a column: one bank
    __syncthreads();
    out[base + threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.y][threadIdx.x];
}
```

## Use instead

```cuda
// sectorwise: launch turn_padded<<<132, (32, 32)>>>(f32[132*1024], f32[132*1024])
extern "C" __global__ void turn_padded(const float* in, float* out) {
    __shared__ float tile[32][33];
    int base = blockIdx.x * 1024;
    tile[threadIdx.x][threadIdx.y] = in[base + threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[base + threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.y][threadIdx.x];
}
```

## How it is computed

A pass takes 32 lanes of up to 4 bytes, 16 of 8, 8 of 16; it lasts as long as its fullest bank has different words.
The profiler shows the sum as L1 wavefronts shared; the ideal is active lanes x width / 128, rounded up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.rules.requests import Wording, find_conflicting, report_wavefronts
from sectorwise.rules.wording import PAD_ROWS, advise_layout, describe_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

_WORDING: Final = Wording(
    "SW202",
    describe_conflict,
    PAD_ROWS,
    advise_layout,
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line with conflicting stores."""
    return report_wavefronts(model, find_conflicting(model, (Operation.STORE,)), _WORDING)
