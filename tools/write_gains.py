"""Turns kernels with a remedy into pairs, before and after, that `tools/measure_gains.py` can time on any GPU.

    python tools/write_gains.py pairs tests/measured/gains     the changed sources, all cubins, and pairs.json
    python tools/write_gains.py predict tests/measured/gains   what the model says of each, into predicted.json

Each source names two launches in comments: a small one, for which the remedy that `PAIRS` names is found and proven,
and the one that is timed. `pairs` writes what the remedy makes of the source into `NAME.after.cu`.

`RECORDED` are remedies of kernels of `tests/measured/h200` that make one of them into another: both were measured there
already, by a profiler.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from sectorwise.analyze import analyze
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.launch.comments import find_launches
from sectorwise.launch.config import BufferArgument, LaunchConfig, ScalarArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.launch.files import parse_launch_file, read_launch_file
from sectorwise.launch.notation import parse_launch
from sectorwise.source import read_source
from sectorwise.version import __version__

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.findings import Remedy

TARGET: Final = "sm_90"
PAIRS: Final = {
    "naive": ("naive.cu", "stage through"),
    "tile_padded": ("tile.cu", "pad the rows"),
    "tile_swizzled": ("tile.cu", "swizzle tile"),
    "flat": ("flat.cu", "pad the rows"),
    "matrices_padded": ("matrices.cu", "pad the rows"),
    "matrices_swizzled": ("matrices.cu", "swizzle tile"),
    "sgemm": ("sgemm.cu", "pad the rows of rows"),
    "product": ("product.cu", "let threadIdx.x"),
    "points": ("points.cu", "align Point"),
    "runs": ("runs.cu", "promise"),
    "waiting": ("waiting.cu", "unroll"),
}
"""Names of the pairs: the source, and how the title of the remedy begins."""

H200: Final = Path(__file__).parents[1] / "tests" / "measured" / "h200"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Two measured launches of a family; `small` is a launch for which the remedy that begins with `start` is found."""

    family: str
    before: str
    after: str
    start: str
    small: str


_FLOATS: Final = "<<<(8, 8), (32, 8)>>>(f32[256*256]=arange, f32[256*256], 256)"
_RECORDS: Final = "<<<16, 256>>>(f32[16*256*12]=uniform(1), f32[16*256])"
_HALVES: Final = _FLOATS.replace("f32", "u16")
RECORDED: Final = {
    "tile_padded": Recorded("transposes", "t_tr_tile", "t_tr_pad", "pad the rows", f"t_tr_tile{_FLOATS}"),
    "tile_swizzled": Recorded("transposes", "t_tr_tile", "t_tr_xor", "swizzle t", f"t_tr_tile{_FLOATS}"),
    "naive": Recorded("transposes", "t_tr_naive", "t_tr_pad", "stage through", f"t_tr_naive{_FLOATS}"),
    "naive_u16": Recorded("transposes", "t_tr_naive_u16", "t_tr_pad_u16", "stage through", f"t_tr_naive_u16{_HALVES}"),
    "records": Recorded("records", "t_aos48_all", "t_aos48_vec", "promise", f"t_aos48_all{_RECORDS}"),
}
"""Remedies by which one measured launch becomes another."""


def find_remedy(source: Path, start: str) -> tuple[LaunchConfig, LaunchConfig, Remedy]:
    """The launches of a source, and the remedy whose title begins so, for the small one."""
    small, timed = find_launches(read_source(source).text, source.name, source.parent)
    (kernel,) = analyze(source, small, device="h200", remedies=True).kernels
    remedies = [remedy for finding in kernel.findings for remedy in finding.remedies]
    found = next((remedy for remedy in remedies if remedy.title.startswith(start)), None)
    if found is None:
        raise SystemExit(f"{source}: no remedy {start!r}; there are {[remedy.title for remedy in remedies]}")
    return small, timed, found


def scale_remedy(source: str, small: LaunchConfig, timed: LaunchConfig, remedy: Remedy) -> tuple[str, LaunchConfig]:
    """The changed source and the launch that goes with it, for the launch that is timed.

    Numbers of the small launch that a remedy wrote into the source, as for a staged transpose, become the timed one's.
    """
    lines = remedy.source_text.splitlines(keepends=True)
    for few, many in zip(small.arguments, timed.arguments, strict=True):
        if not isinstance(few, ScalarArgument) or not isinstance(many, ScalarArgument):
            continue
        number = re.compile(rf"\b{few.value}\b")
        if not any(number.search(line) for line in source.splitlines() if not line.startswith("//")):
            lines = [line if line.startswith("//") else number.sub(str(many.value), line) for line in lines]
    text = "".join(lines)
    return text, replace(timed, block=parse_launch(remedy.launch).block)


