from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from sectorwise.machine.algebra import Rounding
from tests.machine.lanes import predicate, register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import doubles, halves, singles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

A, B, C = (singles(seed) for seed in (31, 32, 33))
REGISTERS = {"R2": lanes(A), "R3": lanes(B), "R4": lanes(C)}
NAN = 0x7FFFFFFF

ROUNDINGS = {"": Rounding.NEAREST, ".RZ": Rounding.ZERO, ".RM": Rounding.DOWN, ".RP": Rounding.UP}

# Fraction bits, smallest exponent of a unit in the last place, largest exponent: of each format.
FORMATS = {"f": (24, -149, 128), "e": (11, -24, 16), "d": (53, -1074, 1024), "bfloat16": (8, -133, 128)}


def read(bits: int, form: str = "f") -> float:
    size = {"f": 4, "e": 2, "d": 8}[form]
    value: float = struct.unpack("<" + form, bits.to_bytes(size, "little"))[0]
    return value


def is_nan(bits: int, form: str = "f") -> bool:
    return math.isnan(read(bits, form))


def write(value: float, form: str = "f") -> int:
    size = {"f": 4, "e": 2, "d": 8}[form]
    return int.from_bytes(struct.pack("<" + form, value), "little").__index__() & ((1 << 8 * size) - 1)


def sign_of(bits: int, form: str = "f") -> int:
    return bits >> {"f": 31, "e": 15, "d": 63}[form] & 1


def round_exact(exact: Fraction, rounding: Rounding, form: str = "f") -> float:
    """A rational number in a format, by the definition of rounding."""
    digits, smallest, largest = FORMATS[form]
    size, negative = abs(exact), exact < 0
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - digits, smallest)
    while size >= Fraction(2) ** (exponent + digits):
        exponent += 1
    while exponent > smallest and size < Fraction(2) ** (exponent + digits - 1):
        exponent -= 1
    unit = Fraction(2) ** exponent
    count, rest = divmod(size, unit)
    up = {
        Rounding.NEAREST: rest * 2 > unit or (rest * 2 == unit and count % 2 == 1),
        Rounding.UP: rest > 0 and not negative,
        Rounding.DOWN: rest > 0 and negative,
    }.get(rounding, False)
    value = (count + up) * unit
    if value >= Fraction(2) ** largest:
        away = rounding in (Rounding.NEAREST, Rounding.DOWN if negative else Rounding.UP)
        value_bits = math.inf if away else float((Fraction(2) ** digits - 1) * Fraction(2) ** (largest - digits))
        return -value_bits if negative else value_bits
    return -float(value) if negative else float(value)


def fma(x: float, y: float, z: float, rounding: Rounding, form: str = "f") -> float | None:
    """The value of x * y + z rounded once; None for a NaN."""
    if any(math.isnan(value) for value in (x, y, z)):
        return None
    if math.isinf(x) or math.isinf(y):
        product = math.copysign(1, x) * math.copysign(1, y) * math.inf if x and y else math.nan
        total = product + z
        return None if math.isnan(total) else total
    if math.isinf(z):
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact:
        return round_exact(exact, rounding, form)
    product_sign, addend_sign = math.copysign(1, x) * math.copysign(1, y), math.copysign(1, z)
    if product_sign == addend_sign:
        return 0.0 * product_sign
    return -0.0 if rounding is Rounding.DOWN else 0.0


def single(value: float | None) -> int:
    return NAN if value is None else write(value)


@pytest.mark.parametrize("suffix", ROUNDINGS)
def test_singles_are_rounded_once(suffix: str) -> None:
    rounding = ROUNDINGS[suffix]
    port = run(f"FFMA{suffix} R8, R2, R3, R4 ; FADD{suffix} R9, R2, -R3 ; FMUL{suffix} R10, -R2, |R3|", REGISTERS)
    rows = [(read(a), read(b), read(c)) for a, b, c in zip(A, B, C, strict=True)]
    assert register(port, "R8") == [single(fma(a, b, c, rounding)) for a, b, c in rows]
    assert register(port, "R9") == [single(fma(a, 1.0, -b, rounding)) for a, b, _ in rows]
    products = [fma(-a, abs(b), -0.0 if math.copysign(1, -a) < 0 else 0.0, rounding) for a, b, _ in rows]
    assert register(port, "R10") == [single(product) for product in products]


