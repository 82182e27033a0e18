"""What was begun runs beside the rest, and leaves nothing behind: neither a thread nor an error unsaid."""

from __future__ import annotations

import threading

import pytest

from sectorwise.beside import begin


def test_a_call_runs_beside_the_block() -> None:
    seen, go_on = threading.Event(), threading.Event()

    def call() -> str:
        seen.set()
        assert go_on.wait(60)
        return threading.current_thread().name

    with begin(call) as begun:
        assert seen.wait(60)
        assert not begun.is_done()
        go_on.set()
        assert begun.result() == "sectorwise-beside"
        assert begun.is_done()
    assert begun.result() == "sectorwise-beside"


def test_what_it_raises_is_raised_where_the_result_is_asked_for() -> None:
    def call() -> int:
        raise LookupError("no such kernel")

    with begin(call) as begun:
        pass
    assert begun.is_done()
    with pytest.raises(LookupError, match="no such kernel"):
        begun.result()


def test_a_block_that_fails_waits_for_the_call() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def call() -> None:
        assert go_on.wait(60)
        ended.set()

    def fail() -> None:
        with begin(call):
            go_on.set()
            raise ArithmeticError("stopped")

    with pytest.raises(ArithmeticError, match="stopped"):
        fail()
    assert ended.is_set()
    assert "sectorwise-beside" not in {thread.name for thread in threading.enumerate()}
