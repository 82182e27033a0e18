"""Rows of bulk copies on both sides of what is worth saying."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from sectorwise.model.concurrency import Bound
from sectorwise.model.kernel_model import model_kernel
from sectorwise.rules.table import RULES, check_model
from tests.machine.launching import run
from tests.rules.manuals import read_sections

SOURCE = Path(__file__).parents[1] / "measured" / "tiles" / "tensor_copies.sm_90.cubin"
NO_PLACE = "0, 0, 0, 0, 0, 0, 0"


@pytest.mark.parametrize(
    ("launch", "evidence"),
    [
        (f"store_2<<<4, 128, 2048>>>(tensor_map(u32[64, 64], box=(4, 16)), 256, {NO_PLACE})", (64, 32, 4)),
        (f"store_2<<<4, 128, 2048>>>(tensor_map(u32[64, 64], box=(8, 16)), 512, {NO_PLACE})", None),
        # 48 bytes are a sector and a half; a third of such rows cross a line of shared memory in the middle of one.
        (f"load_2<<<4, 128, 2048>>>(tensor_map(u32[64, 64], box=(12, 16)), 768, {NO_PLACE}, u32[1024])", (136, 96, 4)),
        # From the middle of a sector on each line of shared memory ends in the middle of one: here every other range.
        ("store_range<<<4, 128, 1024>>>(u8[4096], 512, 544)", None),
        ("store_range<<<4, 128, 1024>>>(u8[4096], 512, 528)", (72, 64, 4)),
        # For two blocks at once a row of 32 bytes takes two sectors.
        (f"spread_2<<<4, 128, 2048>>>(tensor_map(u32[64, 64], box=(8, 16)), 512, {NO_PLACE}, u32[512])", (128, 64, 2)),
        (f"spread_2<<<4, 128, 2048>>>(tensor_map(u32[64, 64], box=(16, 8)), 512, {NO_PLACE}, u32[512])", None),
        ("prefetch_range<<<4, 128>>>(u8[4096], 16, 16)", None),
    ],
)
def test_rows_that_move_more_than_they_need(launch: str, evidence: tuple[int, int, int] | None) -> None:
    (kernel,) = analyze(SOURCE, launch).kernels
    found = [each for each in kernel.findings if each.code == "SW111"]
    assert bool(found) is (evidence is not None)
    for each in found:
        assert each.evidence is not None
        assert (each.evidence.real, each.evidence.ideal, each.evidence.requests) == evidence
        assert (each.copies, each.sites) == ((0,), ())
        assert ("several blocks" in each.message) is launch.startswith("spread")


def test_loads_beside_a_stream_of_copies_do_not_starve() -> None:
    """Nor is the latency of a few loads what such a launch waits for: its ring is judged by itself."""
    code = read_sections(next(rule for rule in RULES if rule.code == "SW408"))["Use instead"]
    code = code[code.index("#define") :].partition("```")[0]
    for before, after in (
        ("const float* in, float* out, int steps)", "const float* in, const float* few, float* out, int steps)"),
        ("float sum = 0;", "float sum = 0, scale = few[blockIdx.x * 128 + threadIdx.x];"),
        ("  // all have read it", "  sum *= scale, scale = few[((step + 1) * 132 + blockIdx.x) * 128 + threadIdx.x];"),
    ):
        assert before in code
        code = code.replace(before, after)
    text = "sum_slices<<<132, 128>>>(f32[132*64*1024], f32[132*128*65], f32[132*128], 64)"
    done = run(code, text)
    model = model_kernel(done.bound, done.execution)
    assert model.pace.concurrency is not None
    assert model.pace.concurrency.bound is Bound.LATENCY
    assert check_model(model) == ()
