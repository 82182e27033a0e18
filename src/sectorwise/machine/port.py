"""Turns an instruction's reads and writes into requests to the engine that runs it: the seam between opcode and engine.

An opcode is a function from an instruction to an action, `(port) -> None`: decoded once, run for every issue. The
action reads operands through the port, computes with `port.algebra`, and writes results through the port. The engine
applies the guard, the active lanes and taint: what an instruction writes is as certain as the least certain value
that it has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra

V = TypeVar("V")


class Port(Protocol[V]):
    """What one instruction sees of the machine."""

    @property
    def algebra(self) -> Algebra[V]:
        """The lane operations."""
        ...

    def read_register(self, index: int, *, uniform: bool = False) -> V:
        """Word. RZ and URZ (index 255) read as zero."""
        ...

    def write_register(self, index: int, value: V, *, uniform: bool = False) -> None:
        """Writes a word in the active lanes; RZ drops it."""
        ...

    def read_predicate(self, index: int, *, uniform: bool = False) -> V:
        """Predicate. PT and UPT (index 7) read as true."""
        ...

    def write_predicate(self, index: int, value: V, *, uniform: bool = False) -> None:
        """Writes a predicate in the active lanes; PT drops it."""
        ...

    def read_constant(self, bank: int, offset: V | int) -> V:
        """Word from a constant bank; `offset` in bytes, an int or a word a lane."""
        ...

    def read_special(self, name: str) -> V:
        """Word: `SR_TID.X`, `SR_CTAID.Y`, `SR_LANEID`, ... An unknown name gives a value that is marked unknown."""
        ...

    def active(self) -> V:
        """Predicate: the lanes that execute this instruction, guard included."""
        ...

    def mark_inexact(self) -> None:
        """What this instruction writes from here on is right in shape, not to the last bit (MUFU, tensor cores)."""
        ...

    def mark_unknown(self, reason: str) -> None:
        """What this instruction writes from here on is not known; `reason` is for the report."""
        ...

    def load(self, access: Access, address: V) -> Sequence[V]:
        """Counts a request and returns the words read (one for widths up to 4 bytes, zero-extended).

        `address` is a long for global and generic accesses, a word for shared and local ones.
        """
        ...

    def store(self, access: Access, address: V, words: Sequence[V]) -> None:
        """Counts a request and stores the words."""
        ...

    def atomic(
        self, access: Access, address: V, update: Callable[[Algebra[V], V], V], words: int, *, inexact: bool = False
    ) -> Sequence[V]:
        """Counts a request and applies `update` (old value to new value, word or long) lane after lane.

        Returns the old value as `words` words. Lanes with one address see each other's updates, in lane order.
        `update` is called with values for all lanes, of the shape that registers have. `inexact`: the order of the
        lanes, which is not known, shows in the result.
        """
        ...

    def atomic_words(self, access: Access, address: V, updates: Sequence[Callable[[Algebra[V], V], V]]) -> Sequence[V]:
        """Counts one request and applies update k to word k of each lane, lane after lane; returns the old words.

        The order of the lanes shows in the result: these are sums of floats.
        """
        ...

    def copy_async(self, access: Access, shared_address: V, global_address: V, source_bytes: V | None) -> None:
        """Counts a cp.async request and copies `access.width_bytes` a lane; bytes past `source_bytes` are zeros."""
        ...

    def load_matrix(self, access: Access, address: V) -> Sequence[V]:
        """Counts an ldmatrix request over the rows that lanes 0 to 8 x matrices - 1 address; returns one word a matrix.

        Word of lane l of matrix m: bytes 4 * (l % 4) to + 3 of row l // 4 (before any transposition).
        """
        ...

    def store_matrix(self, access: Access, address: V, words: Sequence[V]) -> None:
        """Counts an stmatrix request; inverse of `load_matrix`."""
        ...
