"""Two real reports of an H200 are read, equal what is executed, and carry the code that was profiled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sectorwise.analysis.profile import ProfiledText
from sectorwise.analyze import analyze
from sectorwise.binary.cubin import read_cubin
from sectorwise.cli.verify import find_profiled_launches
from sectorwise.frontends.report import find_cubins
from sectorwise.machine.execution import Engine, ExecutionOptions
from sectorwise.verify.codes import find_difference
from sectorwise.verify.pairing import list_own_code
from sectorwise.verify.reader import read_apart
from sectorwise.verify.reports import read_report
from tests.cli.commands import run

FOLDER = Path(__file__).parent
NAMES = ("transpose", "reduction")


def report_of(name: str) -> Path:
    return FOLDER / f"{name}.ncu-rep"


def test_a_report_is_read_whole() -> None:
    profile = read_report(report_of("transpose"))
    tile, padded = profile.launches
    assert (tile.name, tile.symbol, padded.name) == ("transpose_tile", "transpose_tile", "transpose_padded")
    assert (tile.grid, tile.block, tile.dynamic_shared_bytes) == ((4, 4, 1), (32, 8, 1), 0)
    assert (tile.device, tile.compute_capability, tile.registers_per_thread) == ("NVIDIA H200", (9, 0), 28)
    assert tile.has_source_view
    opcodes = [site.sass.split()[0].split(".")[0] for site in tile.sites]
    assert sorted(opcodes) == ["LDG"] * 4 + ["LDS"] * 4 + ["STG"] * 4 + ["STS"] * 4
    assert {site.wavefronts for site in tile.sites if site.sass.startswith("LDS")} == {4096}
    assert {site.wavefronts for site in padded.sites if site.sass.startswith("LDS")} == {128}
    assert {site.location.line for site in tile.sites if site.location is not None} == {11, 17}
    assert tile.totals["shared_load_wavefronts"] == 16_384
    assert tile.totals["global_load_sectors"] == 2_048
    assert tile.time_ns is not None
    assert 1_000 < tile.time_ns < 10_000


def test_reading_apart_gives_the_same() -> None:
    path = report_of("reduction")
    assert read_apart(path) == read_report(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_carries_the_cubin_that_was_profiled(name: str) -> None:
    (cubin,) = dict.fromkeys(find_cubins(report_of(name).read_bytes()))
    ours = {kernel.name: kernel for kernel in read_cubin((FOLDER / f"{name}.sm_90.cubin").read_bytes(), name).kernels}
    for kernel in read_cubin(cubin, "report").kernels:
        assert list_own_code(kernel) == list_own_code(ours[kernel.name])


@pytest.mark.parametrize("name", NAMES)
def test_the_code_that_the_report_prints_is_the_code_that_is_executed(name: str) -> None:
    ours = {kernel.name: kernel for kernel in read_cubin((FOLDER / f"{name}.sm_90.cubin").read_bytes(), name).kernels}
    for launch in read_report(report_of(name)).launches:
        assert find_difference(list_own_code(ours[launch.symbol]), launch.code) is None
        assert len(launch.code) == len(ours[launch.symbol].instructions)


@pytest.mark.parametrize(("name", "quantities", "sites"), [("transpose", 136, 32), ("reduction", 194, 56)])
def test_every_number_of_the_reports_is_equal(
    capsys: pytest.CaptureFixture[str], name: str, quantities: int, sites: int
) -> None:
    launches = ("--launches", FOLDER / f"{name}.json")
    for source in (FOLDER / f"{name}.sm_90.cubin", report_of(name)):
        outcome = run(capsys, "verify", source, *launches, "--report", report_of(name))
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.splitlines()[-1] == (
            f"all {quantities} quantities of {sites} memory instructions in 2 launches are equal"
        )


def test_instructions_that_are_alike_stand_in_one_row_with_their_sum(capsys: pytest.CaptureFixture[str]) -> None:
    """Four loads of 128 warps each, as `check` shows them: 32 passes where one would do."""
    arguments = (
        "verify",
        report_of("transpose"),
        "--launches",
        FOLDER / "transpose.json",
        "--kernel",
        "transpose_tile",
    )
    lines = run(capsys, *arguments).out.splitlines()
    place = next(number for number, line in enumerate(lines) if "shared load" in line)
    assert [line.split()[-4:] for line in lines[place : place + 3]] == [
        ["executed", "512", "512", "="],
        ["wavefronts", "16,384", "16,384", "="],
        ["wavefronts_ideal", "512", "512", "="],
    ]


def test_requests_without_an_active_lane_are_none_for_the_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 128 warps that issue the load, three have no element left: the source view has 128, the pipe 125."""
    arguments = ("verify", report_of("reduction"), "--launches", FOLDER / "reduction.json", "--format", "json")
    document = json.loads(run(capsys, *arguments).out)
    for kernel in document["kernels"]:
        (load,) = [site for site in kernel["sites"] if (site["space"], site["operation"]) == ("global", "load")]
        assert [each["counted"] for each in load["quantities"] if each["name"] == "executed"] == [128]
        (total,) = [each for each in kernel["totals"] if each["name"] == "global_load_requests"]
        assert (total["predicted"], total["counted"]) == (125, 125)


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.NATIVE])
def test_both_engines_tell_requests_without_an_active_lane(engine: Engine) -> None:
    path = FOLDER / "reduction.sm_90.cubin"
    analysis = analyze(path, FOLDER / "reduction.json", options=ExecutionOptions(engine=engine))
    for kernel in analysis.kernels:
        assert (kernel.sites[0].executed, kernel.totals.global_load_requests) == (128, 125)
        assert kernel.totals.global_red_requests == 16


