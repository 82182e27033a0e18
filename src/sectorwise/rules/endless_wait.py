"""Warps wait for something that never comes, and nobody is left who could bring it: the launch hangs.

## What it does

Reports each line at which warps wait when none of the launch can go on: at a barrier to which the others do not come,
for an mbarrier whose phase does not end, in a loop that reads the same again and again.

## Why it costs

This is wrong, not slow. On a GPU the launch does not return: it is ended from outside, or by the watchdog of a display.
What is counted is what ran until then, and no time is given.

## Example

```cuda
// sectorwise: launch wait_for_all<<<132, 128>>>(u32[1], f32[132], f32[16896])
extern "C" __global__ void wait_for_all(unsigned* arrived, float* parts, float* out) {
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x;
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived <= gridDim.x) {}  // 132 blocks arrive, one more is waited for
    }
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = ((volatile float*)parts)[(blockIdx.x + 1) % 132];
}
```

## Use instead

```cuda
// sectorwise: launch meet<<<132, 128>>>(u32[1], f32[132], f32[16896])
extern "C" __global__ void meet(unsigned* arrived, float* parts, float* out) {
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x;
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < gridDim.x) {}
    }
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = ((volatile float*)parts)[(blockIdx.x + 1) % 132];
}
```

## How it is computed

The launch is executed. Warps whose registers, and all memory, are as they were when they last came to a place of their
loop would do the same for ever; where these are all that is left, or all others wait at barriers, the launch hangs. A
loop that changes something in each round, a counter for example, is ended by the step limit instead, with an error.

What the host, or another launch, writes meanwhile is not seen. Where a wait is for that, say so on its line:
`// sectorwise: allow SW903`.

It is a warning where values led there that are assumed, such as memory that nothing has written, or where blocks that
find no room on the device before these end might help. Where something is not known that might end the wait, it is no
finding: the report says so among what is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Finding, Severity
from sectorwise.machine.execution import Waiting

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from sectorwise.machine.execution import Hang
    from sectorwise.model.kernel_model import KernelModel

_ADVICE: Final = {
    Waiting.LOOP: "see who is to write what the loop reads, and that nobody ends or waits elsewhere before",
    Waiting.MBARRIER: "let as many arrive, and as many bytes be expected and copied, as the mbarrier was told",
    Waiting.BLOCK_BARRIER: "let as many threads come to the barrier as it waits for, whichever way they went",
    Waiting.CLUSTER_BARRIER: "let every thread of the cluster arrive, and wait as often as it arrived",
    Waiting.LANES: "name in the mask only lanes that come to this instruction",
}


_CAUSES: Final = frozenset((Waiting.LOOP, Waiting.MBARRIER))
"""Where there is one of these, who waits at a barrier or for lanes waits for those."""


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line at which warps wait for ever, for one thing; not where they wait for these."""
    lines: dict[Hashable, list[Hang]] = {}
    hangs = model.execution.hangs
    causes = [hang for hang in hangs if hang.waiting in _CAUSES]
    for hang in causes or hangs:
        instruction = model.bound.kernel.instructions[hang.instruction]
        place = instruction.location or instruction.index
        lines.setdefault((place, hang.waiting, hang.is_certain), []).append(hang)
    others = "; others wait at barriers for these" if 0 < len(causes) < len(hangs) else ""
    for group in lines.values():
        first = group[0]
        more = "" if len(group) == 1 else f" (and {sum(hang.warps for hang in group[1:]):,} more at this line)"
        yield Finding(
            code="SW903",
            severity=Severity.ERROR if first.is_certain else Severity.WARNING,
            message=f"{first.message}{more}{others}",
            advice=_ADVICE[first.waiting],
            instructions=tuple(hang.instruction for hang in group),
        )
