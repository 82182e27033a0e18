"""Registers are spilled: values that found no register are written to local memory and read back.

## What it does

Reports loads and stores of local memory at fixed places of the stack, in kernels that keep no array there that is
indexed at run time.

## Why it costs

Local memory is global memory with a private address for each thread: each spilled word of a warp is a line of 128
bytes through L1, and beyond L1's size through L2 and DRAM. A spill in the inner loop can cost more than the occupancy
that the smaller number of registers has bought.

## Example

```cuda
// sectorwise: launch polynomials<<<132, 128>>>(f32[132*128*40], f32[16896])
extern "C" __global__ void __launch_bounds__(1024, 2) polynomials(const float* in, float* out) {
    float c[40];
    for (int k = 0; k < 40; ++k) c[k] = in[(blockIdx.x * 40 + k) * 128 + threadIdx.x];
    for (int round = 0; round < 3; ++round) {
#pragma unroll
        for (int k = 0; k < 40; ++k) c[k] = c[k] * c[(k * 7 + 3) % 40] + c[(k * 11 + 5) % 40];
    }
    float sum = 0;
    for (int k = 0; k < 40; ++k) sum += c[k];
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
```

## Use instead

Allow more registers (`__launch_bounds__`, `-maxrregcount`), or keep fewer values alive at once.

```cuda
// sectorwise: launch polynomials_in_registers<<<132, 128>>>(f32[132*128*40], f32[16896])
extern "C" __global__ void __launch_bounds__(128) polynomials_in_registers(const float* in, float* out) {
    float c[40];
    for (int k = 0; k < 40; ++k) c[k] = in[(blockIdx.x * 40 + k) * 128 + threadIdx.x];
    for (int round = 0; round < 3; ++round) {
#pragma unroll
        for (int k = 0; k < 40; ++k) c[k] = c[k] * c[(k * 7 + 3) % 40] + c[(k * 11 + 5) % 40];
    }
    float sum = 0;
    for (int k = 0; k < 40; ++k) sum += c[k];
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
```

## How it is computed

The local sectors of all memory instructions whose address is the stack pointer (R1) and a constant, where some load
reads those bytes back: stores that none does are arguments of calls, such as printf's. In a kernel that also addresses
the stack by computed addresses, such instructions may fill the array: then SW302 counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.rules.stack import find_stack_use, report_local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on all spills of the kernel."""
    use = find_stack_use(model)
    if use.spills:
        yield report_local(
            model,
            use.spills,
            "SW301",
            "registers are spilled",
            "allow more registers (__launch_bounds__, -maxrregcount), or keep fewer values alive at once",
        )
