"""Turns the catalogue into families: lists from which a kernel of one character draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.comparisons import make_comparisons
from tools.fuzz.catalogue.conversions import make_conversions
from tools.fuzz.catalogue.floats import make_doubles, make_singles
from tools.fuzz.catalogue.half import make_bfloats, make_halves
from tools.fuzz.catalogue.integer import make_carries, make_longs, make_packed, make_truths, make_words
from tools.fuzz.catalogue.matrix import make_matrices
from tools.fuzz.catalogue.operation import ptx
from tools.fuzz.catalogue.uniform import make_uniform_sums, make_uniforms
from tools.fuzz.catalogue.warp import make_collectives, make_shuffles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.fuzz.catalogue.operation import Operation

WORDS = tuple(make_words())
CARRIES = tuple(make_carries())
LONGS = tuple(make_longs())
TRUTHS = tuple(make_truths())
PACKED = tuple(make_packed())
SINGLES = tuple(make_singles())
DOUBLES = tuple(make_doubles())
HALVES = tuple(make_halves())
BFLOATS = tuple(make_bfloats())
CONVERSIONS = tuple(make_conversions())
SHUFFLES = tuple(make_shuffles())
COLLECTIVES = tuple(make_collectives())
COMPARISONS = tuple(make_comparisons())
MATRICES = tuple(make_matrices())
UNIFORMS = tuple(make_uniforms())
UNIFORM_SUMS = tuple(make_uniform_sums())
ACTIVE = (ptx("activemask.b32", "u", "u", "{ .reg .u32 t; activemask.b32 t; xor.b32 %0, t, %1; }", collective=True),)

WHOLE_WARPS = (SHUFFLES, MATRICES)
"""Lists whose operations are defined only where all lanes of a warp execute them."""

FAMILIES: Mapping[str, tuple[tuple[Operation, ...], ...]] = {
    "integer": (WORDS, WORDS, CARRIES, LONGS, TRUTHS),
    "packed": (PACKED, WORDS, TRUTHS),
    "single": (SINGLES, SINGLES, WORDS),
    "double": (DOUBLES, LONGS, TRUTHS),
    "half": (HALVES, HALVES, TRUTHS),
    "bfloat": (BFLOATS, BFLOATS, WORDS),
    "convert": (CONVERSIONS,),
    "warp": (SHUFFLES, COLLECTIVES, WORDS, TRUTHS),
    "control": (WORDS, TRUTHS, TRUTHS, COLLECTIVES),
    "memory": (WORDS, TRUTHS),
    "uniform": (WORDS, LONGS, TRUTHS, CARRIES),
    "matrix": (MATRICES, MATRICES, WORDS),
    "compare": (COMPARISONS, COMPARISONS, TRUTHS),
    "atomics": (WORDS, LONGS),
    "converge": (WORDS, TRUTHS, ACTIVE, ACTIVE),
    "mixed": (WORDS, CARRIES, LONGS, TRUTHS, PACKED, SINGLES, DOUBLES, HALVES, BFLOATS, CONVERSIONS, COLLECTIVES),
}
"""A kernel's character to the lists it draws from: first one of the lists, then one operation of it."""

ORDER = (*FAMILIES, "convert", "convert", "single", "uniform")
"""Characters of consecutive seeds, over and over; those with most operations come twice."""

FOCUSED_FROM = 8000
FOCUSED = ("compare", "atomics", "uniform", "memory", "compare", "uniform", "memory", "compare")

REWRITTEN_FROM = 9600
REWRITTEN = ("compare", "uniform", "atomics", "convert", "uniform", "half", "compare", "uniform", "memory", "atomics")

RELATED = (
    *(654, 229, 4684, 654, 229, 4684),
    *(347, 1935, 648, 5355, 9073, 9227, 8654, 8393, 9577, 8161, 8001, 68, 8965, 513),
)

UNIFORM_FROM = 11072
MOSTLY_UNIFORM = (
    *("uniform", "uniform", "uniform", "convert", "uniform", "uniform", "uniform", "atomics"),
    *("uniform", "uniform", "uniform", "half", "uniform", "uniform", "memory", "uniform"),
)

REST = (12069, "convert", 8635, 12069, "convert", 9520, 12069, "convert")

PLAN: tuple[tuple[int, tuple[str | int, ...]], ...] = (
    (0, ORDER),
    (FOCUSED_FROM, FOCUSED),
    (REWRITTEN_FROM, REWRITTEN),
    (10560, RELATED),
    (UNIFORM_FROM, MOSTLY_UNIFORM),
    (12224, REST),
    (12384, ("integer", "atomics", "integer")),
)
"""From which seed on consecutive seeds have which characters, over and over.

The later ones dwell on what those before them have rarely met: comparisons, accesses, the uniform data path. From
REWRITTEN_FROM on their machine code is rewritten to instructions that compilers hardly write. A number stands for the
kernel of that seed on other inputs, as the compiler made it: it has an instruction that one kernel in thousands has.
"""


def choose_character(seed: int) -> str | int:
    """The character of a seed, or the seed of the kernel that it runs on other inputs."""
    first, characters = next(stage for stage in reversed(PLAN) if seed >= stage[0])
    # What was recorded before there were stages counts from zero.
    return characters[(seed if isinstance(characters[0], str) else seed - first) % len(characters)]
