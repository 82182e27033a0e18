"""A command's start: NumPy has one thread unless the user says otherwise, and nothing of that is left behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sectorwise.cli.main import main
from sectorwise.cli.thrift import load_with_one_thread, search_garbage_seldom

VECTOR_ADD = Path(__file__).resolve().parents[2] / "examples" / "triton" / "vector_add.py"
THREADS = "OPENBLAS_NUM_THREADS"


@pytest.mark.parametrize(("given", "within"), [(None, "1"), ("5", "5")])
def test_numpy_is_loaded_with_one_thread_unless_the_user_says_how_many(
    monkeypatch: pytest.MonkeyPatch, given: str | None, within: str
) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    if given is not None:
        monkeypatch.setenv(THREADS, given)
    with load_with_one_thread():
        assert os.environ[THREADS] == within
    assert os.environ.get(THREADS) == given


def test_garbage_is_searched_for_seldom_while_a_command_runs() -> None:
    before = gc.get_threshold()
    with search_garbage_seldom():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_what_is_there_at_the_end_of_a_process_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "triton", raising=False)  # another test may have loaded it
    frozen = gc.get_freeze_count()
    with search_garbage_seldom():
        pass
    assert gc.get_freeze_count() == frozen
    try:
        with search_garbage_seldom(is_last=True):
            pass
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


def test_nothing_of_triton_is_reported_as_leaked() -> None:
    program = "import sys; from sectorwise.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "check", str(VECTOR_ADD), "--format", "json"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_a_command_that_fails_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    before = gc.get_threshold()
    with pytest.raises(SystemExit) as stop:
        main(["explain", "SW999"])
    assert stop.value.code == 2
    assert gc.get_threshold() == before
    assert THREADS not in os.environ
