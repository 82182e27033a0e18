"""The lanes of an atomic operation on shared memory meet in a bank, and are served one after the other.

## What it does

Reports atomics on shared memory that take more passes (wavefronts) than their bytes need.

## Why it costs

Atomics on one bank are carried out lane after lane, equal addresses included: a histogram whose values are alike takes
up to 32 passes for each request. Counting with `atomicAdd(p, 1)` is the exception: lanes of one word are counted
together.

## Example

```cuda
// sectorwise: launch histogram<<<132, 256>>>(i32[132*256], i32[132*256])
extern "C" __global__ void histogram(const int* values, int* out) {
    __shared__ int bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    int value = values[blockIdx.x * 256 + threadIdx.x];
    atomicMax(&bins[value & 7], value + 1 + (int)threadIdx.x);  // most lanes in one bin
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = bins[threadIdx.x];
}
```

## Use instead

Combine the lanes of a warp first (`__reduce_max_sync`, shuffles, `__match_any_sync`), or give each lane bins of its own
in its own bank.

```cuda
// sectorwise: launch histogram_spread<<<132, 256>>>(i32[132*256], i32[132*256])
extern "C" __global__ void histogram_spread(const int* values, int* out) {
    __shared__ int bins[8][32];
    bins[threadIdx.x / 32][threadIdx.x % 32] = 0;
    __syncthreads();
    int value = values[blockIdx.x * 256 + threadIdx.x];
    atomicMax(&bins[value & 7][threadIdx.x % 32], value + 1 + (int)threadIdx.x);  // a bank for each lane
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = bins[threadIdx.x / 32][threadIdx.x % 32];
}
```

## How it is computed

The most lanes that fall into one bank, equal addresses included (for ATOMS.POPC.INC, the most different words of one
bank), as the profiler's source view counts them on an H200; the ideal is active lanes x width / 128, rounded up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.rules.requests import Wording, find_conflicting, report_wavefronts
from sectorwise.rules.wording import describe_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

_WORDING: Final = Wording(
    "SW205",
    describe_conflict,
    "combine the lanes of a warp first, or give each lane bins in a bank of its own",
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line with atomics that wait for each other."""
    return report_wavefronts(
        model,
        find_conflicting(
            model,
            (
                Operation.ATOMIC,
                Operation.REDUCTION,
            ),
        ),
        _WORDING,
    )
