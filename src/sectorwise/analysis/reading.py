"""Turns a JSON document of an analysis back into the data that it was written from."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sectorwise.analysis import data
from sectorwise.binary.ir import Location
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path


_MOST_DIGITS: Final = 20
"""Of a whole number in a document, with its sign: 64 bits."""


class _UnfitError(Exception):
    """A value is not what its place needs; the text begins with that place."""


def read_analysis(path: Path) -> data.Analysis:
    """The analysis that a file written by `--format json` holds.

    What the document leaves out (outputs, the code without accesses) stays empty; fields unknown here are passed over.

    Raises:
        ArgumentError: it cannot be read, is no such document, or one of another schema.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_int=_read_int)
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ArgumentError(f"{path} is no JSON document: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != data.SCHEMA:
        raise ArgumentError(
            f"{path}: expected a document of schema {data.SCHEMA!r}, which is the only one supported, got {schema!r}; "
            "`sectorwise check SOURCE --format json` writes it"
        )
    try:
        found: data.Analysis = _restore(data.Analysis, document, "")
    except _UnfitError as error:
        way = "`sectorwise check SOURCE --format json` writes a whole one"
        raise ArgumentError(f"{path} is no whole document of schema {data.SCHEMA!r}: {error}; {way}") from None
    return found


def _read_int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(
            f"{digits[:_MOST_DIGITS]}... has {len(digits)} digits, and no count has more than {_MOST_DIGITS}"
        )
    return int(digits)


def _restore(wanted: Any, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON to any of the data's types
    """The value as `wanted`, a type of the data's annotations; `place` is the way to it in the document."""
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in {types.UnionType, typing.Union}:
        if value is None and types.NoneType in inner:
            return None
        (wanted,) = (each for each in inner if each is not types.NoneType)
        return _restore(wanted, value, place)
    if origin is tuple:
        return _restore_row(inner, _require(list, value, place), place)
    if origin is not None:  # Mapping is the only other generic type among the data
        return {key: _restore(inner[1], each, f"{place}.{key}") for key, each in _require(dict, value, place).items()}
    if wanted is Location:
        return _restore_location(_require(dict, value, place), place)
    if is_dataclass(wanted):
        return _restore_fields(wanted, _require(dict, value, place), place)
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return _choose(wanted, value, place)
    return _require(wanted, value, place)


def _restore_row(inner: tuple[Any, ...], values: list[Any], place: str) -> tuple[Any, ...]:
    kinds = [inner[0]] * len(values) if inner[-1] is Ellipsis else list(inner)
    if len(kinds) != len(values):
        raise _UnfitError(f"{place}: expected {len(kinds)} values, got {len(values)}")
    pairs = zip(kinds, values, strict=True)
    return tuple(_restore(kind, each, f"{place}[{number}]") for number, (kind, each) in enumerate(pairs))


def _restore_fields(wanted: Any, value: dict[str, Any], place: str) -> Any:  # noqa: ANN401 - one of the data's classes
    hints = _find_hints(wanted)
    given = {}
    for part in fields(wanted):
        if not part.metadata.get("document", True):
            continue
        name = part.metadata.get("name", part.name)
        if name in value:
            given[part.name] = _restore(hints[part.name], value[name], f"{place}.{name}".removeprefix("."))
        elif part.default is MISSING and part.default_factory is MISSING:
            raise _UnfitError(f"{place or 'the document'} has no {name!r}")
    return wanted(**given)


def _restore_location(value: dict[str, Any], place: str) -> Location:
    try:
        callers = tuple(Location(str(each["file"]), int(each["line"])) for each in value.get("inlined_at", ()))
        return Location(str(value["file"]), int(value["line"]), callers)
    except (KeyError, TypeError, ValueError):
        raise _UnfitError(f"{place}: expected a file and a line, got {value!r:.80}") from None


def _choose(wanted: type[StrEnum], value: object, place: str) -> StrEnum:
    try:
        return wanted(str(value))
    except ValueError:
        raise _UnfitError(f"{place}: expected one of {', '.join(wanted)}, got {value!r:.80}") from None


def _require(wanted: type, value: Any, place: str) -> Any:  # noqa: ANN401 - what JSON gave, of the type wanted
    accepted: tuple[type, ...] = (int, float) if wanted is float else (wanted,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and wanted is not bool):
        raise _UnfitError(f"{place or 'the document'}: expected {wanted.__name__}, got {value!r:.80}")
    return value


@cache
def _find_hints(wanted: type) -> dict[str, Any]:
    return typing.get_type_hints(wanted, localns=_find_names(wanted.__module__))


@cache
def _find_names(module: str) -> dict[str, Any]:
    """What a module of the data imports, for type checkers only or for all: what its annotations may name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        alias.asname or alias.name: getattr(importlib.import_module(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
