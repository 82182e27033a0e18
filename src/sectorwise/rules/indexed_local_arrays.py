"""An array of a thread is indexed at run time, so that it lies in local memory and not in registers.

## What it does

Reports loads and stores of local memory at computed addresses, and those at fixed places of the same stack.

## Why it costs

Registers cannot be indexed. An array whose index is not known when the kernel is compiled is kept in local memory:
each access goes through L1, and lanes with different indices touch different lines, up to one for each lane.

## Example

```cuda
// sectorwise: launch lookup<<<4, 128>>>(i32[512]=uniform(1), f32[512])
extern "C" __global__ void lookup(const int* index, float* out) {
    float table[16];
    int i = blockIdx.x * 128 + threadIdx.x;
    for (int k = 0; k < 16; ++k) table[k] = k * 0.5f + i;
    out[i] = table[index[i] & 15];  // not known before the launch
}
```

## Use instead

Unroll so that every index is a constant, or put the table into shared memory or compute its entry.

```cuda
// sectorwise: launch lookup_computed<<<4, 128>>>(i32[512]=uniform(1), f32[512])
extern "C" __global__ void lookup_computed(const int* index, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = (index[i] & 15) * 0.5f + i;
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
