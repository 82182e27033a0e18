"""Turns a kernel's seed into what it reads: words, floats, doubles and halves, rich in values at which rules change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tools.fuzz.stream import Stream, mix_many

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]

WORDS_PER_THREAD = 20
"""Words 0 to 3 are integers, 4 to 7 floats, 8 to 11 two long integers, 12 to 15 two doubles, 16 and 17 pairs of f16,
18 and 19 pairs of bf16."""

INTEGERS = (
    0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x00FFFFFF, 0x01000000, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFF0000, 0xFFFFFFF0, 0xFFFFFFFE,
    0xFFFFFFFF, 0xAAAAAAAA, 0x55555555, 0x0F0F0F0F, 0x80808080, 0x7F7F7F7F, 0x80008000, 0x7FFF7FFF, 0xFF00FF00,
)  # fmt: skip
FLOATS = (
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x40000000, 0x3F000000, 0x00000001,
    0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
    0x7FC00000, 0x7FFFFFFF, 0x7F800001, 0xFFC12345, 0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4F000000, 0xCF000000,
    0x4EFFFFFF, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0x5F800000, 0xDF000000, 0x3FC00000, 0x40200000, 0xC0200000,
    0x42FF0000, 0x437F8000, 0xC3008000, 0x477FFF00, 0x477FE000, 0x33800000, 0x33000000, 0x38800000, 0x387FC000,
)  # fmt: skip
HALVES = (
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x4000, 0x3800, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400,
    0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7FFF, 0x7C01, 0xFE12, 0x6400, 0x6800, 0x77FF, 0x7800, 0x4200, 0x4100,
)  # fmt: skip
BFLOATS = (
    0x0000, 0x8000, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0x4000, 0x3F00, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080,
    0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7FFF, 0x7F81, 0xFFC1, 0x4300, 0x4380, 0x4F00, 0x4F80, 0x4040, 0x4020,
)  # fmt: skip
DOUBLES = (
    0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001,
    0x3FEFFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
    0x8010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000001, 0xFFF8123456789ABC, 0x4330000000000000,
    0x41E0000000000000, 0xC1E0000000000000, 0x41DFFFFFFFC00000, 0x41EFFFFFFFE00000, 0x43E0000000000000,
    0xC3E0000000000000, 0x43F0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x36A0000000000000,
    0x3690000000000000, 0x380FFFFFC0000000, 0x3FF8000000000000, 0x4004000000000000, 0x40DFFC0000000000,
)  # fmt: skip


def make_inputs(seed: int, threads: int) -> Words:
    """Words that the kernel of this seed reads, `threads * WORDS_PER_THREAD`."""
    draws = mix_many(seed ^ 0x5EED, threads * WORDS_PER_THREAD * 2).reshape(threads, WORDS_PER_THREAD, 2)
    kinds, bits = draws[..., 0], draws[..., 1]
    words = np.empty((threads, WORDS_PER_THREAD), np.uint32)
    words[:, 0:4] = _integers(kinds[:, 0:4], bits[:, 0:4])
    words[:, 4:8] = _floats(kinds[:, 4:8], bits[:, 4:8])
    words[:, 8:12] = _integers(kinds[:, 8:12], bits[:, 8:12])
    doubles = _doubles(kinds[:, 12:14], bits[:, 12:14])
    words[:, 12:16] = np.ascontiguousarray(doubles).view(np.uint32)
    for first, table, exponent in ((16, HALVES, 0x3C00), (18, BFLOATS, 0x3F80)):
        low = _halves(kinds[:, first : first + 2], bits[:, first : first + 2], table, exponent)
        high_kinds = kinds[:, first : first + 2] >> np.uint64(32)
        high = _halves(high_kinds, bits[:, first : first + 2] >> np.uint64(32), table, exponent)
        words[:, first : first + 2] = low | high << np.uint32(16)
    return words.reshape(-1)


def make_scalars(seed: int) -> tuple[int, int, int, int, int]:
    """Bits of the scalar arguments: two words, a float, a double, a long integer."""
    stream = Stream(seed ^ 0x5CA1)
    words = [stream.pick(INTEGERS) if stream.chance(40) else stream.word() & 0xFFFFFFFF for _ in range(2)]
    single = stream.pick(FLOATS)
    double = stream.pick(DOUBLES)
    return words[0], words[1], single, double, stream.word() >> stream.below(64)


def _pick(table: tuple[int, ...], bits: npt.NDArray[np.uint64], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    picked: npt.NDArray[Any] = np.array(table, dtype)[(bits >> np.uint64(20)) % np.uint64(len(table))]
    return picked


def _integers(kinds: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> Words:
    word = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    shift = ((bits >> np.uint64(40)) & np.uint64(31)).astype(np.uint32)
    return np.choose(
        (kinds % np.uint64(5)).astype(np.int64),
        [
            _pick(INTEGERS, bits, np.uint32),
            word,
            word >> shift,
            np.uint32(1) << shift,
            (word.view(np.int32) >> shift.view(np.int32)).view(np.uint32),
        ],
    )


def _floats(kinds: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> Words:
    word = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    near = (word & np.uint32(0x807FFFFF)) | (np.uint32(118) + (word >> np.uint32(5)) % np.uint32(20)) << np.uint32(23)
    whole = ((word.view(np.int32) >> 20).astype(np.float32) * np.float32(0.5)).view(np.uint32)
    table = _pick(FLOATS, bits, np.uint32)
    return np.choose((kinds % np.uint64(6)).astype(np.int64), [table, table, word, near, near, whole])


def _doubles(kinds: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    place = np.uint64(1003) + (bits >> np.uint64(5)) % np.uint64(40)
    near = (bits & np.uint64(0x800FFFFFFFFFFFFF)) | place << np.uint64(52)
    singles = _floats(kinds >> np.uint64(8), bits >> np.uint64(16))
    # Not by NumPy's conversion, which is the processor's: it would quieten a NaN that signals.
    exact = np.where((singles & np.uint32(0x7F800000)) == np.uint32(0x7F800000), near, _widen(singles))
    table = _pick(DOUBLES, bits, np.uint64)
    return np.choose((kinds % np.uint64(6)).astype(np.int64), [table, table, bits, near, near, exact])


def _widen(singles: Words) -> npt.NDArray[np.uint64]:
    finite = np.where((singles & np.uint32(0x7F800000)) == np.uint32(0x7F800000), np.uint32(0), singles)
    return finite.view(np.float32).astype(np.float64).view(np.uint64)


def _halves(
    kinds: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64], table: tuple[int, ...], one: int
) -> npt.NDArray[np.uint32]:
    word = (bits & np.uint64(0xFFFF)).astype(np.uint32)
    near = (word & np.uint32(0x83FF)) + np.uint32(one - 0x400)
    known = _pick(table, bits, np.uint32)
    return np.choose((kinds % np.uint64(4)).astype(np.int64), [known, known, word, near & np.uint32(0xFFFF)])
