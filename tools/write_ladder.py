"""Turns the ladders of examples/ladder into docs/ladder.md, with what sectorwise says of each rung.

python tools/write_ladder.py

The last two columns come from rules and models; `tests/docs/test_ladder.py` holds the page to the counts before them.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.analyze import analyze
from sectorwise.rules.table import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.analysis.data import KernelAnalysis

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "ladder.md"
LADDERS: Final = {
    "transpose": "Transpose, 2048 x 2048 floats",
    "records": "Records, 262,144 of 48 bytes",
    "gemv": "Matrix times vector, 4096 x 4096 in bfloat16",
    "gemm": "Matrix product, 1024 x 1024, depth 512",
    "gemm_hopper": "The same for compute capability 9.0",
}
_COUNTED: Final = tuple(
    rule.code for rule in RULES if rule.code.startswith(("SW1", "SW2", "SW3")) and not rule.follows_caches
)
"""Findings that follow from counts alone."""

_COLUMNS: Final = (
    "rung",
    "requests",
    "sectors",
    "ideal",
    "wavefronts",
    "ideal",
    "findings in memory accesses",
    "microseconds, modelled",
)
_HEAD: Final = """\
# Ladders

Four problems, each solved several times, each time a little better, the last one for two kinds of GPU. The sources are
in `examples/ladder`, made to be read; `sectorwise check examples/ladder/gemv.cu` shows any of them line by line. This
page is written by `tools/write_ladder.py`.

Requests and sectors are those of global memory (a bulk copy is a request), wavefronts those of shared memory, on an
H200. They are exact. The last column is what the models make of them (`--caches`, from an empty L2); none of it was
measured. Launches are small: what is said of time says how rungs stand to each other, not what a large matrix takes.
`sectorwise.kernels` has the same ideas in running form, for all shapes.
"""
_TAIL: Final = """\
What these two fetch of A and B is known, since their launches say what the tensor maps are of
([launches.md](launches.md)): 2,048 tiles of 8 KiB. The results of wgmma are not computed, which the reports say; no
count hangs on them. On an H200 all counts were equal ([verify.md](verify.md)), the products within rounding.
`sectorwise.kernels.matmul` begins here: [the log](../benchmarks/kernels/LOG.md) has what each step brought on an H200.
"""


def analyse_ladder(name: str, *, follow_caches: bool) -> tuple[KernelAnalysis, ...]:
    """The analyses of a ladder's rungs, in their order."""
    return analyze(ROOT / "examples" / "ladder" / f"{name}.cu", device="h200", follow_caches=follow_caches).kernels


def describe_counts(kernel: KernelAnalysis, number: int) -> str:
    """The row of a rung, as far as it is counts."""
    totals = kernel.totals
    requests = sum(site.executed for site in kernel.sites if site.space == "global")
    copies = sum(each.copies or 0 for each in kernel.copies)
    sectors = (
        (totals.l2_theoretical_sectors or 0) + sum(each.sectors or 0 for each in kernel.copies),
        (totals.l2_theoretical_sectors_ideal or 0) + sum(each.sectors_ideal or 0 for each in kernel.copies),
    )
    cells = [
        f"{number} `{kernel.name}`",
        *(f"{count:,}" for count in (requests + copies, *sectors)),
        *(f"{count:,}" for count in (totals.shared_wavefronts, totals.shared_wavefronts_ideal)),
    ]
    return f"| {' | '.join(cells)} |"


def read_comments(name: str) -> list[str]:
    """What a ladder's source says of each rung, as items of a list."""
    text = (ROOT / "examples" / "ladder" / f"{name}.cu").read_text(encoding="utf-8")
    found = re.findall(r"^// Rung \d+\. (.*(?:\n//(?! sectorwise).*)*)", text, re.MULTILINE)
    said = [" ".join(line.removeprefix("//").strip() for line in comment.splitlines()) for comment in found]
    return [textwrap.fill(f"{number}. {each}", 120, subsequent_indent="   ") for number, each in enumerate(said, 1)]


def render_ladder(name: str, kernels: Sequence[KernelAnalysis]) -> str:
    """The section of a ladder."""
    rows = []
    for number, kernel in enumerate(kernels, 1):
        time = "" if kernel.time is None else f"{float(f'{kernel.time.estimate_ns / 1000:.3g}'):g}"
        time = "unknown" if any(not each.of_values for each in kernel.limitations) else time
        codes = sorted({finding.code for finding in kernel.findings if finding.code in _COUNTED})
        rows.append(f"{describe_counts(kernel, number)} {', '.join(codes) or 'none'} | {time} |")
    steps = "\n".join(read_comments(name))
    head = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"
    return "\n".join([f"## {LADDERS[name]}\n\n{head}", *rows]) + f"\n\n{steps}\n"


def render() -> str:
    """The whole page."""
    sections = [render_ladder(name, analyse_ladder(name, follow_caches=True)) for name in LADDERS]
    return "\n".join([_HEAD, *sections, _TAIL])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
