"""Turns a source tree into a reproducible test run: the same examples and surroundings on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")
# Hypothesis draws constants out of the modules imported so far, too: examples would hang on the tests that ran before.
setattr(providers, "_get_local_constants", Constants)  # noqa: B010 - no name of ours

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
