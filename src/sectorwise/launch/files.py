"""Turns launch files, JSON with many cases for one source, into launches.

A launch file is an object: `{"source": "transpose.cu", "cases": [...]}`. A case has `kernel`, `grid`, `block`, `args`,
and where they matter `name`, `shared`, `constants`; or, in place of all but the name, `launch` with launch notation.

    {"name": "gather", "kernel": "k_gather", "grid": [64, 1, 1], "block": [256, 1, 1], "shared": 0,
     "args": [{"kind": "buffer", "dtype": "float32", "size": 16384, "init": "uniform:1"},
              {"kind": "scalar", "dtype": "int32", "value": 512},
              {"kind": "struct", "fields": [...]}, {"kind": "bytes", "hex": "00ff"},
              {"kind": "pointer", "target": "a", "offset": 64},
              {"kind": "tensor_map", "buffer": {...}, "shape": [64, 64], "box": [64, 8], "swizzle": 128}],
     "constants": {"table": {"dtype": "int32", "size": 16, "init": "arange"}}}

`size` counts elements; `init` is zeros, arange, perm:7, uniform:7, uniform:7:256, noise or @file.npy (relative to the
launch file). Any argument may have a `name`. Other keys of a case (`note`, `measured`) are passed over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sectorwise.errors import LaunchError
from sectorwise.launch.carets import launch_error, name_nearest
from sectorwise.launch.config import LaunchConfig, Span
from sectorwise.launch.formatting import format_launch
from sectorwise.launch.notation import parse_launch
from sectorwise.launch.records import Place, check_keys, describe, read_argument, read_constants, read_dimensions

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.records import Json

_CASE_KEYS = ("name", "kernel", "grid", "block", "shared", "args", "constants", "launch", "note", "measured")


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """The launches of one file; `source` is the kernel's source or cubin beside it, as a path, None if not named."""

    path: Path
    source: Path | None
    cases: tuple[LaunchConfig, ...]


def read_launch_file(path: Path) -> LaunchFile:
    """Return the launches of a launch file; raises LaunchError naming file, case and key."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LaunchError(f"{path}: cannot read the launch file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LaunchError(f"{path}: the launch file is not UTF-8 text (byte {error.start})") from error
    return parse_launch_file(text, path)


def parse_launch_file(text: str, path: Path) -> LaunchFile:
    """Return the launches that the text of a launch file holds; `path` is what it is called and relative to."""
    place = Place(path.name)
    data = _decode(text, path.name)
    if not isinstance(data, dict):
        raise place.error(f"expected an object with 'cases', got {describe(data)}")
    source = data.get("source")
    if source is not None and not isinstance(source, str):
        raise place.at("source").error(f"expected a file name, got {describe(source)}")
    cases = data.get("cases")
    if not isinstance(cases, list):
        raise place.at("cases").error(f"expected a list of cases, got {describe(cases)}{_near(data, 'cases')}")
    if not cases:
        raise place.at("cases").error("expected at least one case, got none")
    names = [case["name"] for case in cases if isinstance(case, dict) and "name" in case]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise place.error(f"two cases are named {describe(name)}")
    launches = tuple(_read_case(case, index, path) for index, case in enumerate(cases))
    return LaunchFile(path, path.parent / source if source is not None else None, launches)


def _decode(text: str, origin: str) -> Json:
    try:
        data: Json = json.loads(text)
    except json.JSONDecodeError as error:
        line = (text.splitlines() or [""])[min(error.lineno, len(text.splitlines()) or 1) - 1]
        span = Span(line, error.colno - 1, error.colno, f"{origin}:{error.lineno}")
        raise launch_error(f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}", span) from error
    except RecursionError as error:
        raise LaunchError(f"{origin}: the JSON is nested too deeply") from error
    except ValueError as error:
        # Python refuses to read whole numbers of more than some thousand digits.
        raise LaunchError(f"{origin}: a number in the JSON is too long") from error
    return data


def _read_case(case: Json, index: int, path: Path) -> LaunchConfig:
    place = Place(path.name, f"cases[{index}]")
    if not isinstance(case, dict):
        raise place.error(f"expected an object, got {describe(case)}")
    name = case.get("name", case.get("kernel"))
    if name is not None and not isinstance(name, str):
        raise place.at("name").error(f"expected a text, got {describe(name)}")
    place = Place(path.name, f"case {name}") if name is not None else place
    if "launch" in case:
        text = case["launch"]
        if not isinstance(text, str):
            raise place.at("launch").error(f"expected launch notation, got {describe(text)}")
        check_keys(case, ("name", "launch", "note", "measured"), place, only_misspelled=False)
        launch = parse_launch(text, place.origin, path.parent)
        return replace(launch, case=name or launch.kernel)
    check_keys(case, _CASE_KEYS, place, only_misspelled=True)
    kernel = case.get("kernel")
    if not isinstance(kernel, str):
        raise place.at("kernel").error(f"expected a kernel's name, got {describe(kernel)}")
    shared = case.get("shared", 0)
    if isinstance(shared, bool) or not isinstance(shared, int):
        raise place.at("shared").error(f"expected a number of shared bytes, got {describe(shared)}")
    arguments = case.get("args")
    if not isinstance(arguments, list):
        raise place.at("args").error(f"expected a list of arguments, got {describe(arguments)}")
    launch = LaunchConfig(
        kernel,
        read_dimensions(case.get("grid"), place.at("grid"), "blocks"),
        read_dimensions(case.get("block"), place.at("block"), "threads"),
        shared,
        tuple(read_argument(item, place.at(f"args[{n}]"), path.parent) for n, item in enumerate(arguments)),
        read_constants(case.get("constants", {}), place.at("constants"), path.parent),
    )
    # Read back from notation, so that what does not fit the kernel later has a text to put the caret under.
    return replace(parse_launch(format_launch(launch), place.origin), case=name)


def _near(data: dict[str, Json], key: str) -> str:
    return name_nearest(key, data) if key not in data else ""
