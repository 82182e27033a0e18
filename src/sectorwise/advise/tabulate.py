"""Turns rows of frozen data into records, data frames and tables of text that fit a terminal."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from sectorwise.errors import MissingToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def make_records(rows: Iterable[object]) -> list[dict[str, object]]:
    """A dictionary for each row: the fields of its dataclass, nested ones as `outer.inner`, tuples as text."""
    return [_flatten(row, "") for row in rows]


def make_dataframe(rows: Iterable[object]) -> Any:  # noqa: ANN401 - pandas is not installed where types are checked
    """A pandas DataFrame with a line for each row; raises `MissingToolError` without pandas."""
    return make_frame(make_records(rows))


def make_frame(records: Sequence[Mapping[str, object]]) -> Any:  # noqa: ANN401 - as `make_dataframe`
    """A pandas DataFrame with a line for each record; raises `MissingToolError` without pandas."""
    import importlib

    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise MissingToolError("pandas is not installed: pip install pandas, or take to_records()") from None
    return pandas.DataFrame(records)


def write_table(heads: Sequence[str], rows: Sequence[Sequence[str]], indent: int = 2, gap: str = "  ") -> list[str]:
    """Lines of a table: the first column to the left, the others to the right, the last one too unless it has words."""
    widths = [max(len(head), *(len(row[column]) for row in rows), 0) for column, head in enumerate(heads)]
    words = any(" " in row[-1].strip() and not row[-1].strip()[:1].isdigit() for row in rows)
    lines = []
    for row in (heads, *rows):
        cells = [
            cell.ljust(width) if column == 0 or (words and column == len(heads) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * indent + gap.join(cells)).rstrip())
    return lines


def write_time(time_ns: float) -> str:
    """`950 ns`, `12.4 us`, `1.07 ms`: three digits."""
    for unit, size in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if time_ns < 999.5 * size:
            return f"{write_digits(time_ns / size)} {unit}"
    return f"{write_digits(time_ns / 1e9)} s"


def write_size(count_bytes: float) -> str:
    """`96 B`, `24.0 KB`, `1.34 MB`: powers of ten, three digits."""
    for unit, size in (("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if count_bytes < 999.5 * size:
            return f"{write_digits(count_bytes / size) if size > 1 else f'{count_bytes:.0f}'} {unit}"
    return f"{write_digits(count_bytes / 1e12)} TB"


def write_digits(value: float) -> str:
    """Three digits: `1.00`, `12.4`, `965`, `20,480`."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:#.3g}"


def _flatten(row: object, prefix: str) -> dict[str, object]:
    if not is_dataclass(row):
        return {prefix.rstrip("."): row}
    flat: dict[str, object] = {}
    for part in fields(row):
        value = getattr(row, part.name)
        if not part.metadata.get("document", True):
            continue
        if is_dataclass(value):
            flat |= _flatten(value, f"{prefix}{part.name}.")
        elif isinstance(value, tuple):
            flat[f"{prefix}{part.name}"] = "; ".join(str(each) for each in value)
        else:
            flat[f"{prefix}{part.name}"] = value
    return flat
