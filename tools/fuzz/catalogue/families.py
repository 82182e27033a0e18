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
from tools.fuzz.catalogue.uniform import make_uniforms
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
"""From this seed on kernels dwell on what those before them have rarely met."""

FOCUSED = ("compare", "atomics", "uniform", "memory", "compare", "uniform", "memory", "compare")
"""Characters of such consecutive seeds: most forms are those of comparisons, accesses and the uniform data path."""

REWRITTEN_FROM = 9600
"""From this seed on the machine code is rewritten to instructions that compilers hardly write."""

REWRITTEN = ("compare", "atomics", "uniform", "convert", "compare", "atomics", "uniform", "memory", "half", "atomics")
"""Characters of such consecutive seeds."""

RELATED_FROM = 10560
"""From this seed on kernels are earlier ones, on other numbers."""

RELATED = (
    *(654, 347, 1935, 1675, 4475),
    *(68, 648, 368, 2975, 5355, 7175, 4684, 229, 9073, 9227, 8654, 8965, 8393, 8182, 9577, 8161, 8001, 8238, 9017),
)
"""Kernels for which the compiler made instructions that it makes once in thousands."""
