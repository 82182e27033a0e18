"""Turns the claims of `tools/textbook` into the page docs/textbook.md: python -m tools.write_textbook [--check]."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tools.textbook.claim import ROOT
from tools.textbook.coalescing_claims import COALESCING
from tools.textbook.device_claims import DEVICES
from tools.textbook.memory_claims import RECORDS, SHARED
from tools.textbook.tiling_claims import TILING

if TYPE_CHECKING:
    from tools.textbook.claim import Claim, Number

_CLOSE, _LARGE = 0.02, 1000
PAGE = ROOT / "docs" / "textbook.md"
SECTIONS = (
    ("Coalescing", COALESCING),
    ("Layout of records", RECORDS),
    ("Shared memory", SHARED),
    ("Tiling and concurrency", TILING),
    ("Devices", DEVICES),
)
HEAD = """\
# Textbook numbers, checked

Statements that circulate in courses and interviews on GPU memory, each with the numbers that hold: computed by this
package, and counted or timed on an H200 where a measured launch shows it (`tests/measured`). Statements that are wrong
as they are usually told stand out. This page is written by `python -m tools.write_textbook`; a test holds every
number against what is computed and measured. Who has a GPU of compute capability 9.0 measures again with
`python -m tools.measure_textbook`: the kernels are in `tests/measured/textbook`.
"""


def write_page() -> str:
    """The page."""
    lines = [HEAD]
    for title, claims in SECTIONS:
        lines += [f"## {title}", ""]
        for claim in claims:
            lines += [*write_claim(claim), ""]
    return "\n".join(lines).rstrip() + "\n"


def write_claim(claim: Claim) -> list[str]:
    """A heading, the statement, what is true, the numbers, and the command."""
    wrong = claim.verdict.split()[0] in {"false", "equal,", "not", "somewhat"}
    verdict = f"{claim.verdict[0].upper()}{claim.verdict[1:]}."
    lines = [f"### {claim.code}. {claim.statement}", "", f"{f'**{verdict}**' if wrong else verdict} {claim.truth}", ""]
    if claim.computed:
        lines.append(f"- computed: {', '.join(write_number(number) for number in claim.computed)}")
    measured = ", ".join(write_number(number) for number in claim.measured)
    lines.append(f"- measured: {measured or claim.unmeasured}")
    lines.append(f"- again: `{claim.command}`")
    return lines


def write_number(number: Number) -> str:
    """`sectors: 4`; estimates with two digits, times as measured with three, exact numbers whole."""
    value = float(number.find())
    if 0.002 < number.within <= _CLOSE:
        return f"{number.name}: {value:.3g}" if abs(value) < _LARGE else f"{number.name}: {value:,.0f}"
    if number.within > _CLOSE:
        return f"{number.name}: {value:.2g}" if abs(value) < 100 else f"{number.name}: {value:,.0f}"
    return f"{number.name}: {value:,.6g}"


def main() -> None:
    """Write the page, or check that it is what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 where the page is another")
    options = parser.parse_args()
    page = write_page()
    if options.check:
        sys.exit(PAGE.read_text(encoding="utf-8") != page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
