"""The pytest plugin, in a pytest of its own: promises that are kept pass, others fail and show the line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transpose.cu"
PADDED = "transpose_padded<<<(2, 2), (32, 8)>>>(f32[64*64]=arange, f32[64*64], n=64)"
NAIVE = "transpose_naive<<<(2, 2), (32, 8)>>>(f32[64*64]=arange, f32[64*64], n=64)"


def run_tests(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "transpose.cu").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_kernels.py").write_text(
        f"import pytest\nimport sectorwise\nPADDED = {PADDED!r}\nNAIVE = {NAIVE!r}\n" + dedent(tests), encoding="utf-8"
    )
    loaded = ("-c", "import importlib.metadata as m; print(*(e.name for e in m.entry_points(group='pytest11')))")
    names = subprocess.run([sys.executable, *loaded], capture_output=True, text=True, check=True).stdout.split()
    plugin = [] if "sectorwise" in names else ["-p", "sectorwise.pytest_plugin"]
    command = (sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *plugin)
    return subprocess.run([*command, str(folder)], capture_output=True, text=True, cwd=folder, check=False)


def test_kept_promises_pass(tmp_path: Path) -> None:
    outcome = run_tests(
        tmp_path,
        """
        @pytest.mark.kernel_cost("transpose.cu", PADDED, totals={"shared_wavefronts": 256, "global_load_sectors": 512})
        def test_cost(kernel_cost):
            assert [finding.code for finding in kernel_cost.kernels[0].findings] == ["SW404"]

        @pytest.mark.kernel_cost("transpose.cu", NAIVE, clean=False, totals={"l2_theoretical_sectors": 4608})
        def test_cost_without_the_fixture():
            pass

        def test_fixture(analyze_kernel):
            analysis = analyze_kernel("transpose.cu", NAIVE, select=["SW2"])
            assert analysis.kernels[0].findings == ()

        def test_clean():
            sectorwise.assert_clean("transpose.cu", PADDED)
        """,
    )
    assert (outcome.returncode, outcome.stderr) == (0, ""), outcome.stdout
    assert "4 passed" in outcome.stdout


def test_broken_promises_fail_and_show_the_line(tmp_path: Path) -> None:
    outcome = run_tests(
        tmp_path,
        """
        @pytest.mark.kernel_cost("transpose.cu", NAIVE)
        def test_not_clean():
            pass

        @pytest.mark.kernel_cost("transpose.cu", PADDED, totals={"shared_wavefronts": 255})
        def test_other_total():
            pass

        def test_assertion():
            sectorwise.assert_clean("transpose.cu", NAIVE)
        """,
    )
    assert outcome.returncode == 1
    assert "3 failed" in outcome.stdout
    assert "> out[x * n + y + j] = value;" in outcome.stdout
    assert "lanes step 256 B: 32 sectors for 128 useful bytes, 12 %" in outcome.stdout
    assert "+0     [#" in outcome.stdout
    assert "shared_wavefronts: promised 255, counted 256" in outcome.stdout


def test_fixture_without_its_marker_says_so(tmp_path: Path) -> None:
    outcome = run_tests(tmp_path, "def test_cost(kernel_cost):\n    pass\n")
    assert outcome.returncode != 0
    assert "the fixture kernel_cost needs a marker" in outcome.stdout + outcome.stderr
