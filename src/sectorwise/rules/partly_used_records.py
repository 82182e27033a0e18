"""The lanes of a warp take a small part of neighbouring records, and the sectors bring the rest of them too.

## What it does

Reports accesses of global memory whose lanes step a constant distance of less than 128 bytes that is longer than what
they take: one field of an array of records, or each thread's own run of elements.

## Why it costs

A field of 4 bytes in records of 48 is 32 sectors for a warp, an eighth of which is used. Where the same kernel takes
the other fields soon after, L1 serves them; where it does not, DRAM moves whole records for a field.

## Example

```cuda
// sectorwise: launch take_mass<<<132, 128>>>(f32[16896*12], f32[16896])
struct Body { float position[3], velocity[3], force[3], mass, charge, radius; };
extern "C" __global__ void take_mass(const Body* bodies, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = bodies[i].mass;  // 4 of 48 bytes
}
```

## Use instead

An array for each field, or records in groups: inner arrays of 32 bytes are enough for sectors, of 64 for DRAM. For
each thread's own run: let the lanes take turns, lane l the elements l, l + 32, ...

```cuda
// sectorwise: launch copy_mass<<<132, 128>>>(f32[16896], f32[16896])
extern "C" __global__ void copy_mass(const float* masses, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = masses[i];
}
```

## How it is computed

The step is the difference between neighbouring active lanes, in the request that costs the launch most; it must be
the same for all lanes. The used part is the width over the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.rules.causes import Cause, find_by_cause
from sectorwise.rules.requests import Wording, report_sectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.machine.execution import Pattern
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.rules.shapes import Shape


def _describe(shape: Shape, pattern: Pattern) -> str:
    step_bytes = abs(shape.step_bytes or 0)
    share = shape.width_bytes * 100 // step_bytes
    return (
        f"lanes take {shape.width_bytes} of each {step_bytes} B ({share} %): {pattern.sectors} sectors for "
        f"{shape.useful_bytes} useful bytes"
    )


_WORDING: Final = Wording(
    "SW105", _describe, "keep each field in an array of its own, or let lanes take turns over a thread's run"
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line whose lanes take a part of neighbouring records."""
    return report_sectors(model, find_by_cause(model, Cause.RECORDS), _WORDING)
