"""Cases for pytest-benchmark: `pytest benchmarks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.rows import ROWS, bind_row
from sectorwise.machine import numpy_engine
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native_engine import execute_native

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("row", ROWS)
def test_native_engine_with_its_code_at_hand(benchmark: Any, row: str) -> None:  # noqa: ANN401 - a plugin's fixture
    bound = bind_row(row)
    execution = benchmark.pedantic(execute_native, args=(bound, ExecutionOptions()), rounds=3, warmup_rounds=1)
    assert execution.sites


@pytest.mark.parametrize("row", ROWS[:3])
def test_native_engine_that_makes_its_code(
    benchmark: Any,  # noqa: ANN401 - a plugin's fixture
    row: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    bound = bind_row(row)
    folders = iter(range(1000))

    def forget() -> None:
        monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path / str(next(folders))))

    benchmark.pedantic(execute_native, args=(bound, ExecutionOptions()), setup=forget, rounds=3)


@pytest.mark.parametrize("row", ROWS[:3])
def test_native_engine_computes_all_values(benchmark: Any, row: str) -> None:  # noqa: ANN401 - a plugin's fixture
    bound = bind_row(row)
    benchmark.pedantic(lambda: execute_native(bound, ExecutionOptions()).read_buffer(0), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("row", ROWS[:2])
def test_reference_engine(benchmark: Any, row: str) -> None:  # noqa: ANN401 - a plugin's fixture
    benchmark.pedantic(numpy_engine.execute, args=(bind_row(row), ExecutionOptions()), rounds=3)
