"""What shuffles give of lanes that do not take part: words that an H200 left, 30 November 2026 (driver 580.159.04).

PTX leaves it open. CUDA's sample `reduction` rests on it: eight lanes of `reduce7` add what lanes 16 further on give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.analyze import analyze
from sectorwise.machine.execution import Engine, ExecutionOptions

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = r"""
#define SHUFFLE(mode, operand, mask) \
    asm volatile("{ .reg .pred p; shfl.sync." mode ".b32 %0|p, %2, %3, 31, %4; selp.u32 %1, 1, 0, p; }" \
                 : "=r"(r), "=r"(q) : "r"(v), "r"(operand), "r"(mask))
#define KERNEL(name) extern "C" __global__ void name(unsigned* out, unsigned few)
#define BEGIN(takes_part) \
    unsigned t = threadIdx.x, v = 1000 + 3 * t, r = 7, q = 9, mask = __ballot_sync(__activemask(), takes_part)
#define END out[t] = r + few, out[32 + t] = q
KERNEL(down) { BEGIN(t < few); if (t < few) { SHUFFLE("down", 16, mask); END; } }
KERNEL(to_index) { BEGIN(t < few); if (t < few) { SHUFFLE("idx", 20, mask); END; } }
KERNEL(to_indices) { BEGIN(t < few); if (t < few) { SHUFFLE("idx", t * 3, mask); END; } }
KERNEL(across) { BEGIN(t < few); if (t < few) { SHUFFLE("bfly", 16, mask); END; } }
KERNEL(up) { BEGIN(t >= few); if (t >= few) { SHUFFLE("up", 8, mask); END; } }
KERNEL(ended) { BEGIN(t < few); if (t >= few) return; SHUFFLE("down", 16, mask); END; }
KERNEL(never_there) { BEGIN(true); SHUFFLE("down", 16, mask); END; }
"""

FEW = range(8)
GIVEN = {
    "down": dict.fromkeys(FEW, (8, 1)),
    "to_index": dict.fromkeys(FEW, (8, 1)),
    "to_indices": {lane: (1008 + 9 * lane if lane < 3 else 8, 1) for lane in FEW},
    "across": dict.fromkeys(FEW, (8, 1)),
    "up": {lane: (1008 + 3 * lane, 0) for lane in range(8, 32)},
    "ended": dict.fromkeys(FEW, (8, 1)),
    "never_there": {
        **{lane: (1072 + 3 * lane, 1) for lane in FEW},
        **dict.fromkeys(range(8, 16), (24, 1)),
        **{lane: (1024 + 3 * lane, 0) for lane in range(16, 24)},
    },
}
"""By kernel and lane the word that the GPU stored, `few` added, and whether the source was in the segment."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shuffles") / "shuffles.cu"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.NATIVE])
@pytest.mark.parametrize("name", GIVEN)
def test_lanes_that_are_not_there_give_zero(source: Path, name: str, engine: Engine) -> None:
    threads, few = (24, 24) if name == "never_there" else (32, 8)
    launch = f"{name}<<<1, {threads}>>>(u32[64], {few})"
    options = ExecutionOptions(engine=engine)
    (kernel,) = analyze(source, launch, device="h200", options=options, keep_outputs=True).kernels
    assert kernel.limitations == ()
    assert kernel.outputs is not None
    expected = [0] * 64
    for lane, (word, inside) in GIVEN[name].items():
        expected[lane], expected[32 + lane] = word, inside
    assert kernel.outputs[0].values.tolist() == expected
