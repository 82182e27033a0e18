"""Packages are found where Python would look for them, with the release and the files that pip wrote down."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING

import pytest

from sectorwise.installed import find_installed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name", ["nvidia-cuda-nvdisasm", "nvidia-cuda-nvrtc", "nvidia-cuda-cccl", "nvidia-nvjitlink", "numpy", "click"]
)
def test_what_the_standard_library_tells(name: str) -> None:
    found = find_installed(name)
    assert found is not None
    assert found.release == importlib.metadata.version(name)
    assert found.build == f"{name} {found.release}"
    files = importlib.metadata.files(name)
    assert files is not None
    assert {str(found.folder / file) for file in found.files} == {str(file.locate()) for file in files}


def write_package(folder: Path, release: str, rows: str) -> None:
    record = folder / f"a_tool-{release}.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text(rows)


def test_the_first_on_the_path_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_package(tmp_path / "first", "2.0", "bin/tool,sha256=x,5\nlib/a.so,,\n")
    write_package(tmp_path / "second", "1.0", "bin/tool,,\n")
    (tmp_path / "bare" / "a_tool-3.0.dist-info").mkdir(parents=True)
    (tmp_path / "file.zip").write_text("no folder")
    places = ("none", "file.zip", "bare", "first", "second")
    monkeypatch.setattr(sys, "path", [str(tmp_path / place) for place in places])
    found = find_installed("a-tool")
    assert found is not None
    assert (found.release, found.folder, found.files) == ("2.0", tmp_path / "first", ("bin/tool", "lib/a.so"))
    assert find_installed("a") is None
    assert find_installed("tool") is None
