from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.errors import ArgumentError
from sectorwise.learn.exercises import check_exercise, find_exercise, list_exercises
from tests.cli.commands import run

if TYPE_CHECKING:
    from pathlib import Path

SOLUTIONS = {
    "swapped-axes": (
        ("row = blockIdx.x * blockDim.x + threadIdx.x", "column = blockIdx.x * blockDim.x + threadIdx.x"),
        ("column = blockIdx.y * blockDim.y + threadIdx.y", "row = blockIdx.y * blockDim.y + threadIdx.y"),
    ),
    "tile-column": (("tile[32][32]", "tile[32][33]"),),
    "four-loads": (
        ("const volatile int* v = vectors + 4 * i;", "int4 v = ((const int4*)vectors)[i];"),
        ("int x = v[0], y = v[1], z = v[2], w = v[3];", "int x = v.x, y = v.y, z = v.z, w = v.w;"),
    ),
    "bytes": (
        ("<<<256, 256>>>", "<<<16, 256>>>"),
        (
            "out[i] = 255 - in[i];",
            "uint4 v = ((const uint4*)in)[i]; ((uint4*)out)[i] = make_uint4(~v.x, ~v.y, ~v.z, ~v.w);",
        ),
    ),
    "row-sums": (
        ("<<<1, 256>>>", "<<<32, 256>>>"),
        (
            "int row = blockIdx.x * blockDim.x + threadIdx.x;",
            "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;",
        ),
        ("int k = 0; k < n; ++k", "int k = lane; k < n; k += 32"),
        (
            "out[row] = sum;",
            "for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d); if (!lane) out[row] = sum;",
        ),
    ),
    "neighbours": (
        (
            "int sum = 0;",
            """int sum = 0;
  __shared__ int near[264];
  for (int k = threadIdx.x; k < 264; k += 256) {
    int at = blockIdx.x * 256 - 4 + k;
    near[k] = at >= 0 && at < n ? in[at] : 0;
  }
  __syncthreads();""",
        ),
        ("    int at = i + d;\n    if (at >= 0 && at < n) sum += in[at];", "    sum += near[threadIdx.x + 4 + d];"),
    ),
    "indexed-array": (
        ("  int places[16] = {};\n", "  int sum = 0;\n"),
        (
            "places[(which[i] >> k) & 15] += in[k * 4096 + i];",
            "sum += in[k * 4096 + i] * (((which[i] >> k) & 15) + 1);",
        ),
        ("  int sum = 0;\n  for (int k = 0; k < 16; ++k) sum += places[k] * (k + 1);\n", ""),
    ),
    "strided-copy": (
        (
            "int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;",
            "int first = blockIdx.x * 2048 + threadIdx.x;",
        ),
        ("out[first + k] = in[first + k] * 3;", "out[first + 256 * k] = in[first + 256 * k] * 3;"),
    ),
}


def solve(name: str) -> str:
    text = find_exercise(name).source
    for old, new in reversed(SOLUTIONS[name]):
        assert text.count(old) == 1, (name, old)
        text = text.replace(old, new)
    return text


def test_a_source_begins_with_its_name_on_a_line_of_its_own() -> None:
    for exercise in list_exercises():
        assert exercise.source.startswith(f"// sectorwise: exercise {exercise.name}\n// ")


def test_there_are_eight() -> None:
    assert [exercise.name for exercise in list_exercises()] == list(SOLUTIONS)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_an_exercise_is_unsolved_until_it_is_mended(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(find_exercise(name).source)
    before = check_exercise(path)
    assert not before.passed
    assert before.wrong is None
    assert before.after == before.before > find_exercise(name).most
    assert find_exercise(name).hint in " ".join(str(before).split())
    path.write_text(solve(name))
    after = check_exercise(path)
    assert after.passed, str(after)
    assert "solved. The outputs are equal" in " ".join(str(after).split())


def test_wrong_outputs_are_no_solution(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(solve("strided-copy").replace("* 3", "* 4"))
    verdict = check_exercise(path)
    assert not verdict.passed
    assert "changes the values of" in " ".join(str(verdict).split())
    path.write_text(solve("swapped-axes").replace("[row * n + column]", "[row * n + column + n]", 1))
    assert not check_exercise(path).passed


def test_what_is_no_exercise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("// nothing\n")
    with pytest.raises(ArgumentError, match="does not say which exercise"):
        check_exercise(path)
    path.write_text("// sectorwise: exercise tile-colum\n")
    with pytest.raises(ArgumentError, match="did you mean 'tile-column'"):
        check_exercise(path)
    path.write_text("// sectorwise: exercise tile-column\n")
    with pytest.raises(ArgumentError, match="expected one comment"):
        check_exercise(path)
    path.write_text(find_exercise("bytes").source.replace("255 -", "255 - oops"))
    verdict = check_exercise(path)
    assert not verdict.passed
    assert "oops" in str(verdict)
    assert f"bytes: not yet: {path}(6): error" in " ".join(str(verdict).split())


def test_the_command_starts_and_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(capsys, "learn", "start", "tile-column")
    assert (outcome.code, "mend tile-column.cu" in outcome.out) == (0, True)
    assert run(capsys, "learn", "start", "tile-column").code == 2
    listed = run(capsys, "learn", "start")
    assert listed.code == 0
    assert all(f"  {name} " in listed.out for name in SOLUTIONS)
    unsolved = run(capsys, "learn", "check", "tile-column.cu")
    assert (unsolved.code, "not yet" in unsolved.out) == (1, True)
    (tmp_path / "tile-column.cu").write_text(solve("tile-column"))
    solved = run(capsys, "learn", "check", "tile-column.cu")
    assert (solved.code, "solved" in solved.out) == (0, True)
