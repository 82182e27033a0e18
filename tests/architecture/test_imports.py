"""Turns the layers and the cost of importing the package into checks that run in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = {"cuda", "cupy", "llvmlite", "matplotlib", "ncu_report", "numba", "torch", "triton"}


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _modules_after(statements: str) -> set[str]:
    """Top-level names that are loaded when these statements have run, in a fresh interpreter."""
    run = _run(sys.executable, "-c", f"import json, sys\n{statements}\nprint(json.dumps(sorted(sys.modules)))")
    assert run.returncode == 0, run.stderr
    return {name.split(".")[0] for name in json.loads(run.stdout)}


def _modules_of_check(folder: Path) -> set[str]:
    """All modules that a whole `check` of a cubin loads, in an interpreter of its own, with an empty cache."""
    script = f"""
import json, os, sys
before = set(sys.modules)
os.environ["SECTORWISE_CACHE_DIR"] = {str(folder / "cache")!r}
from sectorwise.cli.main import main
main(["check", "tests/measured/h200/gemm.sm_90.cubin", "--launches", "tests/measured/h200/gemm.json",
      "--kernel", "k_mm_tile16", "-o", {str(folder / "report.txt")!r}])
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    run = _run(sys.executable, "-c", script)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_a_check_loads_what_it_needs(tmp_path: Path) -> None:
    loaded = _modules_of_check(tmp_path)
    assert {"sectorwise.machine.native_engine", "sectorwise.report.terminal", "numpy", "llvmlite"} <= loaded
    own = {name for name in loaded if name.startswith("sectorwise")}
    # About 255 on 2026-11-30, each about half a millisecond; what few launches need is imported where they need it.
    assert len(own) <= 280
    others = ("advise", "calibrate", "capture", "kernels", "learn", "remedies", "sweep", "verify")
    assert {name for name in own if name.split(".")[1:2] and name.split(".")[1] in others} == set()
    assert not {name for name in own if name.startswith(("sectorwise.report.html", "sectorwise.machine.numpy_engine"))}
    # Slow to load, and of no use here: nothing should bring them in by the way.
    assert (
        loaded & {"asyncio", "email", "http", "importlib.metadata", "jinja2", "logging", "pygments", "unittest"}
        == set()
    )


def test_a_check_begins_to_compile_before_it_loads_numpy() -> None:
    statements = """
import sys
from pathlib import Path
from sectorwise.analyze import gather_launches
from sectorwise.frontends.choose import choose_frontend
from sectorwise.jobs import compile_launches
file = Path("tests/measured/h200/gemm.json")
assert gather_launches(Path("tests/measured/h200/gemm.sm_90.cubin"), file, "k_mm_tile16")
assert choose_frontend(file.with_suffix(".cubin"))
import sectorwise.cli.check
"""
    assert "numpy" not in _modules_after(statements)


@pytest.mark.parametrize(("threads", "engine", "other"), [(64, "numpy", "native"), (1 << 20, "native", "numpy")])
def test_the_engine_that_a_launch_wants_is_loaded_alone(threads: int, engine: str, other: str) -> None:
    statements = f"""
import sys
from sectorwise.machine.engine import load_engine
load_engine({threads})
assert "sectorwise.machine.{engine}_engine" in sys.modules
assert "sectorwise.machine.{other}_engine" not in sys.modules
"""
    assert ("llvmlite" in _modules_after(statements)) == (engine == "native")


def test_layers_hold() -> None:
    run = _run(sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout


def test_importing_every_module_loads_no_compiler_or_framework() -> None:
    walk = "import importlib, pkgutil, sectorwise\nfound = pkgutil.walk_packages(sectorwise.__path__, 'sectorwise.')"
    loaded = _modules_after(
        f"{walk}\nnames = [module.name for module in found]\n[importlib.import_module(n) for n in names]"
    )
    assert "sectorwise" in loaded
    assert loaded & OPTIONAL == set()


def test_importing_the_package_loads_no_command_line() -> None:
    assert _modules_after("import sectorwise") & {"click", "rich", "elftools", "pytest", "importlib_resources"} == set()


def test_loading_a_device_needs_no_numpy() -> None:
    assert "numpy" not in _modules_after("from sectorwise.device import load_device\nload_device('h200')")
