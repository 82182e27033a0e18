"""Turns the name of a kind of input into the four words that each lane of a probe is given."""

from __future__ import annotations

import random
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tests.machine.operands import DOUBLE_EDGES, HALF_EDGES, SINGLE_EDGES, WORD_EDGES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

LANES = 4096

Row = list[int]


def _bits(form: str, *values: float) -> Row:
    data = struct.pack(f"<{len(values)}{form}", *values)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _spread(chosen: random.Random, low: int, high: int) -> float:
    """A number of either sign whose exponent is spread evenly."""
    return chosen.choice((-1, 1)) * (1 + chosen.random()) * 2.0 ** chosen.randrange(low, high)


def _word(chosen: random.Random) -> int:
    return chosen.choice(WORD_EDGES) if chosen.random() < 0.5 else chosen.getrandbits(32)


def _single(chosen: random.Random) -> int:
    kind = chosen.random()
    if kind < 0.35:
        return chosen.choice(SINGLE_EDGES)
    return chosen.getrandbits(32) if kind < 0.55 else _bits("f", _spread(chosen, -8, 8))[0]


def _half(chosen: random.Random) -> int:
    kind = chosen.random()
    if kind < 0.25:
        return chosen.choice(HALF_EDGES)
    if kind < 0.5:
        return chosen.getrandbits(16)
    return int.from_bytes(struct.pack("<e", _spread(chosen, -6, 6)), "little")


def _double(chosen: random.Random) -> Row:
    kind = chosen.random()
    if kind < 0.3:
        return _bits("d", chosen.choice(DOUBLE_EDGES))
    if kind < 0.36:
        # NaN with payloads, quiet and not.
        return [chosen.getrandbits(8) | 1, 0x7FF00000 | chosen.getrandbits(1) << 31 | chosen.getrandbits(20)]
    if kind < 0.5:
        return [chosen.getrandbits(32), chosen.getrandbits(32)]
    return _bits("d", _spread(chosen, -40, 40))


def _equal(chosen: random.Random) -> Row:
    a, b, c, d = (_word(chosen) for _ in range(4))
    return [a, b, a if chosen.random() < 0.4 else c, b if chosen.random() < 0.7 else d]


def _shift(chosen: random.Random) -> Row:
    count = chosen.choice((0xFFFFFFFF, 0x80000000)) if chosen.random() < 0.03 else chosen.randrange(72)
    return [_word(chosen), count, _word(chosen), _word(chosen)]


def _halfway(chosen: random.Random) -> Row:
    """Singles whose products and sums fall on, or just beside, the middle between two singles."""
    a = (chosen.getrandbits(23) | 1 << 23) * 2.0 ** chosen.randrange(-30, 4) * chosen.choice((-1, 1))
    b = 2.0 ** chosen.randrange(-25, 25) if chosen.random() < 0.5 else (chosen.getrandbits(23) | 1 << 23) * 2.0**-20
    c = -a * b if chosen.random() < 0.5 else _spread(chosen, -30, 20)
    if chosen.random() < 0.2:
        a, c = a * 2.0**-126, c * 2.0**-126
    return _bits("f", a, b, c, 1 + chosen.randrange(4) * 2.0**-23)


def _denormal(chosen: random.Random) -> Row:
    row = [chosen.getrandbits(32) & 0x80FFFFFF if chosen.random() < 0.5 else _single(chosen) for _ in range(4)]
    if chosen.random() < 0.2:
        row[0], row[1] = 0x00700000 + chosen.getrandbits(21), 0x3F000000 + chosen.getrandbits(23)
    return row


def _integral(chosen: random.Random) -> Row:
    def one() -> int:
        kind = chosen.random()
        if kind < 0.3:
            return chosen.choice(SINGLE_EDGES)
        return _bits("f", chosen.randrange(-600, 600) / 2 if kind < 0.6 else _spread(chosen, -3, 70))[0]

    return [one() for _ in range(4)]


def _integral_double(chosen: random.Random) -> Row:
    def one() -> Row:
        kind = chosen.random()
        if kind < 0.3:
            return _double(chosen)
        return _bits("d", chosen.randrange(-600, 600) / 2 if kind < 0.6 else _spread(chosen, -3, 70))

    return one() + one()


def _small(form: str, width: int, chosen: random.Random) -> Row:
    numbers = [float(chosen.randrange(-8, 9)) for _ in range(16 // width)]
    return _bits(form, *numbers)


def _small_brain(chosen: random.Random) -> Row:
    words = [_bits("f", float(chosen.randrange(-8, 9)), float(chosen.randrange(-8, 9))) for _ in range(4)]
    return [low >> 16 | high & 0xFFFF0000 for low, high in words]


_ROWS: dict[str, Callable[[random.Random], Row]] = {
    "words": lambda chosen: [_word(chosen) for _ in range(4)],
    "equal": _equal,
    "shift": _shift,
    "singles": lambda chosen: [_single(chosen) for _ in range(4)],
    "halfway": _halfway,
    "denormal": _denormal,
    "integral": _integral,
    "halves": lambda chosen: [_half(chosen) | _half(chosen) << 16 for _ in range(4)],
    "to_half": lambda chosen: [
        _single(chosen) if chosen.random() < 0.3 else _bits("f", _spread(chosen, -28, 18))[0] for _ in range(4)
    ],
    "brains": lambda chosen: [_single(chosen) >> 16 | _single(chosen) & 0xFFFF0000 for _ in range(4)],
    "doubles": lambda chosen: _double(chosen) + _double(chosen),
    "integral_doubles": _integral_double,
    "small_halves": lambda chosen: _small("e", 2, chosen),
    "small_brains": _small_brain,
    "small_singles": lambda chosen: _small("f", 4, chosen),
    "small_doubles": lambda chosen: _small("d", 8, chosen),
}

KINDS = tuple(_ROWS)


@lru_cache(maxsize=len(_ROWS))
def make_inputs(kind: str) -> npt.NDArray[np.uint32]:
    """Words `[LANES, 4]`, the same on every machine and with every version of Python."""
    chosen = random.Random(f"sectorwise {kind}")  # noqa: S311 - test data
    return np.array([_ROWS[kind](chosen) for _ in range(LANES)], np.uint32)