def test_halfway_singles_are_decided_by_what_lies_below() -> None:
    # The product is exactly halfway between two singles; an addend far below decides.
    halfway, tiny = write(1 + 2.0**-23), write(2.0**-60)
    registers = {"R2": lanes([halfway] * 3), "R3": lanes([write(1.5)] * 3), "R4": lanes([0, tiny, tiny | 1 << 31])}
    port = run("FFMA R8, R2, R3, R4", registers)
    product = Fraction(1 + 2.0**-23) * Fraction(3, 2)
    nearest = [round_exact(product + Fraction(read(c)), Rounding.NEAREST) for c in (0, tiny, tiny | 1 << 31)]
    assert register(port, "R8")[:3] == [write(value) for value in nearest]
    assert len(set(register(port, "R8")[:3])) == 2


def flushed(bits: int) -> int:
    return bits & 1 << 31 if bits & 0x7F800000 == 0 else bits


@pytest.mark.parametrize("suffix", ["", ".RZ", ".RM", ".RP"])
def test_flushing_makes_zeros_of_denormals(suffix: str) -> None:
    port = run(f"FFMA.FTZ{suffix} R8, R2, R3, R4", REGISTERS)
    expected = []
    for a, b, c in zip(A, B, C, strict=True):
        x, y, z = read(flushed(a)), read(flushed(b)), read(flushed(c))
        result = single(fma(x, y, z, ROUNDINGS[suffix]))
        finite = all(math.isfinite(value) for value in (x, y, z))
        exact = Fraction(x) * Fraction(y) + Fraction(z) if finite else Fraction(1)
        # Tiny is what would be below 2**-126 if rounding to 24 bits knew no smallest exponent.
        scaled = round_exact(exact * 2**64, ROUNDINGS[suffix]) if exact and abs(exact) < 1 else 1.0
        tiny = exact != 0 and abs(scaled) < 2.0 ** (64 - 126)
        expected.append((result & 1 << 31) if tiny else result)
    assert register(port, "R8") == expected


def test_saturation_holds_results_between_zero_and_one() -> None:
    port = run("FADD.SAT R8, R2, R3", REGISTERS)
    expected = []
    for a, b in zip(A, B, strict=True):
        value = fma(read(a), 1.0, read(b), Rounding.NEAREST)
        expected.append(write(min(1.0, value)) if value is not None and value > 0 else 0)
    assert register(port, "R8") == expected


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "F": lambda _x, _y: False,
    "LT": lambda x, y: x < y,
    "EQ": lambda x, y: x == y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "NE": lambda x, y: x < y or x > y,
    "GE": lambda x, y: x >= y,
    "NUM": lambda x, y: not (math.isnan(x) or math.isnan(y)),
    "NAN": lambda x, y: math.isnan(x) or math.isnan(y),
    "LTU": lambda x, y: not x >= y,
    "EQU": lambda x, y: not (x < y or x > y),
    "LEU": lambda x, y: not x > y,
    "GTU": lambda x, y: not x <= y,
    "NEU": lambda x, y: x != y,
    "GEU": lambda x, y: not x < y,
    "T": lambda _x, _y: True,
}


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_comparisons_of_singles(comparison: str) -> None:
    flags = {"P3": lanes(C) % 2 == 1}
    port = run(f"FSETP.{comparison}.OR P0, P1, R2, -R3, P3", REGISTERS, flags)
    found = [COMPARISONS[comparison](read(a), -read(b)) for a, b in zip(A, B, strict=True)]
    assert predicate(port, "P0") == [one or c % 2 == 1 for one, c in zip(found, C, strict=True)]
    assert predicate(port, "P1") == [not one or c % 2 == 1 for one, c in zip(found, C, strict=True)]


@pytest.mark.parametrize("comparison", ["LT", "GEU", "NE", "NAN", "EQU"])
def test_comparisons_of_doubles_and_halves(comparison: str) -> None:
    x, y = doubles(41), doubles(42)
    port = run(f"DSETP.{comparison}.AND P0, PT, R2, |R4|, PT", {**pairs("R2", x), **pairs("R4", y)})
    compare = COMPARISONS[comparison]
    assert predicate(port, "P0") == [compare(a, abs(b)) for a, b in zip(x, y, strict=True)]
    h, k = halves(43), halves(44)
    port = run(
        f"HSETP2.{comparison}.AND P0, P1, R2, R3, PT ; HSET2.BF.{comparison}.AND R8, R2, R3.H1_H1, PT"
        f" ; HSET2.{comparison}.AND R9, R2.H0_H0, R3, PT",
        {"R2": lanes(h), "R3": lanes(k)},
    )
    rows = [(*split(a), *split(b)) for a, b in zip(h, k, strict=True)]
    assert predicate(port, "P0") == [compare(a, b) for a, _, b, _ in rows]
    assert predicate(port, "P1") == [compare(a, b) for _, a, _, b in rows]
    ones = [0x3C00 * compare(a, d) | 0x3C000000 * compare(b, d) for a, b, _, d in rows]
    assert register(port, "R8") == ones
    assert register(port, "R9") == [0xFFFF * compare(a, c) | 0xFFFF0000 * compare(a, d) for a, _, c, d in rows]


