"""A tiled kernel is held up by a memory, and its block has room for larger tiles, which would use each byte more often.

## What it does

Reports kernels that stage what they load in shared memory, read it there four times or more, and are bound by DRAM, the
L2 or shared memory, while a block uses less than a quarter of the shared memory and of the registers that it might.

## Why it costs

With T x T tiles each byte is used T times as often, so that operations a byte grow with T until the ridge, from which
on arithmetic is the limit. At shared memory it is the tile of a thread, in registers, that counts.

## Example

```cuda
// sectorwise: launch product_16<<<(16, 16), (16, 16)>>>(f32[256*256], f32[256*256], f32[256*256], n=256)
extern "C" __global__ void product_16(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int q = 0; q < 16; ++q) sum += left[y][q] * right[q][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
```

## Use instead

Give each thread a tile of its own in registers, 8 x 8 for single precision, and the block 128 x 128.

```cuda
// sectorwise: launch product_128<<<(12, 11), 256>>>(f32[1408*16], f32[16*1536], f32[1408*1536], n=1536, depth=16)
extern "C" __global__ void __launch_bounds__(256)
product_128(const float* a, const float* b, float* c, int n, int depth) {
    __shared__ __align__(16) float rows[8][132], columns[8][128];
    const int t = threadIdx.x, row = t / 2, part = t % 2 * 4, x = t % 16 * 4, y = t / 16 * 8;
    float sum[8][8] = {};
    for (int k = 0; k < depth; k += 8) {
        float4 left = *reinterpret_cast<const float4*>(&a[(blockIdx.y * 128 + row) * depth + k + part]);
        rows[part][row] = left.x, rows[part + 1][row] = left.y;
        rows[part + 2][row] = left.z, rows[part + 3][row] = left.w;
        *reinterpret_cast<float4*>(&columns[t / 32][t % 32 * 4]) =
            *reinterpret_cast<const float4*>(&b[(k + t / 32) * n + blockIdx.x * 128 + t % 32 * 4]);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 8; ++q) {
            float4 r0 = *reinterpret_cast<float4*>(&columns[q][x]);
            float4 r1 = *reinterpret_cast<float4*>(&columns[q][x + 64]);
            float4 l0 = *reinterpret_cast<float4*>(&rows[q][y]), l1 = *reinterpret_cast<float4*>(&rows[q][y + 4]);
            float l[8] = {l0.x, l0.y, l0.z, l0.w, l1.x, l1.y, l1.z, l1.w};
            float r[8] = {r0.x, r0.y, r0.z, r0.w, r1.x, r1.y, r1.z, r1.w};
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += l[i] * r[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; j += 4)
            *reinterpret_cast<float4*>(&c[(blockIdx.y * 128 + y + i) * n + blockIdx.x * 128 + x + j * 16]) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}
```

## How it is computed

The least time at each level of the roofline, from the counts; a level that takes half as long again as the arithmetic
binds. Room is what the block leaves of the shared memory and registers that a block may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.device import require_capability
from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.model.roofline import Level
from sectorwise.rules.tiles import find_tiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.model.kernel_model import KernelModel

_BINDS: Final = 1.5
_ROOM: Final = 4
_LEAST_USES: Final = 4
_NAMES: Final = {Level.DRAM: "DRAM", Level.L2: "the L2", Level.L1: "L1 and shared memory"}


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding on the launch."""
    roofline = model.pace.kernel_roofline
    places = [place for place in roofline.places if place.level in _NAMES and place.intensity is not None]
    if not find_tiled(model, _LEAST_USES) or not places:
        return
    place = max(places, key=lambda place: place.least_ns)
    ridge = model.pace.roofline.ridge(roofline.data_type, place.level)
    if place.least_ns < max(_BINDS * roofline.compute_ns, roofline.least_ns) or not _has_room(model):
        return
    shared_bytes = model.occupancy.shared_bytes_per_block
    yield Finding(
        code="SW502",
        severity=Severity.NOTE,
        message=(
            f"{place.intensity:.3g} {roofline.data_type} operations a byte at {_NAMES[place.level]}, where the ridge "
            f"is {ridge:.3g}; a block uses {shared_bytes:,} B of shared memory and "
            f"{model.occupancy.registers_per_thread} registers a thread, so that larger tiles fit"
        ),
        advice="enlarge the tiles: of a block in shared memory, and of each thread in registers",
        evidence=Evidence(
            f"operations a byte at {_NAMES[place.level]}", round(place.intensity or 0, 3), round(ridge, 3)
        ),
    )


def _has_room(model: KernelModel) -> bool:
    capability = require_capability(model.bound.device)
    shared = _ROOM * model.occupancy.shared_bytes_per_block <= capability.shared_per_block_optin_bytes
    registers = _ROOM * model.occupancy.registers_per_thread <= capability.max_regs_per_thread
    return shared and registers
