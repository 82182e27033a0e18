"""Turns promises about what kernels cost into tests: a fixture that analyzes, a marker that asserts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sectorwise.analysis.data import Analysis

_MARKER = "kernel_cost"
_PROMISES = frozenset({"clean", "totals"})


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(source, launches=None, *, clean=True, totals=None, **options): the kernel of `source`, a file "
        "beside the test, has no finding at warning (clean) and exactly these totals; `options` as of analyze",
    )


@pytest.fixture
def analyze_kernel(request: pytest.FixtureRequest) -> Callable[..., Analysis]:
    """`sectorwise.analyze`, with sources relative to the folder of the test."""
    folder = request.path.parent

    def analyze_beside(source: str, *arguments: Any, **options: Any) -> Analysis:  # noqa: ANN401 - those of `analyze`
        from sectorwise.analyze import analyze

        return analyze(folder / source, *arguments, **options)

    return analyze_beside


@pytest.fixture
def kernel_cost(request: pytest.FixtureRequest, analyze_kernel: Callable[..., Analysis]) -> Analysis:
    """The analysis of the kernel that the test's `kernel_cost` marker names."""
    marker = request.node.get_closest_marker(_MARKER)
    if marker is None:
        message = f"the fixture kernel_cost needs a marker: @pytest.mark.{_MARKER}('kernel.cu')"
        raise pytest.UsageError(message)
    options = {name: value for name, value in marker.kwargs.items() if name not in _PROMISES}
    return analyze_kernel(*marker.args, **options)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test with the marker have the fixture, also where it does not name it: a promise is never passed over."""
    for item in items:
        names = item.fixturenames if isinstance(item, pytest.Function) else [_MARKER]
        if item.get_closest_marker(_MARKER) is not None and _MARKER not in names:
            names.insert(0, _MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Check what the marker promises, as a part of the test: what is not kept is a failure, not an error."""
    marker = item.get_closest_marker(_MARKER)
    if marker is None or not isinstance(item, pytest.Function):
        return
    from sectorwise.report.assertions import check_clean, check_totals

    analysis: Any = item.funcargs[_MARKER]
    if marker.kwargs.get("clean", True):
        check_clean(analysis)
    check_totals(analysis, marker.kwargs.get("totals") or {})