def split(word: int) -> tuple[float, float]:
    return read(word & 0xFFFF, "e"), read(word >> 16, "e")


def pairs(name: str, values: Sequence[float]) -> dict[str, np.ndarray]:
    bits = [write(value, "d") for value in values]
    index = int(name[1:])
    return {f"R{index}": lanes(bits), f"R{index + 1}": lanes([word >> 32 for word in bits])}


@pytest.mark.parametrize(
    ("statement", "takes", "nan_wins"),
    [
        ("FMNMX R8, R2, R3, PT", min, False),
        ("FMNMX R8, R2, R3, !PT", max, False),
        ("FMNMX.NAN R8, R2, R3, PT", min, True),
        ("FMNMX.NAN R8, R2, R3, !PT", max, True),
    ],
)
def test_extremes_of_singles(statement: str, takes: Callable[..., int], *, nan_wins: bool) -> None:
    port = run(statement, REGISTERS)
    expected = []
    for a, b in zip(A, B, strict=True):
        numbers = [bits for bits in (a, b) if not is_nan(bits)]
        if not numbers or (nan_wins and len(numbers) < 2):
            expected.append(NAN)
        else:
            # Negative zero is below positive zero.
            expected.append(takes(numbers, key=lambda bits: (read(bits), -sign_of(bits))))
    assert register(port, "R8") == expected


@pytest.mark.parametrize("suffix", ROUNDINGS)
def test_doubles_are_rounded_once(suffix: str) -> None:
    x, y, z = doubles(51), doubles(52), doubles(53)
    rounding = ROUNDINGS[suffix]
    registers = {**pairs("R2", x), **pairs("R4", y), **pairs("R6", z)}
    port = run(f"DFMA{suffix} R8, R2, R4, R6 ; DADD{suffix} R10, R2, -R4 ; DMUL{suffix} R12, R2, R4", registers)
    for row, (a, b, c) in enumerate(zip(x, y, z, strict=True)):
        zero = math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
        expected = (fma(a, b, c, rounding, "d"), fma(a, 1.0, -b, rounding, "d"), fma(a, b, zero, rounding, "d"))
        for place, value in zip((8, 10, 12), expected, strict=True):
            bits = register(port, f"R{place + 1}")[row] << 32 | register(port, f"R{place}")[row]
            if value is None:
                assert is_nan(bits, "d"), (a, b, c)
            else:
                assert bits == write(value, "d"), (a, b, c)


def test_products_of_doubles_near_the_ends_of_the_range() -> None:
    x = [5e-324, 2.0**-600, 2.0**-537, 1.7e308, 2.0**1000, -(2.0**-1022), 3e-320, 2.0**-1074] * 8
    y = [0.5, 2.0**-480, 2.0**-537, 1.7e308, 2.0**23, 1 - 2.0**-53, 1e15 + 0.5, 0.75] * 8
    z = [5e-324, -5e-324, 2.0**-1074, -1.7e308, 1.0, 2.0**-1074, -3e-305, 0.0] * 8
    port = run("DFMA R8, R2, R4, R6", {**pairs("R2", x), **pairs("R4", y), **pairs("R6", z)})
    got = [high << 32 | low for high, low in zip(register(port, "R9"), register(port, "R8"), strict=True)]
    expected = [fma(a, b, c, Rounding.NEAREST, "d") for a, b, c in zip(x, y, z, strict=True)]
    assert got == [write(value, "d") for value in expected if value is not None]


def test_a_double_keeps_one_operand_that_is_no_number() -> None:
    # As an H200 chooses: b before c before a, made quiet, its sign as it was.
    first, second, third = 0x7FF8000000000001, 0xFFF0000000000002, 0x7FF4000000000003
    one = 0x3FF0000000000000
    cases = [
        ((first, second, third), second | 1 << 51),
        ((first, one, third), third | 1 << 51),
        ((first, one, one), first),
        ((first, second, one), second | 1 << 51),
    ]
    for operands, expected in cases:
        registers: dict[str, np.ndarray] = {}
        for place, bits in zip((2, 4, 6), operands, strict=True):
            registers |= {f"R{place}": lanes([bits]), f"R{place + 1}": lanes([bits >> 32])}
        port = run("DFMA R8, -R2, R4, |R6|", registers)
        assert register(port, "R9")[0] << 32 | register(port, "R8")[0] == expected


