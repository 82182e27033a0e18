"""Turns Python files with kernels into launch files and cubins that `record_truth.py` records on a GPU.

    python -m tools.export_launches examples/triton/*.py examples/numba/kernels.py -o out/
    python tools/record_truth.py out/*.json --cubin out/*.cubin -o measured/

Each launch that a comment names becomes one launch file with its own cubin, as Python kernels are compiled for their
arguments. No GPU is needed here, and neither this package nor the frameworks there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sectorwise.frontends.python_file import PYTHON
from sectorwise.launch.comments import find_launches
from sectorwise.launch.config import Argument, BufferArgument, Contents, LaunchConfig, ScalarArgument, StructArgument
from sectorwise.launch.dtypes import LONG_NAMES

_LONG = {short: long for long, short in LONG_NAMES.items()}


def write_case(launch: LaunchConfig, name: str) -> dict[str, Any]:
    """The launch as a case of a launch file."""
    return {
        "name": name,
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.dynamic_shared_bytes,
        "args": [write_argument(argument) for argument in launch.arguments],
    }


def write_argument(argument: Argument) -> dict[str, Any]:
    """One argument; those that cannot be recorded raise ValueError."""
    match argument:
        case BufferArgument(dtype=dtype, count=count, contents=contents):
            return {"kind": "buffer", "dtype": _LONG[dtype], "size": count, "init": write_contents(contents)}
        case ScalarArgument(dtype=dtype, value=value):
            return {"kind": "scalar", "dtype": _LONG[dtype or "i32"], "value": value}
        case StructArgument(fields=fields):
            return {"kind": "struct", "fields": [write_argument(member) for member in fields]}
        case _:
            raise ValueError(f"{argument} cannot be recorded")


def write_contents(contents: Contents) -> str:
    """`uniform:3:100`, `arange`: the contents as launch files write them."""
    parts = (contents.kind, contents.seed, contents.below)
    return ":".join(str(part) for part in parts if part is not None)


def main() -> None:
    """Export every launch that the comments of the files name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--target", default="sm_90")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for file in options.files:
        for number, launch in enumerate(find_launches(file.read_text(encoding="utf-8"), file.name, file.parent)):
            for made in PYTHON.compile_launch(file, launch, options.target):
                name = f"{file.parent.name}_{file.stem}_{made.launch.kernel}_{number}"
                document = {"source": file.name, "cases": [write_case(made.launch, name)]}
                (options.output / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
                (options.output / f"{name}.cubin").write_bytes(made.compilation.cubin)


if __name__ == "__main__":
    main()
