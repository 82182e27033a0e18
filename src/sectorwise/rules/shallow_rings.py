"""Bulk loads land in so little shared memory that too few bytes are in flight, and the memory waits for requests.

## What it does

Reports launches that load 4 MiB or more by bulk copies (TMA) into stages that are used over and over, where the stages
of all blocks that are resident on an SM hold fewer bytes than fill DRAM.

## Why it costs

Bandwidth is bytes in flight over latency, and no more is in flight than there is room for where it lands: a stage is
fetched anew only when its bytes have been used. An H200 read 1.5 TB/s through 8 KiB an SM, 2.3 through 16 KiB, 3.1
through 32 KiB and 3.7 through 64 KiB, in launches of 18 to 46 microseconds.

## Example

```cuda
// sectorwise: launch sum_slices<<<132, 128>>>(f32[132*64*1024], f32[132*128], steps=64)
#define SHARED(pointer) ((unsigned)__cvta_generic_to_shared(pointer))
constexpr int STAGES = 2;
extern "C" __global__ void sum_slices(const float* in, float* out, int steps) {
    __shared__ __align__(128) float slices[STAGES][1024];
    __shared__ unsigned long long full[STAGES];
    auto fetch = [&](int step) {
        unsigned to = SHARED(slices[step % STAGES]), barrier = SHARED(full + step % STAGES);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(barrier));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                     ::"r"(to), "l"(in + (step * 132 + blockIdx.x) * 1024), "r"(barrier) : "memory");
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SHARED(full + i)));
        for (int i = 0; i < STAGES; ++i) fetch(i);
    }
    __syncthreads();
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                     " @!done bra again; }" ::"r"(SHARED(full + step % STAGES)), "r"(step / STAGES % 2) : "memory");
        for (int i = 0; i < 8; ++i) sum += slices[step % STAGES][i * 128 + threadIdx.x];
        __syncthreads();  // all have read it
        if (threadIdx.x == 0 && step + STAGES < steps) fetch(step + STAGES);
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
```

## Use instead

More stages, larger ones, or more resident blocks: here eight stages of 4 KiB.

```cuda
// sectorwise: launch sum_slices<<<132, 128>>>(f32[132*64*1024], f32[132*128], steps=64)
#define SHARED(pointer) ((unsigned)__cvta_generic_to_shared(pointer))
constexpr int STAGES = 8;
extern "C" __global__ void sum_slices(const float* in, float* out, int steps) {
    __shared__ __align__(128) float slices[STAGES][1024];
    __shared__ unsigned long long full[STAGES];
    auto fetch = [&](int step) {
        unsigned to = SHARED(slices[step % STAGES]), barrier = SHARED(full + step % STAGES);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(barrier));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                     ::"r"(to), "l"(in + (step * 132 + blockIdx.x) * 1024), "r"(barrier) : "memory");
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SHARED(full + i)));
        for (int i = 0; i < STAGES; ++i) fetch(i);
    }
    __syncthreads();
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                     " @!done bra again; }" ::"r"(SHARED(full + step % STAGES)), "r"(step / STAGES % 2) : "memory");
        for (int i = 0; i < 8; ++i) sum += slices[step % STAGES][i * 128 + threadIdx.x];
        __syncthreads();  // all have read it
        if (threadIdx.x == 0 && step + STAGES < steps) fetch(step + STAGES);
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
```

## How it is computed

The bytes of a block's shared memory in which its bulk loads were seen to land, each counted once, times the blocks that
are resident; against the bytes in flight that keep DRAM 95 % busy, from the device's latency and its queue. What the L2
gives is not counted, nor is a launch reported that arithmetic, shared memory or the L2 hold up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.rules.streams import find_shallow_ring, list_bulk_loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch, at its bulk loads."""
    found = find_shallow_ring(model)
    if found is None:
        return
    ring, needed_bytes = found
    stages = "one stage" if ring.stages == 1 else f"{ring.stages} stages"
    blocks = "the block on an SM" if ring.blocks_per_sm == 1 else f"each of {ring.blocks_per_sm} blocks on an SM"
    loads = sorted(list_bulk_loads(model), key=lambda copies: -copies.sectors_l2)
    yield Finding(
        code="SW408",
        severity=Severity.NOTE,
        message=(
            f"bulk loads land in {stages}, {ring.window_bytes / 1000:.3g} KB, of {blocks}: "
            f"{ring.in_flight_bytes_per_sm / 1000:.3g} KB can be in flight where {needed_bytes / 1000:.3g} KB fill DRAM"
        ),
        advice="give the ring more stages or larger ones, or let more blocks be resident",
        instructions=tuple(copies.instruction for copies in loads),
        evidence=Evidence("bytes in flight an SM", ring.in_flight_bytes_per_sm, round(needed_bytes)),
    )