def half(value: float | None) -> int:
    return 0x7FFF if value is None else write(value, "e")


def test_packed_halves_are_rounded_once() -> None:
    h, k, m = halves(61), halves(62), halves(63)
    port = run(
        "HFMA2 R8, R2, R3, R4 ; HADD2 R9, R2.H1_H1, -R3 ; HMUL2 R10, |R2|, R3.H0_H0 ; HFMA2.RELU R11, R2, R3, R4",
        {"R2": lanes(h), "R3": lanes(k), "R4": lanes(m)},
    )
    for row, (a, b, c) in enumerate(zip(h, k, m, strict=True)):
        (a0, a1), (b0, b1), (c0, c1) = split(a), split(b), split(c)
        fused = [fma(x, y, z, Rounding.NEAREST, "e") for x, y, z in ((a0, b0, c0), (a1, b1, c1))]
        assert register(port, "R8")[row] == half(fused[0]) | half(fused[1]) << 16
        sums = [fma(a1, 1.0, -x, Rounding.NEAREST, "e") for x in (b0, b1)]
        assert register(port, "R9")[row] == half(sums[0]) | half(sums[1]) << 16
        products = [fma(abs(x), b0, 0.0 if math.copysign(1, b0) > 0 else -0.0, Rounding.NEAREST, "e") for x in (a0, a1)]
        assert register(port, "R10")[row] == half(products[0]) | half(products[1]) << 16
        positive = [value if value is None or value > 0 else 0.0 for value in fused]
        assert register(port, "R11")[row] == half(positive[0]) | half(positive[1]) << 16


def test_packed_brain_floats_are_rounded_once() -> None:
    a, b, c = ([high & 0xFFFF0000 | low >> 16 for high, low in zip(singles(seed), singles(seed + 1), strict=True)]
               for seed in (71, 73, 75))  # fmt: skip
    registers = {"R2": lanes(a), "R3": lanes(b), "R4": lanes(c)}
    port = run("HFMA2.BF16_V2 R8, R2, R3, R4 ; HADD2.BF16_V2 R9, R2, R3", registers)
    for row, words in enumerate(zip(a, b, c, strict=True)):
        for shift in (0, 16):
            x, y, z = (read((word >> shift & 0xFFFF) << 16) for word in words)
            for name, expected in (("R8", (x, y, z)), ("R9", (x, 1.0, y))):
                value = fma(*expected, Rounding.NEAREST, "bfloat16")
                bits = 0x7FFF if value is None else write(value) >> 16
                assert register(port, name)[row] >> shift & 0xFFFF == bits, expected


def test_constants_are_made_by_half_arithmetic() -> None:
    port = run("HFMA2.MMA R8, -RZ, RZ, 0, 5.9604644775390625e-08 ; HFMA2 R9, -RZ, RZ, 1.875, -0.00048828125")
    assert register(port, "R8")[0] == 1
    assert register(port, "R9")[0] == write(1.875, "e") << 16 | write(-0.00048828125, "e")


def test_division_check_asks_for_the_slow_path_by_exponents() -> None:
    # Measured on an H200 over all pairs of exponents.
    exponents = [(a, b) for a in range(0, 256, 3) for b in range(0, 256, 5)] + [(25, 25), (24, 25), (254, 251)]
    registers = {
        "R2": lanes([a << 23 | 0x1234 for a, _ in exponents]),
        "R3": lanes([b << 23 | 1 << 31 for _, b in exponents]),
    }
    port = run("FCHK P0, R2, R3", registers)
    safe = [25 <= a <= 254 and 2 <= b <= 251 and -124 <= a - b <= 126 for a, b in exponents]
    assert predicate(port, "P0")[: len(safe)] == [not one for one in safe]


def test_approximations_are_marked_inexact() -> None:
    port = run("MUFU.RCP R8, R2 ; MUFU.EX2 R9, R3", {"R2": lanes([write(4.0)]), "R3": lanes([write(3.0)])})
    assert port.inexact
    assert register(port, "R8")[0] == write(0.25)
    assert register(port, "R9")[0] == write(8.0)
