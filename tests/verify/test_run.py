"""The command compares a whole report, says what differs, and exits with what it found."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.data import LimitationReport
from sectorwise.analysis.profile import PROFILE_SCHEMA, Profile
from sectorwise.analyze import analyze
from sectorwise.counting.request import Operation, Space
from sectorwise.errors import (
    ArgumentError,
    CountersForbiddenError,
    DeviceRunError,
    ProfilerError,
    ReportError,
    UnknownDeviceError,
)
from sectorwise.machine.execution import Certainty
from sectorwise.report.verification import render
from sectorwise.verify import run as story
from sectorwise.verify.devices import COMPARED, choose_device, find_device, warn_of_architecture
from sectorwise.verify.driver import Gpu
from sectorwise.verify.plan import RESULT_FILE, name_output
from sectorwise.verify.profiler import Profiler
from sectorwise.verify.sketches import sketch_launches
from tests.cli.commands import run
from tests.measured.rows import FOLDER
from tests.verify.rows import find_row, make_launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.analysis.data import Analysis

CUBIN = FOLDER / "transpose.sm_90.cubin"


def make_profile(totals: Mapping[str, int] | None = None) -> Profile:
    launch = make_launch(find_row("transpose", "k_tr_tile"), totals)
    return Profile(schema=PROFILE_SCHEMA, source="there.ncu-rep", reader="rows", launches=(launch,))


@pytest.fixture
def launch() -> str:
    """The measured launch, in notation."""
    case = find_row("transpose", "k_tr_tile").case
    sizes = [argument["size"] for argument in case["args"] if argument["kind"] == "buffer"]
    numbers = [argument["value"] for argument in case["args"] if argument["kind"] == "scalar"]
    arguments = [*(f"f32[{size}]" for size in sizes), *(f"i32({number})" for number in numbers)]
    return f"k_tr_tile<<<{tuple(case['grid'])}, {tuple(case['block'])}>>>({', '.join(arguments)})"


def test_an_equal_report_passes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, launch: str
) -> None:
    monkeypatch.setattr(story, "read_apart", lambda _path: make_profile())
    outcome = run(capsys, "verify", CUBIN, "--launch", launch, "--report", "there.ncu-rep")
    assert (outcome.code, outcome.err) == (0, "")
    assert "counted on NVIDIA H200 by there.ncu-rep" in outcome.out
    assert "memory instructions in 1 launch are equal" in outcome.out
    assert "!" not in outcome.out.replace("; ! marks", "")
    row = next(line for line in outcome.out.splitlines() if " shared_wavefronts " in line)
    assert row.split() == ["shared_wavefronts", "270,336", "270,336", "=", "source"]


def test_a_different_report_fails_and_marks_the_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, launch: str
) -> None:
    monkeypatch.setattr(story, "read_apart", lambda _path: make_profile({"global_load_sectors": 32_700}))
    outcome = run(capsys, "verify", CUBIN, "--launch", launch, "--report", "there.ncu-rep")
    assert outcome.code == 1
    (marked,) = [line for line in outcome.out.splitlines() if line.startswith("!")]
    assert marked.split() == ["!", "global_load_sectors", "32,768", "32,700", "-68", "pipe"]
    assert "1 of " in outcome.out.splitlines()[-2] or "1 of " in outcome.out.splitlines()[-1]


def test_the_document_has_every_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, launch: str
) -> None:
    monkeypatch.setattr(story, "read_apart", lambda _path: make_profile({"global_load_sectors": 32_700}))
    arguments = ("verify", CUBIN, "--launch", launch, "--report", "there.ncu-rep", "--format", "json")
    document = json.loads(run(capsys, *arguments).out)
    assert (document["schema"], document["passes"]) == ("sectorwise.verification/1", False)
    (kernel,) = document["kernels"]
    (wrong,) = [total for total in kernel["totals"] if total["verdict"] == "different"]
    assert wrong == {
        "name": "global_load_sectors",
        "metric": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "view": "pipe",
        "predicted": 32_768,
        "counted": 32_700,
        "difference": -68,
        "certainty": "exact",
        "verdict": "different",
    }
    assert len(kernel["sites"]) == len(find_row("transpose", "k_tr_tile").instructions)


def test_a_gpu_that_is_not_known_has_one_that_stands_for_it() -> None:
    spec, notes = find_device("NVIDIA H200", (9, 0))
    assert (spec.id, notes) == ("h200-sxm", ())
    spec, notes = find_device("NVIDIA GeForce RTX 3070", (8, 6))
    assert spec.compute_capability == (8, 6)
    assert "is not among the known devices" in notes[0]
    with pytest.raises(UnknownDeviceError, match=r"'NVIDIA Z' of compute capability 17\.3.*--device"):
        find_device("NVIDIA Z", (17, 3))


def test_what_was_never_verified_on_an_architecture_is_said() -> None:
    load, copy = (Space.GLOBAL, Operation.LOAD, 8), (Space.GLOBAL, Operation.ASYNC_COPY, 16)
    assert warn_of_architecture((9, 0), {copy}) == ()
    (note,) = warn_of_architecture((8, 6), {load})
    assert "of 8.6 in 15 launches of public reports: a difference may be" in note
    (note,) = warn_of_architecture((8, 6), {load, copy, (Space.SHARED, Operation.LOAD, 4)})
    assert ", none with a global async copy of 16 B, shared load of 4 B: a difference may be" in note
    (note,) = warn_of_architecture((12, 0), {load})
    assert "compute capability 9.0 throughout, with none of 12.0: a difference may be" in note


def test_the_page_counts_the_launches_of_public_reports_as_the_note_does() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| .* \((\d)\.(\d)\) \| (\d+), \d+ \|", page, re.MULTILINE)
    launches: Counter[tuple[int, int]] = Counter()
    for major, minor, number in rows:
        launches[int(major), int(minor)] += int(number)
    assert launches == {capability: each.launches for capability, each in COMPARED.items()}


def test_a_device_of_another_architecture_than_the_one_that_counts_is_refused() -> None:
    assert choose_device("NVIDIA H200", (9, 0), "h100") == ("h100", ())
    with pytest.raises(ArgumentError, match=r"--device a100: .* has compute capability 8\.0, but NVIDIA H200, .* 9\.0"):
        choose_device("NVIDIA H200", (9, 0), "a100")


@pytest.mark.parametrize(
    ("name", "capability", "identifier"),
    [
        ("NVIDIA H100 80GB HBM3", (9, 0), "h100-sxm"),
        ("NVIDIA H100 PCIe", (9, 0), "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", (8, 0), "a100-80-sxm"),
        ("NVIDIA A100-SXM4-40GB", (8, 0), "a100-40-sxm"),
        ("NVIDIA GeForce RTX 4090", (8, 9), "rtx4090"),
        ("Tesla T4", (7, 5), "t4"),
    ],
)
def test_names_of_drivers_find_their_devices(name: str, capability: tuple[int, int], identifier: str) -> None:
    assert find_device(name, capability)[0].id == identifier


def play_gpu(folder: Path, analysis: Analysis, *, wrong_bit: bool) -> None:
    """Leave what a GPU would leave that computes what was executed, but for one bit of the output."""
    (kernel,) = analysis.kernels
    for place, output in enumerate(kernel.outputs or ()):
        data = bytearray(output.values.tobytes())
        if wrong_bit and place == 1:
            data[min(4 * 77 + 3, len(data) - 1)] ^= 0x40
        (folder / name_output(0, place)).write_bytes(data)
    result = {"gpu": "NVIDIA H200", "driver": "CUDA 13.0", "times_ns": [[3000.0, 1000.0, 2000.0]]}
    (folder / RESULT_FILE).write_text(json.dumps(result))


def forbid_counters(monkeypatch: pytest.MonkeyPatch, folder: Path, analysis: Analysis, *, wrong_bit: bool) -> None:
    """A machine with a GPU whose counters may not be read, and which computes what was executed, but for a bit."""

    def refuse(*_arguments: object) -> None:
        raise CountersForbiddenError("no permission")

    monkeypatch.setattr(story, "open_driver", lambda: None)
    monkeypatch.setattr(story, "describe_gpu", lambda _driver: Gpu("NVIDIA H200", (9, 0), "CUDA 13.0"))
    monkeypatch.setattr(story, "find_profiler", lambda _ncu: Profiler(folder / "ncu", (2025, 3, 1)))
    monkeypatch.setattr(story, "profile", refuse)
    monkeypatch.setattr(story, "_launch", lambda command: play_gpu(Path(command[-1]), analysis, wrong_bit=wrong_bit))


@pytest.mark.parametrize("wrong_bit", [False, True])
def test_where_counters_are_forbidden_outputs_and_times_are_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, launch: str, *, wrong_bit: bool
) -> None:
    analysis = analyze(CUBIN, launch, device="h200", keep_outputs=True)
    forbid_counters(monkeypatch, tmp_path, analysis, wrong_bit=wrong_bit)
    result = story.verify_here(lambda _device: analysis)
    (kernel,) = result.kernels
    assert "no counter was read; outputs and times are compared alone: no permission" in result.notes
    assert (kernel.sites, kernel.totals, kernel.time_ns, kernel.notes) == ((), (), 2000.0, ())
    assert kernel.outputs is not None
    assert [output.differing for output in kernel.outputs] == [0, int(wrong_bit)]
    assert result.passes is not wrong_bit
    if wrong_bit:
        assert kernel.outputs[1].first == 77


def test_module_variables_stand_in_one_row_where_they_are_equal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "counted.cu"
    source.write_text(
        "__device__ int calls; __device__ float last[32];\n"
        'extern "C" __global__ void note(float* out) { calls = 1; last[threadIdx.x] = out[threadIdx.x] = 2.0f; }\n'
    )
    analysis = analyze(source, "note<<<1, 32>>>(f32[32])", device="h200", keep_outputs=True)
    for wrong_bit in (False, True):
        forbid_counters(monkeypatch, tmp_path, analysis, wrong_bit=wrong_bit)
        result = story.verify_here(lambda _device: analysis)
        (kernel,) = result.kernels
        assert kernel.outputs is not None
        assert [(each.is_variable, each.differing) for each in kernel.outputs] == [
            (False, 0),
            (True, int(wrong_bit)),
            (True, 0),
        ]
        lines = [line.strip() for line in render(result).splitlines()]
        assert "buffer argument 0: 32 f32 equal" in lines
        assert ("2 module variables equal" in lines, "1 module variable equal" in lines) == (not wrong_bit, wrong_bit)
        assert any("1 of 3 buffers and module variables differ" in line for line in lines) is wrong_bit


@pytest.mark.parametrize("doubt", ["unknown", "sampled", "order"])
def test_buffers_that_are_not_known_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, launch: str, doubt: str
) -> None:
    """The GPU leaves another bit, which proves nothing where what was executed is not what has to be there."""
    analysis = analyze(CUBIN, launch, device="h200", keep_outputs=True)
    (kernel,) = analysis.kernels
    match doubt:
        case "unknown":
            limitation = LimitationReport(
                site=None, offset="0x0100", location=None, because="HGMMA: its results are unknown"
            )
            kernel = replace(kernel, limitations=(limitation,))
        case "sampled":
            kernel = replace(kernel, coverage=replace(kernel.coverage, certainty=Certainty.SAMPLED))
        case _:
            site = replace(kernel.sites[0], certainty=Certainty.SCHEDULE_DEPENDENT)
            kernel = replace(kernel, sites=(site, *kernel.sites[1:]))
    analysis = replace(analysis, kernels=(kernel,))
    forbid_counters(monkeypatch, tmp_path, analysis, wrong_bit=True)
    result = story.verify_here(lambda _device: analysis)
    (compared,) = result.kernels
    assert (result.passes, compared.outputs) == (True, None)
    *reasons, note = compared.notes
    assert reasons == (["HGMMA: its results are unknown"] if doubt == "unknown" else [])
    words = {"unknown": "not all is known of this launch", "sampled": "a sample of the blocks", "order": "the order in"}
    assert note.startswith("buffers are not compared, since ")
    assert words[doubt] in note
    assert note.split()[-1] in render(result)


@pytest.mark.parametrize("refusal", [ProfilerError, CountersForbiddenError])
def test_a_launch_that_fails_on_the_gpu_is_told_in_the_words_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refusal: type[ProfilerError]
) -> None:
    """The profiler says `LaunchFailed` alone; what was executed here knows the line and the lane."""
    source = tmp_path / "wild.cu"
    source.write_text('extern "C" __global__ void wild(float* out, long long n) { out[n + threadIdx.x] = 1.0f; }\n')
    analysis = analyze(source, "wild<<<1, 32>>>(f32[32], 1000000000)", device="h200", keep_outputs=True)
    forbid_counters(monkeypatch, tmp_path, analysis, wrong_bit=False)

    def refuse(*_arguments: object) -> None:
        raise refusal("LaunchFailed")

    def fail(_command: object) -> None:
        raise DeviceRunError("launch 0 (wild) failed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(story, "profile", refuse)
    monkeypatch.setattr(story, "_launch", fail)
    with pytest.raises(DeviceRunError) as raised:
        story.verify_here(lambda _device: analysis)
    text = str(raised.value)
    assert text.startswith("launch 0 (wild) failed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS; executed here: ")
    assert "argument 0" in text


def test_what_the_profiler_says_stands_where_the_launches_alone_succeed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, launch: str
) -> None:
    analysis = analyze(CUBIN, launch, device="h200", keep_outputs=True)
    forbid_counters(monkeypatch, tmp_path, analysis, wrong_bit=False)

    def refuse(*_arguments: object) -> None:
        raise ProfilerError("made no report")

    monkeypatch.setattr(story, "profile", refuse)
    with pytest.raises(ProfilerError, match=r"^made no report$"):
        story.verify_here(lambda _device: analysis)


def test_a_total_that_is_unknown_in_part_says_so_and_why(monkeypatch: pytest.MonkeyPatch, launch: str) -> None:
    analysis = analyze(CUBIN, launch, device="h200")
    (kernel,) = analysis.kernels
    limitation = LimitationReport(site=None, offset="0x0100", location=None, because="HGMMA: its reads are not counted")
    kernel = replace(kernel, limitations=(limitation, limitation))
    monkeypatch.setattr(story, "read_apart", lambda _path: make_profile({"shared_load_wavefronts": 300_000}))
    result = story.verify_report(lambda _device: replace(analysis, kernels=(kernel,)), Path("there.ncu-rep"))
    lines = render(result).splitlines()
    row = next(line for line in lines if line.strip().startswith("shared_load_wavefronts"))
    assert row.split()[-5:] == ["+37,856", "pipe", "unknown", "in", "part"]
    assert [line for line in lines if "HGMMA" in line] == ["  note: HGMMA: its reads are not counted"]
    assert result.passes


def test_launches_that_were_not_all_profiled_are_refused(launch: str) -> None:
    analysis = analyze(CUBIN, [launch, launch], device="h200")
    with pytest.raises(ReportError, match="2 launches were made, 1 were profiled"):
        story._check_profile(analysis, make_profile())  # noqa: SLF001 - what the run does with the profiler's report
    twice = replace(make_profile(), launches=make_profile().launches * 2)
    story._check_profile(analysis, twice)  # noqa: SLF001 - as above


def test_a_report_alone_says_what_to_fill_in() -> None:
    launch = make_launch(find_row("transpose", "k_tr_tile"))
    mangled = replace(launch, symbol="_Z3sumPKfPfi", grid=(8, 1, 1), block=(16, 2, 2), dynamic_shared_bytes=64)
    profile = replace(make_profile(), launches=(launch, mangled, launch))
    assert sketch_launches(profile) == (
        "k_tr_tile<<<(16, 16), (32, 8)>>>(...)",
        "sum<<<8, (16, 2, 2), 64>>>(f32[count], f32[count], i32(value))",
    )
