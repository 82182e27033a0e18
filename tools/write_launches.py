"""Turns the launch comments of sources into launch files and cubins, which tools/record_truth.py records on a GPU.

    python -m tools.write_launches tests/measured/corpus/*.cu -o out
    python -m tools.write_launches examples/triton/*.py examples/numba/kernels.py -o out
    python tools/record_truth.py out/*.json --cubin out/*.cubin -o measured

`NAME.cu` gives `out/NAME.json` and `out/NAME.sm_90.cubin`. Of a file of Python kernels each launch gives a launch file
with a cubin of its own, as such kernels are compiled for their arguments. No GPU is needed here, and neither this
package nor the frameworks there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
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
    """One argument; numbers whose type is not said are 32 bits wide. Those that cannot be recorded end the program."""
    match argument:
        case BufferArgument(dtype=dtype, count=count, contents=contents):
            return {"kind": "buffer", "dtype": _LONG[dtype], "size": count, "init": write_contents(contents)}
        case ScalarArgument(dtype=dtype, value=value):
            usual = "i32" if isinstance(value, int) else "f32"
            return {"kind": "scalar", "dtype": _LONG[dtype or usual], "value": value}
        case StructArgument(fields=fields):
            return {"kind": "struct", "fields": [write_argument(member) for member in fields]}
        case _:
            raise SystemExit(f"launch files take buffers, numbers and structs of them, not {argument}")


def write_contents(contents: Contents) -> str:
    """`uniform:3:100`, `arange`: the contents as launch files write them."""
    parts = (contents.kind, contents.seed, contents.below)
    return ":".join(str(part) for part in parts if part is not None)


def write_cuda(source: Path, folder: Path, target: str) -> None:
    """Write the launch file and the cubin of a CUDA source."""
    launches = find_launches(source.read_text(encoding="utf-8"), source.name, source.parent)
    kernels = tuple(dict.fromkeys(launch.kernel for launch in launches))
    compilation = CUDA.compile(source, CompileRequest(target, (), (), kernels))
    (folder / f"{source.stem}.{target}.cubin").write_bytes(compilation.cubin)
    names: dict[str, int] = {}
    cases = []
    for launch in launches:
        count = names[launch.kernel] = names.get(launch.kernel, 0) + 1
        cases.append(write_case(launch, launch.kernel if count == 1 else f"{launch.kernel}_{count}"))
    (folder / f"{source.stem}.json").write_text(json.dumps({"source": source.name, "cases": cases}))


def write_python(file: Path, folder: Path, target: str) -> None:
    """Write a launch file and a cubin for each launch of a file of Python kernels."""
    for number, launch in enumerate(find_launches(file.read_text(encoding="utf-8"), file.name, file.parent)):
        for made in PYTHON.compile_launch(file, launch, target):
            name = f"{file.parent.name}_{file.stem}_{made.launch.kernel}_{number}"
            document = {"source": file.name, "cases": [write_case(made.launch, name)]}
            (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
            (folder / f"{name}.cubin").write_bytes(made.compilation.cubin)


def main() -> None:
    """Write those of all files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--target", default="sm_90")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for file in options.files:
        write = write_python if file.suffix == ".py" else write_cuda
        write(file, options.output, options.target)


if __name__ == "__main__":
    main()
