"""Whether two launches do the same work is said: of their outputs where both are there, else of what they store."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.comparison import compare_analyses
from sectorwise.analysis.reading import read_analysis
from sectorwise.analyze import analyze
from sectorwise.report import comparison as report
from sectorwise.report.html import compare as html
from sectorwise.report.json import render as render_json
from sectorwise.report.page import Page, Role
from tests.cli.commands import run

if TYPE_CHECKING:
    from sectorwise.analysis.comparison import Comparison
    from sectorwise.analysis.data import Analysis

SOURCE = r"""
extern "C" __global__ void forward(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += in[k * 1024 + blockIdx.x * 128 + threadIdx.x];
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void backward(const float* in, float* out) {
    float sum = 0;
    for (int k = 3; k >= 0; --k) sum += in[k * 1024 + blockIdx.x * 128 + threadIdx.x];
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void three(const float* in, float* out) {
    float sum = 0;
    for (int k = 0; k < 3; ++k) sum += in[k * 1024 + blockIdx.x * 128 + threadIdx.x];
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void again(const float* in, float* out) {
    volatile float* place = out + blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        sum += in[k * 1024 + blockIdx.x * 128 + threadIdx.x];
        *place = sum;
    }
}
extern "C" __global__ void staged(const float* in, float* out) {
    __shared__ float4 tile[128];
    float4 sum = {0, 0, 0, 0};
    if (threadIdx.x < 32) {
        for (int k = 0; k < 4; ++k) {
            float4 v = reinterpret_cast<const float4*>(in)[k * 256 + blockIdx.x * 32 + threadIdx.x];
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        tile[threadIdx.x] = sum;
        reinterpret_cast<float4*>(out)[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
    }
}
extern "C" __global__ void counts(const float* in, unsigned* out) {
    if (in[threadIdx.x] > 2) out[atomicAdd(out, 1u)] = threadIdx.x;
}
"""
TRANSPOSE = Path(__file__).parents[2] / "examples" / "transpose.cu"
FULL = "<<<8, 128>>>(f32[4096]=uniform(1), f32[1024])"
BLANK = "<<<8, 128>>>(f32[4096], f32[1024])"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("work") / "sums.cu"
    path.write_text(SOURCE, encoding="utf-8")
    return path


@cache
def look(source: Path, launch: str) -> Analysis:
    return analyze(source, launch, keep_outputs="small")


def compare(source: Path, before: str, after: str) -> Comparison:
    return compare_analyses(look(source, before), look(source, after))


def say(source: Path, before: str, after: str) -> str:
    (change,) = compare(source, before, after).kernels
    return report.describe_work(change.work)


def test_equal_outputs_are_said_to_be_equal(source: Path) -> None:
    assert say(source, f"forward{FULL}", f"forward{FULL}") == "both leave the same in all buffers, bit for bit"


def test_shared_memory_vectors_and_fewer_threads_are_no_other_work(source: Path) -> None:
    (change,) = compare(source, f"forward{FULL}", f"staged{FULL}").kernels
    assert report.describe_work(change.work) == "both leave the same in all buffers, bit for bit"
    assert (change.work.stored_bytes_before, change.work.stored_bytes_after) == (4096, 4096)


def test_another_order_of_a_sum_is_rounding(source: Path) -> None:
    (change,) = compare(source, f"forward{FULL}", f"backward{FULL}").kernels
    assert change.work.agrees is True
    given, left = look(source, f"forward{FULL}").kernels[0], look(source, f"backward{FULL}").kernels[0]
    assert given.outputs is not None
    assert left.outputs is not None
    rounded = int((given.outputs[1].values != left.outputs[1].values).sum())
    assert 0 < rounded < 1024
    assert (
        report.describe_work(change.work)
        == f"both leave the same in all buffers, but for rounding in {rounded} elements"
    )


def test_other_outputs_are_said_plainly_and_are_no_improvement(source: Path) -> None:
    comparison = compare(source, f"forward{FULL}", f"three{FULL}")
    (change,) = comparison.kernels
    said = report.describe_work(change.work)
    assert said.startswith("not the same work: 1,024 of 1,024 elements of argument 1 differ, the first at 0: ")
    assert "lanes store" not in said
    assert report.judge(replace(change, estimate_ns_before=2.0, estimate_ns_after=1.0)) is Role.QUIET
    assert "not the same work: 1,024" in report.render(comparison, Page())
    assert "not the same work: 1,024" in html.render(comparison)


def test_half_a_grid_leaves_half_of_it(source: Path) -> None:
    half = "forward<<<4, 128>>>(f32[4096]=uniform(1), f32[1024])"
    said = say(source, f"forward{FULL}", half)
    assert said.startswith("not the same work: 512 of 1,024 elements of argument 1 differ, the first at 512: ")
    assert said.endswith(", 0 after; lanes store 4.1 KB before and 2.05 KB after")
    words = {word.name: (word.before, word.after) for word in compare(source, f"forward{FULL}", half).kernels[0].words}
    assert words["grid"] == ("8", "4")


def test_stores_that_others_overwrite_are_the_same_work(source: Path) -> None:
    assert say(source, f"again{FULL}", f"forward{FULL}") == "both leave the same in all buffers, bit for bit"


def test_zeros_tell_nothing_of_outputs_but_what_is_stored_does(source: Path) -> None:
    zeros = "all buffers hold zeros, before and after: give them contents, such as `=uniform(1)`, to compare"
    assert say(source, f"forward{BLANK}", f"three{BLANK}") == zeros
    said = say(source, f"again{BLANK}", f"forward{BLANK}")
    stored = "lanes store 16.4 KB before and 4.1 KB after: the same work only if a place is stored to more often"
    assert said == f"{stored}; {zeros}"


def test_launches_with_other_buffers_are_not_compared(source: Path) -> None:
    more = "forward<<<8, 128>>>(f32[8192]=uniform(1), f32[1024])"
    assert say(source, f"forward{FULL}", more) == (
        "buffers are not compared, since the two launches are given other ones"
    )


def test_large_buffers_are_said_not_to_be_compared(source: Path) -> None:
    large = "forward<<<8, 128>>>(f32[17 << 20], f32[1024])"
    said = "buffers are not compared, since they were not kept (those of large launches are not)"
    assert say(source, large, large) == said


def test_what_depends_on_the_order_of_warps_is_not_compared(source: Path) -> None:
    counts = "counts<<<8, 128>>>(f32[128]=arange, u32[1024])"
    assert say(source, counts, counts).startswith("buffers are not compared, since ")


def test_documents_are_compared_by_what_they_store(source: Path, tmp_path: Path) -> None:
    read = []
    for launch in (f"again{FULL}", f"forward{FULL}", f"staged{FULL}"):
        document = tmp_path / "one.json"
        document.write_text(render_json(look(source, launch)), encoding="utf-8")
        read.append(read_analysis(document))
    again, forward, staged = read
    (change,) = compare_analyses(again, forward).kernels
    said = "lanes store 16.4 KB before and 4.1 KB after: the same work only if a place is stored to more often"
    assert (change.work.agrees, report.describe_work(change.work)) == (None, said)
    (alike,) = compare_analyses(forward, staged).kernels
    assert report.describe_work(alike.work) == ""


def test_large_launches_keep_no_outputs(source: Path) -> None:
    large = "forward<<<8, 128>>>(f32[20000000], f32[1024])"
    assert look(source, large).kernels[0].outputs is None
    assert look(source, f"forward{FULL}").kernels[0].outputs is not None


def test_the_command_compares_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "compare", TRANSPOSE, TRANSPOSE, "--kernel", "transpose_tile", "--kernel", "transpose_padded")
    assert outcome.code == 0
    assert "  both leave the same in all buffers, bit for bit\n" in outcome.out
