"""The eight rows of a matrix that ldmatrix or stmatrix takes share banks, and are served one after the other.

## What it does

Reports matrix loads and stores whose rows of 16 bytes do not lie in eight different columns of 16 bytes.

## Why it costs

Each 8x8 matrix of 16-bit elements is one pass over its eight rows, if these cover all 32 banks. Rows of 128 bytes all
begin in the same bank: eight passes a matrix.

## Example

```cuda
// sectorwise: launch take_rows<<<132, 32>>>(i32[132*32])
extern "C" __global__ void take_rows(int* out) {
    __shared__ __align__(128) unsigned short tile[32][64];
    for (int i = threadIdx.x; i < 2048; i += 32) tile[i / 64][i % 64] = i;
    __syncwarp();
    unsigned from = __cvta_generic_to_shared(&tile[threadIdx.x][0]);  // rows of 128 bytes
    int a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
    out[blockIdx.x * 32 + threadIdx.x] = a + b + c + d;
}
```

## Use instead

Pad the rows by 16 bytes (8 halves), or XOR the 16-byte chunk's number with the row modulo 8: `Swizzle<3,4,3>` on byte
offsets. A swizzle of single words would change the order within the chunks, and with it the values.

```cuda
// sectorwise: launch take_padded<<<132, 32>>>(i32[132*32])
extern "C" __global__ void take_padded(int* out) {
    __shared__ __align__(128) unsigned short tile[32][72];
    for (int i = threadIdx.x; i < 2048; i += 32) tile[i / 64][i % 64] = i;
    __syncwarp();
    unsigned from = __cvta_generic_to_shared(&tile[threadIdx.x][0]);  // rows of 144 bytes
    int a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
    out[blockIdx.x * 32 + threadIdx.x] = a + b + c + d;
}
```

## How it is computed

Lane 8 m + r gives the row r of matrix m. A matrix costs as many passes as its fullest bank has different words; the
ideal is one a matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.rules.requests import Wording, find_conflicting, report_wavefronts
from sectorwise.rules.wording import describe_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel

_WORDING: Final = Wording(
    "SW203",
    describe_conflict,
    "pad the rows by 16 bytes, or swizzle 16-byte chunks: Swizzle<3,4,3> on byte offsets of 128-byte rows",
)


def check(model: KernelModel) -> Iterator[Finding]:
    """One finding for each line with conflicting rows of matrices."""
    return report_wavefronts(
        model,
        find_conflicting(
            model,
            (
                Operation.MATRIX_LOAD,
                Operation.MATRIX_STORE,
            ),
        ),
        _WORDING,
    )
