"""Turns the layers and the cost of importing the package into checks that run in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = {"cuda", "cupy", "llvmlite", "matplotlib", "ncu_report", "numba", "torch", "triton"}


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _modules_after(statements: str) -> set[str]:
    """Top-level names that are loaded when these statements have run, in a fresh interpreter."""
    run = _run(sys.executable, "-c", f"import json, sys\n{statements}\nprint(json.dumps(sorted(sys.modules)))")
    assert run.returncode == 0, run.stderr
    return {name.split(".")[0] for name in json.loads(run.stdout)}


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
