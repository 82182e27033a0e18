"""Every folder of tests is run by `make test`, but for those that need a browser and PyTorch."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_all_folders_but_two_are_collected() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    collected = {path.name for pattern in settings["testpaths"] for path in ROOT.glob(pattern)}
    folders = {path.name for path in (ROOT / "tests").iterdir() if list(path.rglob("test_*.py"))}
    assert folders - collected == {"browser", "torch"}
    assert not collected & {"browser", "torch"}
    assert list((ROOT / "tests").glob("test_*.py")) == []
