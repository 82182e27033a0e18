"""Turns a source tree into a reproducible test run: the same examples and surroundings on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")

FOREIGN = ("CLICOLOR_FORCE", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "PYTEST_ADDOPTS", "PYTHONWARNINGS")
"""What the person's shell may say of colours and of other test runs; programs that tests start would listen to it."""


@pytest.fixture(scope="session", autouse=True)
def plain_surroundings() -> Iterator[None]:
    """Pages are as wide as in a pipe, whatever the terminal; tests of other widths set their own."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("COLUMNS", "80")
        for name in FOREIGN:
            monkeypatch.delenv(name, raising=False)
        yield
