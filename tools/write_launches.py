"""Turns the launch comments of CUDA sources into launch files, with cubins beside them, for tools/record_truth.py.

    python -m tools.write_launches tests/measured/corpus/*.cu -o out

Writes `out/NAME.json` and `out/NAME.sm_90.cubin` for each `NAME.cu`: what a machine with a GPU and a profiler needs,
and nothing else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.launch.comments import find_launches
from sectorwise.launch.config import Argument, BufferArgument, Contents, LaunchConfig, ScalarArgument

TARGET = "sm_90"
DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
}


def write_case(launch: LaunchConfig, name: str) -> dict[str, Any]:
    """One case of a launch file, its parts spelled out."""
    return {
        "name": name,
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.dynamic_shared_bytes,
        "args": [write_argument(argument) for argument in launch.arguments],
    }


def write_argument(argument: Argument) -> dict[str, Any]:
    """A buffer or a number; numbers whose type is not said are 32 bits wide, as those of the corpus are."""
    match argument:
        case BufferArgument():
            init = write_contents(argument.contents)
            return {"kind": "buffer", "dtype": DTYPES[argument.dtype], "size": argument.count, "init": init}
        case ScalarArgument():
            dtype = "int32" if isinstance(argument.value, int) else "float32"
            chosen = DTYPES[argument.dtype] if argument.dtype else dtype
            return {"kind": "scalar", "dtype": chosen, "value": argument.value}
        case _:
            raise SystemExit(f"launch files take buffers and numbers, not {argument}")


def write_contents(contents: Contents) -> str:
    """`zeros`, `noise`, `arange`, `perm:SEED`, `uniform:SEED` or `uniform:SEED:BELOW`."""
    parts = (contents.kind, contents.seed, contents.below)
    return ":".join(str(part) for part in parts if part is not None)


def write_launches(source: Path, folder: Path) -> None:
    """Write the launch file and the cubin of one source."""
    launches = find_launches(source.read_text(), source.name)
    kernels = tuple(dict.fromkeys(launch.kernel for launch in launches))
    compilation = CUDA.compile(source, CompileRequest(TARGET, (), (), kernels))
    (folder / f"{source.stem}.{TARGET}.cubin").write_bytes(compilation.cubin)
    names: dict[str, int] = {}
    cases = []
    for launch in launches:
        count = names[launch.kernel] = names.get(launch.kernel, 0) + 1
        cases.append(write_case(launch, launch.kernel if count == 1 else f"{launch.kernel}_{count}"))
    (folder / f"{source.stem}.json").write_text(json.dumps({"source": source.name, "cases": cases}))


def main() -> None:
    """Write those of all sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for source in options.sources:
        write_launches(source, options.output)


if __name__ == "__main__":
    main()
