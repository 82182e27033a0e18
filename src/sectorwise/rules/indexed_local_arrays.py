"""An array of a thread is indexed at run time, so that it lies in local memory and not in registers.

## What it does

Reports loads and stores of local memory at computed addresses, and those at fixed places of the same stack.

## Why it costs

Registers cannot be indexed. An array whose index is not known when the kernel is compiled is kept in local memory:
each access goes through L1, and lanes with different indices touch different lines, up to one for each lane.

## Example

```cuda
// sectorwise: launch find_last<<<132, 128>>>(i32[16896*8]=uniform(1), i32[16896])
extern "C" __global__ void find_last(const int* numbers, int* out) {
    int last[16] = {}, i = blockIdx.x * 128 + threadIdx.x;
    for (int k = 0; k < 8; ++k) last[numbers[k * 16896 + i] & 15] = k;  // not known before the launch
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum += last[k];
    out[i] = sum;
}
```

## Use instead

Unroll so that every index is a constant, or keep the array in shared memory, each lane's in a bank of its own.

```cuda
// sectorwise: launch find_last_in_shared<<<132, 128>>>(i32[16896*8]=uniform(1), i32[16896])
extern "C" __global__ void find_last_in_shared(const int* numbers, int* out) {
    __shared__ int last[16][128];
    int lane = threadIdx.x, i = blockIdx.x * 128 + lane, sum = 0;
    for (int k = 0; k < 16; ++k) last[k][lane] = 0;
    for (int k = 0; k < 8; ++k) last[numbers[k * 16896 + i] & 15][lane] = k;
    for (int k = 0; k < 16; ++k) sum += last[k][lane];
    out[i] = sum;
}
```

## How it is computed

The local sectors of all instructions that address the stack, in a kernel where at least one of them does so by a
register other than the stack pointer (R1). "0 bytes spilled" in a compiler's report does not exclude this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.rules.stack import find_stack_use, report_local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on all arrays of the kernel that lie in local memory."""
    use = find_stack_use(model)
    if use.arrays:
        yield report_local(
            model,
            use.arrays,
            "SW302",
            "an array that is indexed at run time lies in local memory",
            "unroll until every index is a constant, or keep the array in shared memory",
        )