def write_pairs(folder: Path) -> None:
    """Write the changed sources, a cubin for each side, and the file of all launches."""
    pairs = []
    for name, (file, start) in PAIRS.items():
        source = folder / file
        small, timed, remedy = find_remedy(source, start)
        after = folder / f"{name}.after.cu"
        text, launch = scale_remedy(source.read_text(encoding="utf-8"), small, timed, remedy)
        after.write_text(text, encoding="utf-8")
        before_side = _write_side(source, timed, source.stem)
        after_side = _write_side(after, launch, f"{name}.after")
        title = {"title": remedy.title, "quantity": remedy.quantity}
        pairs.append({"name": name, "source": file, **title, "before": before_side, "after": after_side})
        print(name, remedy.title, remedy.before, remedy.after)
    (folder / "pairs.json").write_text(json.dumps({"pairs": pairs}, indent=1) + "\n", encoding="utf-8")
    _compile(folder / "flush.cu", "flush")


def predict(folder: Path) -> None:
    """Write what the model says of both sides of every pair: time, and what holds it up."""
    predicted: dict[str, Any] = {}
    for pair in json.loads((folder / "pairs.json").read_text(encoding="utf-8"))["pairs"]:
        predicted[pair["name"]] = {side: predict_side(folder, pair[side]) for side in ("before", "after")}
        print(pair["name"], predicted[pair["name"]], flush=True)
    recorded = {}
    for name, pair in RECORDED.items():
        before, after = analyze_recorded(pair, follow_caches=True)
        recorded[name] = {"before": _summarise(before), "after": _summarise(after)}
        print(name, recorded[name], flush=True)
    text = json.dumps({"version": __version__, "pairs": predicted, "recorded": recorded}, indent=1)
    (folder / "predicted.json").write_text(text + "\n", encoding="utf-8")


def analyze_recorded(pair: Recorded, *, follow_caches: bool = False) -> tuple[KernelAnalysis, KernelAnalysis]:
    """The launch that was measured, and what its remedy makes of the source, under the launch that goes with it."""
    source = H200 / f"{pair.family}.cu"
    cases = {launch.case: launch for launch in read_launch_file(H200 / f"{pair.family}.json").cases}
    small, timed = parse_launch(pair.small), cases[pair.before]
    (kernel,) = analyze(source, small, device="h200", remedies=True).kernels
    remedies = [remedy for finding in kernel.findings for remedy in finding.remedies]
    remedy = next(remedy for remedy in remedies if remedy.title.startswith(pair.start))
    text, launch = scale_remedy(source.read_text(encoding="utf-8"), small, timed, remedy)
    (before,) = analyze(H200 / f"{pair.family}.sm_90.cubin", timed, device="h200", follow_caches=follow_caches).kernels
    with TemporaryDirectory() as folder:
        changed = Path(folder) / source.name
        changed.write_text(text, encoding="utf-8")
        (after,) = analyze(changed, launch, device="h200", follow_caches=follow_caches).kernels
    return before, after


def predict_side(folder: Path, side: dict[str, Any]) -> dict[str, Any]:
    """The model's time of one launch, and the counts that a remedy is chosen by."""
    case = {key: side[key] for key in ("kernel", "grid", "block", "shared", "args")}
    (launch,) = parse_launch_file(json.dumps({"cases": [case]}), folder / side["cubin"]).cases
    (kernel,) = analyze(folder / side["cubin"], launch, device="h200", follow_caches=True).kernels
    return _summarise(kernel)


def _summarise(kernel: KernelAnalysis) -> dict[str, Any]:
    time, totals = kernel.time, kernel.totals
    if time is None:
        raise SystemExit(f"{kernel.name}: no time: {kernel.limitations}")
    return {
        "time_ns": round(time.estimate_ns),
        "bound": time.bound,
        "sectors": totals.l2_theoretical_sectors,
        "wavefronts": totals.shared_wavefronts,
    }


def _write_side(source: Path, launch: LaunchConfig, stem: str) -> dict[str, Any]:
    return {
        "cubin": _compile(source, stem).name,
        "kernel": launch.kernel,
        "grid": launch.grid,
        "block": launch.block,
        "shared": launch.dynamic_shared_bytes,
        "args": [_describe(argument) for argument in launch.arguments],
    }


def _compile(source: Path, stem: str) -> Path:
    cubin = source.with_name(f"{stem}.{TARGET}.cubin")
    cubin.write_bytes(CUDA.compile_text(Path(source.name), source.read_text(), CompileRequest(TARGET)).cubin)
    return cubin


def _describe(argument: object) -> dict[str, Any]:
    """An argument in the form of launch files."""
    match argument:
        case BufferArgument():
            dtype = ELEMENT_TYPES[argument.dtype].storage
            recipe = argument.contents
            init = recipe.kind if recipe.seed is None else f"{recipe.kind}:{recipe.seed}"
            return {"kind": "buffer", "dtype": str(dtype), "size": argument.count, "init": init}
        case ScalarArgument():
            return {"kind": "scalar", "dtype": "int32", "value": argument.value}
        case _:
            raise SystemExit(f"no way to write {argument}")


def main(arguments: list[str]) -> None:
    """The command lines of the module's docstring."""
    match arguments:
        case ["pairs", folder]:
            write_pairs(Path(folder))
        case ["predict", folder]:
            predict(Path(folder))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
