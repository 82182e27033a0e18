"""Bulk copies take rows so short, or so placed, that they move more sectors than their bytes need.

## What it does

Reports instructions that copy tiles or ranges (TMA) whose sectors exceed what the same bytes take by a tenth or more:
the first extent of their boxes is less than a sector of 32 bytes, or no multiple of it; rows or ranges begin in the
middle of one, which costs a quarter however long they are; or rows of less than 64 bytes go to several blocks at once.

## Why it costs

A tile is moved row by row: each row takes whole sectors, and no two rows share one, even where they lie behind each
other in memory. Of rows of 16 bytes half of what is moved is wasted: an H200 took 14.1 microseconds for 16.8 MB in
such rows, and 13.2 for twice as much in rows of 128 bytes.

## Example

```cuda
// sectorwise: launch sum_columns<<<(256, 4), 128>>>(tensor_map(f32[1024, 1024], box=(4, 256)), f32[1024*1024/8])
struct __align__(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void sum_columns(const __grid_constant__ TensorMap map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long full;
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&full), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(barrier));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}],"
                     " [%4];"
                     ::"r"(to), "l"(&map), "r"((int)blockIdx.x * 4), "r"((int)blockIdx.y * 256), "r"(barrier)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }"
                 ::"r"(barrier) : "memory");
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += tile[i * 128 + threadIdx.x];
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 128 + threadIdx.x] = sum;
}
```

## Use instead

Boxes whose first extent is 64 bytes or more, or else a multiple of 32 that begins at one: here 128 bytes.

```cuda
// sectorwise: launch sum_columns<<<(32, 32), 128>>>(tensor_map(f32[1024, 1024], box=(32, 32)), f32[1024*1024/8])
struct __align__(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void sum_columns(const __grid_constant__ TensorMap map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long full;
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&full), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(barrier));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}],"
                     " [%4];"
                     ::"r"(to), "l"(&map), "r"((int)blockIdx.x * 32), "r"((int)blockIdx.y * 32), "r"(barrier)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }"
                 ::"r"(barrier) : "memory");
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += tile[i * 128 + threadIdx.x];
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 128 + threadIdx.x] = sum;
}
```

## How it is computed

Rows are cut into sectors as TMA cuts them (`docs/counting-rules.md`): every number that an H200 counted is equal. Ideal
is a sector for each 32 bytes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.machine.copy_forms import CopyOperation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.binary.ir import Location
    from sectorwise.machine.execution import BulkCopies
    from sectorwise.model.kernel_model import KernelModel

_WORTH_SAYING: Final = 1.1
"""Sectors over the ideal: a few such rows among many are no fault."""

_COUNTERS: Final = {
    CopyOperation.LOAD: "bulk_load_sectors",
    CopyOperation.STORE: "bulk_store_sectors",
    CopyOperation.REDUCTION: "bulk_reduction_sectors",
}


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line and kind of copies."""
    wasteful = [each for each in model.execution.bulk if _wastes(each)]
    instructions = model.bound.kernel.instructions

    def place(copies: BulkCopies) -> tuple[tuple[str, int], str]:
        found: Location | None = instructions[copies.instruction].location
        return ("", 0) if found is None else (found.file, found.line), copies.form.operation

    for _, group in groupby(sorted(wasteful, key=place), key=place):
        yield _report(sorted(group, key=lambda copies: copies.sectors_ideal - copies.sectors))


def _wastes(copies: BulkCopies) -> bool:
    known = copies.unknown_because is None and copies.form.operation in _COUNTERS
    return known and copies.sectors > _WORTH_SAYING * copies.sectors_ideal


def _report(group: list[BulkCopies]) -> Finding:
    real, ideal = sum(each.sectors for each in group), sum(each.sectors_ideal for each in group)
    row_bytes = min(each.row_bytes for each in group)
    spread = " to several blocks at once" if group[0].form.multicast else ""
    kind = {CopyOperation.REDUCTION: "sums"}.get(group[0].form.operation, f"{group[0].form.operation}s")
    return Finding(
        code="SW111",
        severity=Severity.WARNING,
        message=(
            f"bulk {kind} in rows of {row_bytes:,} bytes{spread} move {real / ideal:.3g} times the sectors that their "
            "bytes need"
        ),
        advice="make the first extent of the box 64 bytes or more, a multiple of 32, from a place that is one",
        instructions=tuple(each.instruction for each in group),
        evidence=Evidence(_COUNTERS[group[0].form.operation], real, ideal, sum(each.copies for each in group)),
    )
