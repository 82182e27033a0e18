"""Turns the `[tool.sectorwise]` table of the nearest pyproject.toml into settings that options may override."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

_KEYS: Final = ("select", "ignore", "fail-on", "baseline", "device")
FAIL_ON: Final = ("error", "warning", "note", "never")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project has decided; None and empty where it has not. `baseline` is relative to no folder any more."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    baseline: Path | None = None
    device: str | None = None


def read_settings(folder: Path) -> Settings:
    """The settings of the nearest pyproject.toml with such a table, in `folder` or above it; else none.

    Raises:
        ArgumentError: the file is no TOML, a key is unknown (the text names the nearest), or a value is of no use.
    """
    for parent in (folder, *folder.resolve().parents):
        path = parent / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ArgumentError(f"{path}: {error}") from None
        table = document.get("tool", {}).get("sectorwise")
        if table is not None:
            return _read_table(path, table)
    return Settings()


def _read_table(path: Path, table: object) -> Settings:
    if not isinstance(table, dict):
        raise ArgumentError(f"{path}: tool.sectorwise must be a table, got {table!r}")
    for key in table:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1) or list(_KEYS)
            raise ArgumentError(f"{path}: [tool.sectorwise] has no key {key!r}; did you mean {' or '.join(near)}?")
    fail_on = _read_text(path, table, "fail-on")
    if fail_on is not None and fail_on not in FAIL_ON:
        raise ArgumentError(f"{path}: fail-on must be one of {', '.join(FAIL_ON)}, got {fail_on!r}")
    baseline = _read_text(path, table, "baseline")
    return Settings(
        select=_read_texts(path, table, "select"),
        ignore=_read_texts(path, table, "ignore"),
        fail_on=fail_on,
        baseline=None if baseline is None else path.parent / baseline,
        device=_read_text(path, table, "device"),
    )


def _read_text(path: Path, table: dict[str, object], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ArgumentError(f"{path}: {key} must be a text, got {value!r}")
    return value


def _read_texts(path: Path, table: dict[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ArgumentError(f"{path}: {key} must be a list of codes, got {value!r}")
    return tuple(value)
