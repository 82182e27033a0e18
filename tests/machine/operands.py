"""Turns a seed into operands that sit on the edges of formats as often as between them."""

from __future__ import annotations

import random
import struct

WORD_EDGES = (
    *(0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000),
    *(0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFF0, 0x55555555, 0xAAAAAAAA, 0x00FF00FF),
)
SINGLE_EDGES = (
    *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x40000000, 0xC0400000, 0x3FC00000, 0x40200000),
    *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF),
    *(0xFF7FFFFF, 0x00000001, 0x80000001, 0x007FFFFF, 0x00012345, 0x4B800000, 0x4B7FFFFF, 0x4F000000, 0xCF000000),
    *(0x3F7FFFFF, 0x3F800001, 0x5F000000, 0x1E3CE508, 0x3EAAAAAB),
)
HALF_EDGES = (
    *(0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0x7FFF, 0x0001, 0x8001, 0x03FF, 0x0400),
    *(0x7BFF, 0xFBFF, 0x3800, 0x3555, 0x3BFF, 0x4200),
)
DOUBLE_EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, float("inf"), float("-inf"), float("nan"), 5e-324, -5e-324, 1e-310),
    *(2.2250738585072014e-308, 1.7976931348623157e308, 2147483647.5, -2147483648.5, 1e300, 1e-300, 1 / 3, 2.0**63),
)


def words(seed: int, count: int = 1024) -> list[int]:
    """Integers of 32 bits."""
    chosen = random.Random(seed)  # noqa: S311 - test data
    return [chosen.choice(WORD_EDGES) if chosen.random() < 0.4 else chosen.getrandbits(32) for _ in range(count)]


def shift_counts(seed: int, count: int = 1024) -> list[int]:
    """Integers up to just above 64, and a few far above."""
    chosen = random.Random(seed)  # noqa: S311 - test data
    return [chosen.choice((0xFFFFFFFF, 0x80000000, 1 << 16)) if chosen.random() < 0.05 else chosen.randrange(70)
            for _ in range(count)]  # fmt: skip


def singles(seed: int, count: int = 1024) -> list[int]:
    """Bits of float32."""
    chosen = random.Random(seed)  # noqa: S311 - test data
    values = []
    for _ in range(count):
        kind = chosen.random()
        if kind < 0.35:
            values.append(chosen.choice(SINGLE_EDGES))
        elif kind < 0.6:
            values.append(chosen.getrandbits(32))
        else:
            number = chosen.gauss(0, 1) * 2.0 ** chosen.randrange(-8, 9)
            values.append(int.from_bytes(struct.pack("<f", number), "little"))
    return values


def halves(seed: int, count: int = 1024) -> list[int]:
    """Bits of two float16."""
    chosen = random.Random(seed)  # noqa: S311 - test data

    def one() -> int:
        kind = chosen.random()
        if kind < 0.3:
            return chosen.choice(HALF_EDGES)
        if kind < 0.5:
            return chosen.getrandbits(16)
        number = chosen.gauss(0, 1) * 2.0 ** chosen.randrange(-6, 7)
        return int.from_bytes(struct.pack("<e", number), "little")

    return [one() | one() << 16 for _ in range(count)]


def doubles(seed: int, count: int = 512) -> list[float]:
    """Doubles."""
    chosen = random.Random(seed)  # noqa: S311 - test data
    values = []
    for _ in range(count):
        kind = chosen.random()
        if kind < 0.3:
            values.append(chosen.choice(DOUBLE_EDGES))
        elif kind < 0.5:
            values.append(struct.unpack("<d", chosen.getrandbits(64).to_bytes(8, "little"))[0])
        else:
            values.append(chosen.gauss(0, 1) * 2.0 ** chosen.randrange(-40, 41))
    return values


def signed(value: int, bits: int = 32) -> int:
    """A bit pattern read as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value
