"""Turns operations on numbers that hang on the block alone into tables: what each block of the launch has there.

Blocks stand where lanes stand elsewhere: an operation of the NumPy algebra on `[blocks, 1]` computes all of them at
once. A table is made when it is asked for; until then it is the operation that makes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from sectorwise.machine.numpy_algebra import NumpyAlgebra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

MOST_BLOCKS = 1 << 20
"""Launches of more blocks than this have no tables."""

_DEEPEST = 200
"""Tables of longer histories are not worth it."""

_ALGEBRA = NumpyAlgebra()


class _Content(Struct):
    """What a table holds, once it is made."""

    array: npt.NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A number for each block: `name` tells tables apart, `depth` is how many operations made it one after the other.

    `varies` says that blocks may differ in it.
    """

    name: str
    operation: str = field(compare=False)
    operands: tuple[Table | Any, ...] = field(compare=False, repr=False)
    options: tuple[tuple[str, Any], ...] = field(compare=False, repr=False)
    depth: int = field(compare=False)
    varies: bool = field(compare=False)
    content: _Content = field(compare=False, repr=False)


def tabulate(name: str, array: npt.NDArray[Any]) -> Table:
    """The table of numbers that are known: `[blocks, 1]`, or `[1, 1]` for one that all blocks have."""
    return Table(name, "given", (), (), 0, len(array) > 1, _Content(array))


def extend(table: Table, name: str, array: npt.NDArray[Any]) -> Table:
    """The table of numbers, `[blocks, 1]`, that were found by those of another."""
    return Table(f"{name} {table.name}", "given", (), (), table.depth + 1, True, _Content(array))  # noqa: FBT003 - a field


def combine(operation: str, values: Sequence[Table | Any], options: Mapping[str, Any]) -> Table | None:
    """The table of an operation's results; `values` are its arguments in order, those that vary as tables."""
    tables = [value for value in values if isinstance(value, Table)]
    depth = 1 + max((table.depth for table in tables), default=0)
    if depth > _DEEPEST:
        return None
    shown = [value.name if isinstance(value, Table) else repr(value) for value in values]
    text = "\n".join([operation, *shown, repr(sorted(options.items()))])
    name = hashlib.sha256(text.encode()).hexdigest()
    varies = any(table.varies for table in tables)
    return Table(name, operation, tuple(values), tuple(sorted(options.items())), depth, varies, _Content())


def read_table(table: Table) -> npt.NDArray[Any]:
    """What each block has: `[blocks, 1]` or `[1, 1]`, of the NumPy algebra's types."""
    if table.content.array is None:
        values = [read_table(value) if isinstance(value, Table) else value for value in table.operands]
        with np.errstate(all="ignore"):
            table.content.array = getattr(_ALGEBRA, table.operation)(*values, **dict(table.options))
    return table.content.array


def read_known(table: Table) -> int | None:
    """The word or long that all blocks have, if it is one."""
    if table.varies:
        return None
    array = read_table(table)
    return int(array[0, 0]) if array.dtype in (np.uint32, np.uint64) else None


def read_numbers(table: Table, blocks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """What some blocks have, as whole numbers `[n]`; those of 64 bits as signed ones."""
    array = read_table(table)
    column = np.broadcast_to(array, (max(len(array), int(blocks.max(initial=0)) + 1), 1))[blocks, 0]
    numbers: npt.NDArray[np.int64] = column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64)
    return numbers
