"""An analysis as large as people make them: 50 launches of a kernel of 5,000 instructions, each with its own counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sectorwise.analysis.instructions import InstructionUse, PatternUse
from sectorwise.findings import Picture, Scene
from tests.report.samples import SITES, make_analysis, make_kernel, place

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis

INSTRUCTIONS = 5000
LAUNCHES = 50
SITES_EACH = 700
LINES = 1500


def make_large_analysis() -> Analysis:
    base = make_kernel()
    kernels = []
    for launch in range(LAUNCHES):
        sites = []
        for number in range(SITES_EACH):
            shape = SITES[number % 4]
            lanes = tuple((number % 7 + 1) * 4 * lane + (lane % 3) * 128 for lane in range(32))
            picture = Picture(Scene.SECTORS, 4, lanes, 32, 100)
            sites.append(
                replace(
                    shape,
                    offset=f"0x{number * 7 * 16:04x}",
                    executed=2048 + launch,
                    sectors=8192 + 3 * number + launch,
                    location=place(number * 2 + 1),
                    patterns=(PatternUse(100 + launch, 40, 4, 0, 0, (picture,)),),
                )
            )
        code = tuple(
            InstructionUse(
                f"0x{number * 16:04x}",
                f"IMAD.WIDE.U32 R{number % 200}, R{number % 190}, 0x{number:x}, R{number % 180}",
                place(number * LINES // INSTRUCTIONS + 1),
                2048 + launch * (number // 100 % 9),
            )
            for number in range(INSTRUCTIONS)
        )
        kernels.append(replace(base, case=f"case {launch}", sites=tuple(sites), instructions=code))
    text = "".join(f"    value{line} = table[index + {line}] * scale;  // line {line}\n" for line in range(LINES))
    return make_analysis(*kernels, source_texts={"sample.cu": text})
