from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sectorwise.model.occupancy import occupancy
from tests.cli.commands import run

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

KERNEL = 'extern "C" __global__ void twice(float* p) { p[threadIdx.x] *= 2.0f; }\n'


def test_the_report(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    sizes = ("--threads", 256, "--registers", 40, "--shared", "48K")
    outcome = run(capsys, "occupancy", *sizes, "--device", "h100-sxm", "--blocks", 1000)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == snapshot


def test_the_report_of_a_device_whose_driver_was_not_measured(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    outcome = run(capsys, "occupancy", "--threads", 96, "--registers", 255, "--device", "rtx4090", "--blocks", 100)
    assert outcome.code == 0
    assert outcome.out == snapshot


def test_the_document_has_the_fields_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "occupancy", "--threads", 256, "--registers", 28, "--shared", 4096, "--format", "json")
    document = json.loads(outcome.out)
    assert document["schema"] == "sectorwise.occupancy/1"
    shown = document["occupancy"]
    assert {name: shown[name] for name in ("limit_warps", "limit_registers", "limit_shared", "limit_blocks")} == {
        "limit_warps": 8,
        "limit_registers": 8,
        "limit_shared": 20,
        "limit_blocks": 32,
    }
    assert shown["limit_shared_max_carveout"] == 45
    assert shown["shared_config_bytes"] == 102_400
    assert (shown["blocks_per_sm"], shown["theoretical_pct"], shown["limiter"]) == (8, 100.0, "warps")
    assert document["cliffs"]["registers"]["loss"]["first"] == 33
    assert [step["first"] for step in document["curves"]["registers"]][:2] == [1, 33]
    assert document["waves"] is None


@pytest.mark.parametrize(
    ("written", "size_bytes"), [("48K", 49_152), ("48KiB", 49_152), ("49152", 49_152), ("1.5k", 1536)]
)
def test_sizes_can_be_written_with_a_unit(capsys: pytest.CaptureFixture[str], written: str, size_bytes: int) -> None:
    sizes = ("--threads", 64, "--registers", 32, "--shared", written, "--format", "json")
    outcome = run(capsys, "occupancy", *sizes)
    assert json.loads(outcome.out)["occupancy"]["shared_bytes_per_block"] == size_bytes
    assert json.loads(outcome.out)["occupancy"]["limit_shared"] == occupancy(64, 32, size_bytes).limit_shared


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--threads", 256), "give --threads and --registers"),
        (("--threads", 256, "--registers", 32, "--shared", "48Q"), "'48Q' is no size"),
        (("--threads", 1024, "--registers", 72), "8,192 too many; 64 a thread would fit"),
        (("--threads", 256, "--registers", 32, "--device", "h20"), "the nearest are h200-sxm"),
        (("--threads", 256, "--registers", 32, "--device", "mi300x"), "MI300X"),
        (("--threads", 256, "--registers", 32, "--blocks", 0), "blocks is 0; a grid has 1 to"),
        (("kernel.cu", "--maxrregcount", "32;48", "--threads", 32), "'32;48' is no list of numbers"),
        (
            ("kernel.cu", "--min-blocks", "two", "--threads", 32),
            "--min-blocks: 'two' is no list of numbers such as 1,2,4",
        ),
        (("kernel.cu", "--maxrregcount", "32"), "kernel.cu"),
        (("kernel.cu", "--maxrregcount", "32", "--shared", "1K"), "--shared goes with --threads"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...], said: str) -> None:
    outcome = run(capsys, "occupancy", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_register_limits_are_recompiled_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.cu"
    path.write_text(KERNEL)
    outcome = run(capsys, "occupancy", path, "--maxrregcount", "32,64", "--launch", "twice<<<1, 64>>>(f32[64])")
    assert outcome.code == 0
    title, _, head, *rows = outcome.out.splitlines()
    assert title == "twice, 64 threads a block, on H200 SXM 141GB (h200-sxm)"
    assert head.split()[:2] == ["limit", "registers"]
    assert [row.split()[0] for row in rows] == ["none", "32", "64"]
    document = json.loads(run(capsys, "occupancy", path, "--threads", 64, "--format", "json").out)
    assert [trial["limit"] for trial in document["trials"]] == [None]
    assert document["trials"][0]["totals"] is None
    assert document["trials"][0]["occupancy"]["limiter"] == "warps"


def test_launches_in_comments_are_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.cu"
    path.write_text(KERNEL)
    outcome = run(capsys, "occupancy", path, "--maxrregcount", "32")
    assert (outcome.code, outcome.out) == (2, "")
    assert "give --threads, or a --launch to execute" in outcome.err
    comment = "// sectorwise: launch {0}<<<2, 64>>>(f32[64])\n"
    path.write_text(comment.format("twice") + KERNEL)
    document = json.loads(run(capsys, "occupancy", path, "--maxrregcount", "32", "--format", "json").out)
    assert [trial["totals"]["global_load_requests"] for trial in document["trials"]] == [4, 4]
    both = comment.format("twice") + comment.format("thrice") + KERNEL + KERNEL.replace("twice", "thrice")
    path.write_text(both)
    outcome = run(capsys, "occupancy", path, "--maxrregcount", "32")
    assert outcome.code == 2
    assert "names 2 launches: choose a kernel with one launch by --kernel, or give a --launch:" in outcome.err
    assert "\n  thrice<<<2, 64>>>(f32[64])" in outcome.err
    outcome = run(capsys, "occupancy", path, "--maxrregcount", "32", "--kernel", "thrice")
    assert outcome.out.startswith("thrice, 64 threads a block, on H200")


def test_launch_bounds_are_a_line_each_and_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.cu"
    path.write_text(KERNEL)
    outcome = run(capsys, "occupancy", path, "--min-blocks", "1,32", "--threads", 64)
    assert outcome.code == 0
    *_, none, one, many, explained = outcome.out.splitlines()
    assert [line.split("  ")[0] for line in (none, one, many)] == ["none", "1 block", "32 blocks"]
    assert explained == "`2 blocks`: compiled with __launch_bounds__(64, 2) in place of what the kernel has"


def test_clusters_are_said_to_be_the_drivers_business(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "occupancy", "--threads", 256, "--registers", 32, "--cluster", 4)
    assert "clusters of 4 blocks: what they hold is an upper bound" in outcome.out
    source = tmp_path / "twice.cu"
    source.write_text(KERNEL.replace("void twice", "void __cluster_dims__(2, 2) twice"))
    outcome = run(capsys, "check", source, "--launch", "twice<<<(8, 2), 64>>>(f32[64])")
    assert "assumed: clusters fit like single blocks" in outcome.out


def test_help_lists_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "occupancy" in run(capsys, "--help").out
