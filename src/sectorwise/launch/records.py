"""Turns the JSON of one launch argument into its data, and says where in the file something is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sectorwise.launch import tensor_maps
from sectorwise.launch.carets import launch_error, name_nearest
from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    Contents,
    PointerArgument,
    ScalarArgument,
    StructArgument,
)
from sectorwise.launch.dtypes import ELEMENT_TYPES, LONG_NAMES, find_misfit, find_trouble

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sectorwise.errors import LaunchError
    from sectorwise.launch.config import Argument, TensorMapArgument

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_KEYS: dict[str, tuple[str, ...]] = {
    "buffer": ("kind", "name", "dtype", "size", "init"),
    "scalar": ("kind", "name", "dtype", "value"),
    "struct": ("kind", "name", "fields"),
    "bytes": ("kind", "name", "hex"),
    "pointer": ("kind", "name", "target", "offset"),
    "tensor_map": ("kind", "name", "buffer", *tensor_maps.KEYS),
}
_INIT = re.compile(r"(?P<kind>zeros|arange|noise)|(?P<random>perm|uniform):(?P<seed>\d+)(?::(?P<below>\d+))?", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LONGEST_NUMBER = 20
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a launch file something stands: the file, the case, and the keys that lead there."""

    file: str
    case: str | None = None
    keys: str = ""

    @property
    def origin(self) -> str:
        """`transpose.json: case k_copy`."""
        return f"{self.file}: {self.case}" if self.case is not None else self.file

    def at(self, key: str) -> Place:
        """Return the place one key further in."""
        return replace(self, keys=f"{self.keys}.{key}" if self.keys else key)

    def error(self, message: str) -> LaunchError:
        """Return the error that says `message` of this place."""
        return launch_error(f"{self.keys}: {message}" if self.keys else message, None, self.origin)


