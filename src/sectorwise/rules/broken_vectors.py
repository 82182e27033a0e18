"""The padding of a shared array is no multiple of 16 bytes, so that neighbouring words are loaded one by one.

## What it does

Reports loads from shared memory of 4 or 8 bytes a lane that together take 16 neighbouring bytes of each lane, where the
lanes' 16 bytes do not all begin at multiples of 16.

## Why it costs

The compiler makes one 16-byte load of four neighbouring words only where they are aligned. A pitch of 33 words removes
the conflicts of a column and breaks the vectors of a row: four instructions where one would do. A pitch of 36 keeps
both. A swizzle of single words keeps alignment, but changes the order of the words within a vector; swizzle chunks of
16 bytes instead.

## Example

```cuda
// sectorwise: launch rows_of_33<<<132, 32>>>(f32[132*1024], f32[132*32])
extern "C" __global__ void rows_of_33(const float* in, float* out) {
    __shared__ float tile[32][33];
    for (int k = 0; k < 32; ++k) tile[k][threadIdx.x] = in[blockIdx.x * 1024 + k * 32 + threadIdx.x];
    __syncwarp();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += tile[threadIdx.x][k];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
```

## Use instead

```cuda
// sectorwise: launch rows_of_36<<<132, 32>>>(f32[132*1024], f32[132*32])
extern "C" __global__ void rows_of_36(const float* in, float* out) {
    __shared__ __align__(16) float tile[32][36];
    for (int k = 0; k < 32; ++k) tile[k][threadIdx.x] = in[blockIdx.x * 1024 + k * 32 + threadIdx.x];
    __syncwarp();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += tile[threadIdx.x][k];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
```

## How it is computed

Loads of one source line are compared by the addresses of the first warp that issued each: those whose lanes all lie one
width further than another's make a run. A run of 16 bytes or more is reported where its lanes lie 16 bytes apart or
more, and begin at different places modulo 16.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.findings import Evidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from sectorwise.machine.execution import Site
    from sectorwise.model.kernel_model import KernelModel

_VECTOR_BYTES: Final = 16
_LANES: Final = 32


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line."""
    lines: dict[Hashable, list[Site]] = {}
    for site in model.execution.sites:
        if _is_narrow_load(site):
            instruction = model.bound.kernel.instructions[site.instruction]
            lines.setdefault((instruction.location or instruction.index, site.access.width_bytes), []).append(site)
    for sites in lines.values():
        broken = _find_broken(sites)
        width_bytes = sites[0].access.width_bytes
        needed = len(broken) * width_bytes // _VECTOR_BYTES
        if needed:
            executed = sum(site.executed for site in broken)
            yield Finding(
                code="SW206",
                severity=Severity.NOTE,
                message=(
                    f"{len(broken)} loads of {width_bytes} B take neighbouring words of each lane, which do not begin "
                    f"at multiples of 16 B: {needed} loads of 16 B would do"
                ),
                advice="pad rows by multiples of 16 bytes, or swizzle chunks of 16 bytes",
                instructions=tuple(site.instruction for site in broken),
                evidence=Evidence("instructions executed", executed, executed * width_bytes / _VECTOR_BYTES, executed),
            )


def _is_narrow_load(site: Site) -> bool:
    access = site.access
    narrow = access.operation is Operation.LOAD and access.width_bytes in {4, 8}
    return narrow and access.space is Space.SHARED and site.first is not None and site.unknown_because is None


def _find_broken(sites: list[Site]) -> list[Site]:
    """The sites that belong to runs of 16 bytes or more whose lanes begin at different places modulo 16."""
    by_place = {_place(site): site for site in sites}
    broken: list[Site] = []
    for place, site in by_place.items():
        width_bytes = site.access.width_bytes
        if _move(place, -width_bytes) in by_place:
            continue
        run = [site]
        while (following := by_place.get(_move(place, len(run) * width_bytes))) is not None:
            run.append(following)
        starts = {address % _VECTOR_BYTES for address in place[2]}
        if len(run) * width_bytes >= _VECTOR_BYTES and len(starts) > 1 and _are_rows(place[2]):
            broken += run
    return broken


def _are_rows(addresses: tuple[int, ...]) -> bool:
    """Whether lanes lie 16 bytes apart or more: windows that overlap cannot all be aligned."""
    return all(second - first >= _VECTOR_BYTES for first, second in pairwise(sorted(set(addresses))))


def _place(site: Site) -> tuple[int, int, tuple[int, ...]]:
    """Warp, mask and active addresses of the first request; other sites' are the same but for a distance."""
    first = site.first
    if first is None:
        return 0, 0, ()
    active = tuple(first.addresses[lane] for lane in range(_LANES) if first.mask >> lane & 1)
    return first.warp, first.mask, active


def _move(place: tuple[int, int, tuple[int, ...]], distance_bytes: int) -> tuple[int, int, tuple[int, ...]]:
    warp, mask, addresses = place
    return warp, mask, tuple(address + distance_bytes for address in addresses)
