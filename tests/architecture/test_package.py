"""Turns the built wheel and the pinned versions into checks of what people install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sectorwise"
SUFFIXES = {".css", ".cu", ".cuh", ".html", ".js", ".json", ".py", ".toml", ".typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_is_pure_python_and_data(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    files = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert {name.split("/")[0] for name in files} == {"sectorwise"}
    assert {Path(name).suffix for name in files} <= SUFFIXES


def test_wheel_holds_the_whole_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and path.suffix in SUFFIXES
    }
    assert expected <= names
    assert "sectorwise/devices/h200-sxm.toml" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_wheel_works_from_anywhere(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = "from sectorwise.device import list_devices; print(len(list_devices()))"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {script}"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("29", "")


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines)


def _requirements() -> list[Requirement]:
    """Everything that `.[dev]` asks for by itself, and what builds the package."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    groups = [project["dependencies"], pyproject["build-system"]["requires"]]
    groups += project["optional-dependencies"].values()
    requirements = [Requirement(text) for group in groups for text in group]
    return [requirement for requirement in requirements if requirement.name != project["name"]]


def test_constraints_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    assert list(_pins()) == sorted(_pins())


def test_everything_that_is_installed_is_pinned() -> None:
    pins = _pins()
    missing, seen, waiting = set(), set(), _requirements()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if name in seen or not applies:
            continue
        seen.add(name)
        if name not in pins:
            missing.add(name)
        waiting += [Requirement(text) for text in distribution(name).requires or ()]
    assert missing == set()
    assert set(pins) == seen


def test_pins_satisfy_the_requirements() -> None:
    pins = _pins()
    unmet = [str(r) for r in _requirements() if pins[canonicalize_name(r.name)] not in r.specifier]
    assert unmet == []
