"""A loop waits for each load before it begins the next, so that a warp has one request in flight at most.

## What it does

Reports loops whose loads from global memory are each waited for before another is issued, in launches that leave the
memory idle (SW401).

## Why it costs

A warp that waits hides nothing by itself. With four loads begun before the first is used, the same warps keep four
times as much in flight.

## Example

```cuda
// sectorwise: launch chase<<<132, 64>>>(f32[132*64*128], f32[132*64])
extern "C" __global__ void chase(const float* in, float* out) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 128; ++k) sum = sum * 0.5f + in[k * 132 * 64 + i];
    out[i] = sum;
}
```

## Use instead

Unroll, so that several loads are begun before the first is used; or load the next element before the last is used.

```cuda
// sectorwise: launch ahead<<<1056, 256>>>(f32[1056*256*8], f32[1056*256])
extern "C" __global__ void ahead(const float* in, float* out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum = sum * 0.5f + in[k * 1056 * 256 + i];
    out[i] = sum;
}
```

## How it is computed

From the scoreboards in the code: in an innermost loop, the instruction that waits for a load's result comes before the
next load is issued, for every load of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.findings import Finding, Severity
from sectorwise.model.schedule import NO_BARRIER, find_loops
from sectorwise.rules.streams import find_starved, list_global_loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.binary.ir import Instruction
    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each loop."""
    if find_starved(model) is None:
        return
    loading = {site.instruction: site for site in list_global_loads(model)}
    issued = [each for each in model.bound.kernel.instructions if model.execution.issued[each.index]]
    for loop in find_loops(issued):
        loads = [position for position, each in enumerate(loop) if each.index in loading]
        if loads and all(_is_awaited_first(loop, position, loads) for position in loads):
            times = loading[loop[loads[0]].index].executed
            yield Finding(
                code="SW406",
                severity=Severity.NOTE,
                message=f"each load of this loop is waited for before the next is begun; {times:,} times",
                advice="unroll the loop or load ahead, so that several loads are in flight before the first is used",
                instructions=tuple(loop[position].index for position in loads),
            )


def _is_awaited_first(loop: Sequence[Instruction], position: int, loads: Sequence[int]) -> bool:
    """Whether an instruction waits for the load's scoreboard before another load, or this one again, is issued."""
    barrier = loop[position].control.write_barrier
    if barrier == NO_BARRIER:
        return False
    for distance in range(1, len(loop)):
        following = (position + distance) % len(loop)
        if loop[following].control.wait_mask >> barrier & 1:
            return True
        if following in loads:
            return False
    return False
