"""The table of docs/verify.md is what was recorded on an H200, and what was recorded comes out again where it runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.analysis.profile import PROFILE_SCHEMA, Profile
from sectorwise.analyze import analyze
from sectorwise.cli.verify import render_json
from sectorwise.verify import run as story
from tests.measured.rows import FOLDER
from tests.verify.rows import find_row, make_launch
from tools.write_verified import condense_run, replace_table, sum_by_line, write_row, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.analysis.data import MemorySite

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "h200.json").read_text(encoding="utf-8"))
LAUNCHES = [launch for run in RECORDED["runs"] for launch in run["launches"]]
SOURCES = {run["source"]: run for run in RECORDED["runs"] if "source" in run}
COUNTS = ("executed", "tag_requests", "sectors", "sectors_ideal", "sectors_local", "wavefronts", "wavefronts_ideal")


def test_the_page_has_the_table_of_the_record() -> None:
    assert replace_table(PAGE, write_table(RECORDED)) == PAGE
    for name in ("driver", "profiler"):
        assert RECORDED[name] in PAGE
    with pytest.raises(ValueError, match="the page has no"):
        replace_table("no comments", "")


def test_every_exact_number_was_equal_and_every_known_buffer() -> None:
    verdicts = sum((Counter(launch["verdicts"]) for launch in LAUNCHES), Counter[str]())
    assert verdicts["different"] == 0
    assert verdicts["equal"] > 7_000
    assert len(LAUNCHES) > 90
    assert [launch["kernel"] for launch in LAUNCHES if launch["buffers_differing"]] == []
    assert {run["gpu"] for run in RECORDED["runs"]} == {"NVIDIA H200"}


def test_the_readme_has_the_numbers_of_the_record() -> None:
    equal = sum(launch["verdicts"]["equal"] for launch in LAUNCHES)
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"`sectorwise verify` ran {len(LAUNCHES)} launches on an H200" in words
    assert f"all of {equal:,} exact numbers are equal" in words


def describe(sites: Sequence[MemorySite]) -> list[dict[str, Any]]:
    """Sites as documents have them, what is predicted in place of what is counted."""
    return [
        {
            "location": {"line": site.location.line},
            "space": str(site.space),
            "operation": str(site.operation),
            "width_bytes": site.width_bytes,
            "quantities": [{"name": name, "counted": getattr(site, name)} for name in COUNTS if getattr(site, name)],
        }
        for site in sites
        if site.location is not None
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_what_the_gpu_counted_for_the_examples_comes_out_line_by_line(source: str) -> None:
    launches = SOURCES[source]["launches"]
    kernels = analyze(ROOT / source, device="h200").kernels
    assert [kernel.name for kernel in kernels] == [launch["kernel"] for launch in launches]
    for kernel, launch in zip(kernels, launches, strict=True):
        assert sum_by_line(describe(kernel.sites)) == launch["counted"]


def test_a_row_tells_what_is_wrong_and_what_noise_is(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = {"global_load_sectors": 32_700, "shared_load_wavefronts": 262_145}
    profile = Profile(
        PROFILE_SCHEMA, "there.ncu-rep", "rows", (make_launch(find_row("transpose", "k_tr_tile"), totals),)
    )
    monkeypatch.setattr(story, "read_apart", lambda _path: profile)
    launch = "k_tr_tile<<<(16, 16), (32, 8)>>>(f32[262144], f32[262144], i32(512))"
    result = story.verify_report(
        lambda device: analyze(FOLDER / "transpose.sm_90.cubin", launch, device=device), Path("there.ncu-rep")
    )
    run = condense_run({"kernels": "tiles"}, json.loads(render_json(result)))
    (condensed,) = run["launches"]
    assert condensed["verdicts"]["different"] == condensed["verdicts"]["noise"] == 1
    cells = [cell.strip() for cell in write_row(run).strip("|").split("|")]
    assert cells[:3] == ["tiles", "1", str(len(find_row("transpose", "k_tr_tile").instructions))]
    assert "1, noise: `shared_load_wavefronts` of `k_tr_tile`, 262,145 for 262,144" in cells[4]
    assert "1, wrong: `global_load_sectors` of `k_tr_tile`, 32,700 for 32,768" in cells[4]
