"""The lanes of an asynchronous copy meet in the banks of shared memory, or in those of L1 on the way.

## What it does

Reports cp.async that take more passes (wavefronts) than their bytes need.

## Why it costs

A copy through L1 (`.ca`) reads its source from banks of the L1 and writes its destination to banks of shared memory:
lanes that meet in either wait for each other. A copy around L1 (`.cg`) takes a pass for each line of 128 bytes that it
writes, and for each way in which its chunks are turned within the line.

## Example

```cuda
// sectorwise: launch fill<<<132, 32>>>(f32[132*32], f32[132*32])
extern "C" __global__ void fill(const float* in, float* out) {
    __shared__ float tile[32][32];
    int i = blockIdx.x * 32 + threadIdx.x;
    unsigned to = __cvta_generic_to_shared(&tile[threadIdx.x][0]);  // a column: one bank
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + i));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = tile[threadIdx.x][0];
}
```

## Use instead

```cuda
// sectorwise: launch fill_row<<<132, 32>>>(f32[132*32], f32[132*32])
extern "C" __global__ void fill_row(const float* in, float* out) {
    __shared__ float tile[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    unsigned to = __cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + i));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = tile[threadIdx.x];
}
```

## How it is computed

By the rules that reproduce the profiler's source view on an H200: for `.ca`, in groups of lanes that fill 128 bytes,
the most lanes that share a source bank or a destination bank with one lane; for `.cg`, in groups of eight lanes, the
distinct pairs of destination line and displacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.rules.requests import Wording, find_conflicting, report_wavefronts
from sectorwise.rules.shapes import describe_shape
from sectorwise.rules.wording import describe_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.machine.execution import Pattern
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.rules.shapes import Shape


def _describe(shape: Shape, pattern: Pattern) -> str:
    """Where the lanes write, and that they write in another order than they read, where that is all there is to it."""
    words = describe_conflict(shape, pattern)
    places = zip(pattern.addresses, pattern.shared_addresses or pattern.addresses, strict=True)
    moves = {to - of for lane, (of, to) in enumerate(places) if pattern.mask >> lane & 1}
    if len(shape.runs) > 1 or len(moves) == 1:
        return words
    side_by_side = describe_shape(shape)
    return words.replace(side_by_side, f"{side_by_side}, in another order than they read", 1)


_WORDING: Final = Wording(
    "SW204",
    _describe,
    "let the lanes of a copy fill whole lines of shared memory, in the order in which they read",
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line with conflicting copies."""
    return report_wavefronts(model, find_conflicting(model, (Operation.ASYNC_COPY,)), _WORDING)
