"""What findings say: how lanes lie in words, what is advised for it, and one finding for a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.analyze import analyze
from sectorwise.rules.shapes import describe_shape, find_shape
from sectorwise.rules.wording import ALONG_ROWS, PAD_ROWS, SORT, advise_layout, advise_order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sectorwise.analysis.data import FindingReport
    from sectorwise.rules.shapes import Shape

ALL = (1 << 32) - 1
SCATTERED = [64 * (lane * lane) for lane in range(32)]


def shape(addresses: Sequence[int], width_bytes: int = 4) -> Shape:
    return find_shape(addresses, ALL, width_bytes)


@pytest.mark.parametrize(
    ("addresses", "width_bytes", "words"),
    [
        ([4 * lane for lane in range(32)], 4, "32 lanes side by side"),
        ([0] * 32, 4, "all 32 lanes at one address"),
        ([128 * lane for lane in range(32)], 4, "lanes step 128 B"),
        ([lane // 16 * 2048 + lane % 16 * 4 for lane in range(32)], 4, "2 runs of 64 B 2,048 B apart"),
        ([lane // 2 * 32 for lane in range(32)], 16, "lanes in 16 places 32 B apart"),
        ([lane // 16 * 8192 + lane % 16 * 32 for lane in range(32)], 16, "lanes in 2 rows of 16 places 32 B apart"),
        ([4 * lane + (1000 if lane > 9 else 0) for lane in range(32)], 4, "lanes in 2 runs of 40 and 88 B"),
        (SCATTERED, 4, "lanes in 32 scattered places"),
    ],
)
def test_lanes_are_described_as_people_see_them(addresses: list[int], width_bytes: int, words: str) -> None:
    assert describe_shape(shape(addresses, width_bytes)) == words


def test_padding_is_advised_for_columns_only() -> None:
    assert advise_layout(shape([128 * lane for lane in range(32)])) == PAD_ROWS
    pieces = advise_layout(shape([lane // 2 * 32 for lane in range(32)], 16))
    assert pieces.startswith(
        "let neighbouring lanes take neighbouring pieces of 16 B, in turns, instead of 32 B in a row"
    )


def test_padding_is_blamed_where_a_pass_takes_several_rows() -> None:
    padded = [lane // 16 * 68 + lane % 16 * 4 for lane in range(32)]
    assert advise_layout(shape(padded)).startswith("rows of 64 B that a pass takes together meet by their padding")
    far = [lane // 16 * 2048 + lane % 16 * 4 for lane in range(32)]
    assert advise_layout(shape(far)) == PAD_ROWS


def test_lanes_without_any_order_are_to_be_sorted() -> None:
    assert advise_order(shape(SCATTERED)) == SORT
    assert advise_order(shape([256 * lane for lane in range(32)])) == ALONG_ROWS


def find(folder: Path, text: str, code: str) -> list[FindingReport]:
    source = folder / "kernel.cu"
    source.write_text(text, encoding="utf-8")
    (kernel,) = analyze(source).kernels
    return [finding for finding in kernel.findings if finding.code == code]


def test_sparse_lanes_of_an_unrolled_line_are_one_finding(tmp_path: Path) -> None:
    (finding,) = find(
        tmp_path,
        "// sectorwise: launch one<<<2, 64>>>(f32[2*64*8], f32[4])\n"
        'extern "C" __global__ void one(const float* in, float* out) {\n'
        "    if (threadIdx.x % 32) return;\n"
        "    float sum = 0;\n"
        "    for (int k = 0; k < 8; ++k) sum += in[(blockIdx.x * 64 + threadIdx.x) * 8 + 7 * k];\n"
        "    out[blockIdx.x * 2 + threadIdx.x / 32] = sum;\n"
        "}\n",
        "SW107",
    )
    assert finding.message == "global load: 1 of 32 lanes take part, 8 times a warp; 8 instructions"
    assert finding.evidence is not None
    assert (finding.evidence.real, finding.evidence.ideal, finding.evidence.requests) == (32, 1024, 32)
    assert len(finding.sites) == 8


def test_repeated_stores_of_an_unrolled_line_are_one_finding(tmp_path: Path) -> None:
    (finding,) = find(
        tmp_path,
        "// sectorwise: launch all<<<1, 64>>>(i32[64], i32[64])\n"
        'extern "C" __global__ void all(const int* in, int* out) {\n'
        "    for (int k = 0; k < 4; ++k) out[16 * k] = in[threadIdx.x];\n"
        "}\n",
        "SW110",
    )
    assert finding.message == "all 32 active lanes store to one address, 8 times, by 4 instructions"


def test_wrong_accesses_of_an_unrolled_line_are_one_finding(tmp_path: Path) -> None:
    (finding,) = find(
        tmp_path,
        "// sectorwise: launch past<<<1, 32>>>(f32[32*3], f32[32])\n"
        'extern "C" __global__ void past(const float* in, float* out) {\n'
        "    float sum = 0;\n"
        "    for (int k = 0; k < 6; ++k) sum += in[32 * k + threadIdx.x];\n"
        "    out[threadIdx.x] = sum;\n"
        "}\n",
        "SW901",
    )
    assert "; 96 lanes of 3 instructions, first block (0, 0, 0), warp 0, lane 0" in finding.message


def test_a_scan_has_no_tile_to_enlarge(tmp_path: Path) -> None:
    found = find(
        tmp_path,
        "// sectorwise: launch scan<<<8448, 256>>>(f32[8448*256], f32[8448*256])\n"
        'extern "C" __global__ void scan(const float* in, float* out) {\n'
        "    __shared__ float sums[256];\n"
        "    int i = blockIdx.x * 256 + threadIdx.x;\n"
        "    sums[threadIdx.x] = in[i];\n"
        "    for (int step = 1; step < 256; step *= 2) {\n"
        "        __syncthreads();\n"
        "        float add = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;\n"
        "        __syncthreads();\n"
        "        sums[threadIdx.x] += add;\n"
        "    }\n"
        "    out[i] = sums[threadIdx.x];\n"
        "}\n",
        "SW502",
    )
    assert found == []
