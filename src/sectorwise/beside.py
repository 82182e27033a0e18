"""Turns a call into one that runs beside what is done until its result is needed."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


class Begun(Struct, Generic[T], frozen=True):
    """A call that runs in a thread of its own; `results` and `errors` get what it returns or raises."""

    thread: threading.Thread
    results: list[T]
    errors: list[BaseException]

    def is_done(self) -> bool:
        """Whether its result can be had without waiting."""
        return not self.thread.is_alive()

    def result(self) -> T:
        """What the call returns, as soon as it does; raises what it raises."""
        self.thread.join()
        if self.errors:
            raise self.errors[0]
        return self.results[0]


@contextmanager
def begin(call: Callable[[], T]) -> Iterator[Begun[T]]:
    """Runs `call` beside the block; the end of the block waits for it, so that it leaves nothing half done."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            errors.append(error)

    thread = threading.Thread(target=run, name="sectorwise-beside")
    thread.start()
    try:
        yield Begun(thread, results, errors)
    finally:
        thread.join()
