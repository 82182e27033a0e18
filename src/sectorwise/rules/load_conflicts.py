"""The lanes of a load from shared memory want different words of one bank, and are served one after the other.

## What it does

Reports loads from shared memory that take more passes (wavefronts) than their bytes need.

## Why it costs

Shared memory has 32 banks of 4 bytes; each gives one word a cycle. A column of `float tile[32][32]` lies in one bank:
32 passes instead of one, and the pipe that they block serves global accesses too. Lanes at the same word share it:
a broadcast is no conflict. The four passes of a 16-byte load are its ideal.

## Example

```cuda
// sectorwise: launch transpose<<<132, (32, 32)>>>(f32[132*1024], f32[132*1024])
extern "C" __global__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][32];
    int base = blockIdx.x * 1024;
    tile[threadIdx.y][threadIdx.x] = in[base + threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[base + threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // a column: one bank
}
```

## Use instead

Pad the rows by one word, so that a column walks over the banks; or store (r, c) at column c ^ r.

```cuda
// sectorwise: launch transpose_padded<<<132, (32, 32)>>>(f32[132*1024], f32[132*1024])
extern "C" __global__ void transpose_padded(const float* in, float* out) {
    __shared__ float tile[32][33];
    int base = blockIdx.x * 1024;
    tile[threadIdx.y][threadIdx.x] = in[base + threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[base + threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
```

## How it is computed

A pass takes 32 lanes of up to 4 bytes, 16 of 8, 8 of 16; it lasts as long as its fullest bank has different words.
The profiler shows the sum as L1 wavefronts shared; the ideal is active lanes x width / 128, rounded up.
Loads of 8 and 16 bytes merge passes where lanes pair up on equal addresses; the source view's rule for that is used.
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
    "SW201",
    describe_conflict,
    PAD_ROWS,
    advise_layout,
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line with conflicting loads."""
    return report_wavefronts(model, find_conflicting(model, (Operation.LOAD,)), _WORDING)