def test_another_build_is_refused_with_its_instruction(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With tiles of 16 rows a thread moves two elements more or less: other code under the same names."""
    source = tmp_path / "transpose.cu"
    source.write_text((FOLDER / "transpose.cu").read_text().replace("kRows = 8", "kRows = 4"))
    launch = "transpose_tile<<<(4, 4), (32, 8)>>>(f32[128*128], f32[128*128], i32(128))"
    outcome = run(capsys, "verify", source, "--launch", launch, "--report", report_of("transpose"))
    assert outcome.code == 2
    assert "is of another build of transpose_tile: instruction " in outcome.err
    assert "in the report, and" in outcome.err


def test_check_shows_what_a_report_counted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    outcome = run(capsys, "check", "transpose.ncu-rep", "--kernel", "transpose_tile")
    assert outcome.code == 0
    assert "NVIDIA H200" in outcome.out
    (row,) = [line for line in outcome.out.splitlines() if "shared load" in line]
    assert row.split() == ["!", "shared", "load", "×4", "4", "512", "-", "-", "32.0", "1.0", "3", "%", "counted"]  # noqa: RUF001
    shown = " ".join(outcome.out.split())
    assert "/transpose.cu (text of transpose.cu)" in outcome.out
    assert "17 out[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];" in shown
    assert "shared memory 16,896 wavefronts 1,024 ideal 6 %" in shown
    document = json.loads(run(capsys, "check", report_of("transpose"), "--format", "json").out)
    assert [launch["name"] for launch in document["launches"]] == ["transpose_tile", "transpose_padded"]


def test_a_report_whose_source_is_not_there_has_line_numbers_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    alone = tmp_path / "alone.ncu-rep"
    alone.write_bytes(report_of("transpose").read_bytes())
    outcome = run(capsys, "check", alone)
    assert "/transpose.cu (source not found: line numbers only)" in outcome.out
    assert "\n   17\n" in outcome.out


def test_a_source_without_launches_is_told_those_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "verify", FOLDER / "transpose.cu", "--report", report_of("transpose"))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[1:] == [
        f"  --launch '{name}<<<(4, 4), (32, 8)>>>(f32[count], f32[count], i32(value))'"
        for name in ("transpose_tile", "transpose_padded")
    ]


COMMENTS = """
// sectorwise: launch transpose_tile<<<(4, 4), (32, 8)>>>(f32[128*128], f32[128*128], i32(128))
// sectorwise: launch another<<<(4, 4), (32, 8)>>>(f32[128*128])
// sectorwise: launch transpose_padded<<<(4, 4), (32, 8)>>>(f32[128*128], f32[128*128], i32(128))
"""


def test_a_report_is_verified_with_the_launches_that_its_source_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The text lies beside the report; what it launches of kernels that were not profiled is left out."""
    report, source = tmp_path / "t.ncu-rep", tmp_path / "transpose.cu"
    report.write_bytes(report_of("transpose").read_bytes())
    source.write_text((FOLDER / "transpose.cu").read_text() + COMMENTS)
    outcome = run(capsys, "verify", report, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    document = json.loads(outcome.out)
    assert [kernel["name"] for kernel in document["kernels"]] == ["transpose_tile", "transpose_padded"]
    (note,) = document["notes"]
    assert note.startswith("the launches are those of the comments of /transpose.cu, read from ")
    assert note.endswith("transpose.cu")
    source.write_text((FOLDER / "transpose.cu").read_text())
    assert run(capsys, "verify", report).code == 2


def test_comments_of_a_python_file_launch_nothing_of_a_report() -> None:
    profile = read_report(report_of("transpose"))
    text = ProfiledText(tuple(COMMENTS.replace("//", "#").splitlines()), None)
    texts = {"kernels.py": text, "kernels.cu": text}
    found = {name: find_profiled_launches(replace(profile, texts=texts), name) for name in texts}
    assert [len(launches) for launches in found.values()] == [0, 2]


def test_of_one_kernel_its_launches_alone_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "verify", report_of("transpose"), "--kernel", "transpose_padded")
    assert outcome.code == 2
    assert outcome.err.splitlines()[1:] == ["  --launch 'transpose_padded<<<(4, 4), (32, 8)>>>(...)'"]


def test_of_many_launches_the_first_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = read_report(report_of("transpose"))
    launches = tuple(replace(profile.launches[0], grid=(number, 1, 1)) for number in range(1, 31))
    monkeypatch.setattr("sectorwise.cli.verify.read_apart", lambda _path: replace(profile, launches=launches))
    lines = run(capsys, "verify", report_of("transpose")).err.splitlines()
    assert lines[1].startswith("  --launch 'transpose_tile<<<1, (32, 8)>>>")
    assert lines[20:] == [
        "  --launch 'transpose_tile<<<20, (32, 8)>>>(...)'",
        "  and 10 more; --kernel NAME shows those of one kernel",
    ]


def test_check_with_a_launch_executes_the_code_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("check", report_of("transpose"), "--launches", FOLDER / "transpose.json", "--format", "json")
    executed = json.loads(run(capsys, *arguments).out)
    counted = json.loads(run(capsys, "check", report_of("transpose"), "--format", "json").out)
    for mine, theirs in zip(executed["kernels"], counted["launches"], strict=True):
        assert [site["wavefronts"] for site in mine["sites"]] == [site["wavefronts"] for site in theirs["sites"]]


def test_a_report_that_is_cut_off_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(report_of("transpose").read_bytes()[:90_000])
    outcome = run(capsys, "check", path)
    assert outcome.code == 2
    assert "cut.ncu-rep" in outcome.err