def describe(value: Json) -> str:
    """Return how an error names a JSON value."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return f"'{value[:60]}'"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def check_keys(data: dict[str, Json], known: Iterable[str], place: Place, *, only_misspelled: bool) -> None:
    """Raise for a key that is not known; with `only_misspelled`, only where it looks like one that is."""
    known = tuple(known)
    for key in data:
        if key in known:
            continue
        nearest = name_nearest(key, known)
        if nearest or not only_misspelled:
            raise place.error(f"expected no key '{key}' (known: {', '.join(known)}){nearest}")


def read_dimensions(value: Json, place: Place, of: str) -> tuple[int, int, int]:
    """Return one to three dimensions, those not written being 1; a plain number is the first."""
    sizes = value if isinstance(value, list) else [value]
    whole = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool)]
    if not 1 <= len(sizes) <= 3 or len(whole) != len(sizes):
        raise place.error(f"expected one to three numbers of {of}, got {value if value is not None else 'nothing'}")
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z


def read_constants(value: Json, place: Place, folder: Path) -> tuple[tuple[str, Argument], ...]:
    """Return the module variables of a case; a buffer needs no `kind`."""
    if not isinstance(value, dict):
        raise place.error(f"expected an object of module variables, got {describe(value)}")
    constants: list[tuple[str, Argument]] = []
    for name, item in value.items():
        here = place.at(name)
        if not _NAME.fullmatch(name):
            raise place.error(f"expected the name of a module variable, got '{name}'")
        with_kind = {"kind": "buffer", **item} if isinstance(item, dict) and "size" in item else item
        constants.append((name, read_argument(with_kind, here, folder)))
    return tuple(constants)


def read_argument(item: Json, place: Place, folder: Path, depth: int = 0) -> Argument:
    """Return one argument; `@file.npy` is taken relative to `folder`. Raises LaunchError naming the key."""
    if not isinstance(item, dict):
        raise place.error(f"expected an object with 'kind', got {describe(item)}")
    kind = item.get("kind")
    if not isinstance(kind, str) or kind not in _KEYS:
        nearest = name_nearest(kind, _KEYS) if isinstance(kind, str) else ""
        raise place.at("kind").error(f"expected one of {', '.join(_KEYS)}, got {describe(kind)}{nearest}")
    check_keys(item, _KEYS[kind], place, only_misspelled=False)
    name = item.get("name")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise place.at("name").error(f"expected a name of letters, digits and '_', got {describe(name)}")
    match kind:
        case "buffer":
            return _read_buffer(item, name, place, folder)
        case "scalar":
            return _read_scalar(item, name, place)
        case "struct":
            fields = item.get("fields")
            if not isinstance(fields, list) or not fields or depth >= _DEEPEST:
                raise place.at("fields").error(f"expected a list of arguments, got {describe(fields)}")
            members = (
                read_argument(field, place.at(f"fields[{n}]"), folder, depth + 1) for n, field in enumerate(fields)
            )
            return StructArgument(tuple(members), name)
        case "tensor_map":
            return replace(_read_tensor_map(item, place, folder), name=name)
        case "bytes":
            return BytesArgument(_read_hex(item.get("hex"), place.at("hex")), name)
        case _:
            target = item.get("target")
            if not isinstance(target, str) or not _NAME.fullmatch(target):
                raise place.at("target").error(f"expected the name of a buffer, got {describe(target)}")
            return PointerArgument(target, _read_whole(item.get("offset", 0), place.at("offset"), "bytes"), name)


def _read_buffer(item: dict[str, Json], name: str | None, place: Place, folder: Path) -> BufferArgument:
    dtype = _read_dtype(item.get("dtype"), place.at("dtype"))
    count = _read_whole(item.get("size"), place.at("size"), "elements")
    if count < 1:
        raise place.at("size").error(f"expected at least one element, got {count}")
    init = item.get("init", "zeros")
    buffer = BufferArgument(dtype, count, _read_init(init, place.at("init"), folder), name)
    trouble = find_trouble(buffer)
    if trouble:
        raise place.at("init").error(trouble)
    return buffer


def _read_tensor_map(item: dict[str, Json], place: Place, folder: Path) -> TensorMapArgument:
    buffer = read_argument(item.get("buffer"), place.at("buffer"), folder)
    if not isinstance(buffer, BufferArgument):
        raise place.at("buffer").error("expected a buffer that the map is of")
    lists: dict[str, tuple[int, ...]] = {
        key: _read_numbers(item[key], place.at(key)) for key in tensor_maps.LISTS if item.get(key) is not None
    }
    sizes: dict[str, int] = {
        key: _read_whole(item[key], place.at(key), "bytes") for key in tensor_maps.SIZES if key in item
    }
    fill = item.get("fill", "zeros")
    if fill not in tensor_maps.FILLS:
        raise place.at("fill").error(f"expected zeros or nan, got {describe(fill)}")
    made = tensor_maps.make_tensor_map(buffer, lists, sizes, str(fill))
    trouble = tensor_maps.find_map_trouble(made)
    if trouble is not None:
        raise place.at(trouble[0]).error(trouble[1])
    return made


def _read_numbers(value: Json, place: Place) -> tuple[int, ...]:
    return tuple(_read_whole(each, place, "elements") for each in (value if isinstance(value, list) else [value]))


def _read_init(init: Json, place: Place, folder: Path) -> Contents:
    wanted = "expected zeros, arange, perm:seed, uniform:seed, noise or @file.npy"
    if not isinstance(init, str):
        raise place.error(f"{wanted}, got {describe(init)}")
    if init.startswith("@") and len(init) > 1 and "\0" not in init:
        return Contents("file", path=str(folder / init[1:]))
    match = _INIT.fullmatch(init)
    if match is None or (match["random"] == "perm" and match["below"] is not None):
        raise place.error(f"{wanted}, got {describe(init)}")
    if match["kind"]:
        return Contents(match["kind"])
    seed, below = match["seed"], match["below"]
    if max(len(seed), len(below or "")) > _LONGEST_NUMBER:
        raise place.error(f"expected numbers of at most {_LONGEST_NUMBER} digits, got {describe(init)}")
    return Contents(match["random"], seed=int(seed), below=int(below) if below is not None else None)


def _read_scalar(item: dict[str, Json], name: str | None, place: Place) -> ScalarArgument:
    value = item.get("value")
    if not isinstance(value, (int, float)):
        raise place.at("value").error(f"expected a number, got {describe(value)}")
    number = int(value) if isinstance(value, bool) else value
    if item.get("dtype") is None:
        return ScalarArgument(number, None, name)
    dtype = _read_dtype(item["dtype"], place.at("dtype"))
    element = ELEMENT_TYPES[dtype]
    trouble = find_misfit(number, element)
    if trouble:
        raise place.at("value").error(trouble)
    return ScalarArgument(float(number) if element.is_float else number, dtype, name)


def _read_dtype(value: Json, place: Place) -> str:
    dtype = LONG_NAMES.get(value, value) if isinstance(value, str) else ""
    if dtype not in ELEMENT_TYPES:
        nearest = name_nearest(dtype, (*LONG_NAMES, *ELEMENT_TYPES))
        raise place.error(f"expected a type ({', '.join(LONG_NAMES)}), got {describe(value)}{nearest}")
    return dtype


def _read_whole(value: Json, place: Place, of: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"expected a number of {of}, got {describe(value)}")
    return value


def _read_hex(value: Json, place: Place) -> bytes:
    digits = "".join(value.split()) if isinstance(value, str) else ""
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits):
        raise place.error(f"expected pairs of hexadecimal digits, got {describe(value)}")
    return bytes.fromhex(digits)
