"""Turns a tensor-core instruction into a call of a routine, and its form into that routine: products in doubles.

The layouts of the fragments and the order of the sums are those of `numpy_matrices`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.algebra import Float, MatrixForm, Rounding
from sectorwise.machine.native.algebra import LlvmAlgebra
from sectorwise.machine.native.values import LANES, Kind, Operand
from sectorwise.machine.native.writer import HALF_NAN, SINGLE_NAN, VECTOR, Writer

if TYPE_CHECKING:
    from collections.abc import Callable

_DOUBLES = f"<{LANES} x double>"
_LONGS = f"<{LANES} x i64>"
_DOUBLE_NAN = 0x7FF8000000000000
_THREADS = 4
"""Lanes that hold a row of A, or a column of B, among them."""

_ELEMENTS = {"F16": 2, "BF16": 2, "TF32": 1, "S8": 4, "U8": 4, "F64": 1}
"""Elements of a word (of two words, for doubles)."""


def write_product_routine(name: str) -> str:
    """The routine of this name: formats of A, B and C, whether it saturates, words of A, B and C."""
    _, kind_a, kind_b, accumulator, saturates, *sizes = name.split(".")
    counts = dict(zip("abc", map(int, sizes), strict=True))
    writer = Writer()
    a, b = (_list_words(row, counts[row], kind) for row, kind in (("a", kind_a), ("b", kind_b)))
    totals = _multiply(writer, (a, kind_a), (b, kind_b), _read_addends(writer, counts["c"], accumulator))
    words = _write_results(writer, totals, MatrixForm(kind_a, kind_b, accumulator, saturates=saturates == "1"))
    parameters = [f"{VECTOR} %{row}{word}" for row, count in counts.items() for word in range(count)]
    result = "{ " + ", ".join([VECTOR] * len(words)) + " }"
    whole = "poison"
    for place, word in enumerate(words):
        whole = writer.emitter.result(f"insertvalue {result} {whole}, {VECTOR} {word}, {place}")
    lines = "\n".join([*writer.emitter.lines, f"  ret {result} {whole}"])
    return f"define internal {result} @{name}({', '.join(parameters)}) noinline {{\n{lines}\n}}\n"


def _list_words(row: str, count: int, kind: str) -> list[str]:
    """The words of a matrix; the two of a double as one, which `_take` takes apart."""
    names = [f"%{row}{word}" for word in range(count)]
    return [" ".join(names)] if kind == "F64" else names


def _take(writer: Writer, held: str, lanes: list[int]) -> str:
    """What other lanes hold: word l of the result is word `lanes[l]`; of a double as its bits."""
    places = "<" + ", ".join(f"i32 {lane}" for lane in lanes) + ">"
    moved = [
        writer.emitter.pure(f"shufflevector {VECTOR} {word}, {VECTOR} poison, {VECTOR} {places}")
        for word in held.split()
    ]
    return moved[0] if len(moved) == 1 else _join(writer, moved[0], moved[1])


def _join(writer: Writer, low: str, high: str) -> str:
    pure = writer.emitter.pure
    upper = pure(f"shl {_LONGS} {pure(f'zext {VECTOR} {high} to {_LONGS}')}, splat (i64 32)")
    return pure(f"or {_LONGS} {upper}, {pure(f'zext {VECTOR} {low} to {_LONGS}')}")


def _multiply(writer: Writer, a: tuple[list[str], str], b: tuple[list[str], str], c: list[str]) -> list[str]:
    """The elements of A B + C, two for each half of the rows, as doubles: one product after the other, C last."""
    (words_a, kind_a), (words_b, kind_b) = a, b
    halves, emitter = len(c) // 2, writer.emitter
    totals: list[str] = []
    for half in range(halves):
        for side in range(2):
            total = ""
            for depth in range(len(words_b)):
                for thread in range(_THREADS):
                    rows = [_THREADS * (lane // _THREADS) + thread for lane in range(LANES)]
                    columns = [_THREADS * (2 * (lane % _THREADS) + side) + thread for lane in range(LANES)]
                    left = _take(writer, words_a[depth * halves + half], rows)
                    right = _take(writer, words_b[depth], columns)
                    for element in range(_ELEMENTS[kind_a]):
                        one, other = _widen(writer, left, kind_a, element), _widen(writer, right, kind_b, element)
                        product = emitter.pure(f"fmul {_DOUBLES} {one}, {other}")
                        total = emitter.pure(f"fadd {_DOUBLES} {total}, {product}") if total else product
            totals.append(emitter.pure(f"fadd {_DOUBLES} {total}, {c[2 * half + side]}"))
    return totals


def _widen(writer: Writer, word: str, kind: str, element: int) -> str:
    """An element of a word as a double."""
    pure, place = writer.emitter.pure, element * 32 // _ELEMENTS[kind]
    match kind:
        case "F16":
            cut = pure(f"trunc {VECTOR} {_shift(writer, 'lshr', word, place)} to <{LANES} x i16>")
            half = pure(f"bitcast <{LANES} x i16> {cut} to <{LANES} x half>")
            single = pure(f"fpext <{LANES} x half> {half} to <{LANES} x float>")
            return pure(f"fpext <{LANES} x float> {single} to {_DOUBLES}")
        case "BF16":
            return _single(writer, pure(f"and {VECTOR} {_shift(writer, 'shl', word, 16 - place)}, splat (i32 -65536)"))
        case "TF32":
            return _single(writer, pure(f"and {VECTOR} {word}, splat (i32 -8192)"))
        case "F32":
            return _single(writer, word)
        case "F64":
            return pure(f"bitcast {_LONGS} {word} to {_DOUBLES}")
        case _:
            upper = _shift(writer, "shl", word, 24 - place)
            number = _shift(writer, "ashr" if kind == "S8" else "lshr", upper, 24)
            return pure(f"sitofp {VECTOR} {number} to {_DOUBLES}")


def _settle(writer: Writer, total: str) -> str:
    """The bits of a double."""
    pure = writer.emitter.pure
    bits, is_nan = pure(f"bitcast {_DOUBLES} {total} to {_LONGS}"), pure(f"fcmp uno {_DOUBLES} {total}, {total}")
    return pure(f"select <{LANES} x i1> {is_nan}, {_LONGS} splat (i64 {_DOUBLE_NAN}), {_LONGS} {bits}")


def _shift(writer: Writer, operation: str, word: str, count: int) -> str:
    return writer.emitter.pure(f"{operation} {VECTOR} {word}, splat (i32 {count})") if count else word


def _single(writer: Writer, word: str) -> str:
    pure = writer.emitter.pure
    return pure(f"fpext <{LANES} x float> {pure(f'bitcast {VECTOR} {word} to <{LANES} x float>')} to {_DOUBLES}")


def _read_addends(writer: Writer, words: int, accumulator: str) -> list[str]:
    """The elements of C as doubles, two for each half of the rows."""
    names = [f"%c{word}" for word in range(words)]
    match accumulator:
        case "F64":
            pairs = zip(names[::2], names[1::2], strict=True)
            return [_widen(writer, _join(writer, low, high), "F64", 0) for low, high in pairs]
        case "F16":
            return [_widen(writer, name, "F16", element) for name in names for element in range(2)]
        case "F32":
            return [_single(writer, name) for name in names]
        case _:
            return [writer.emitter.pure(f"sitofp {VECTOR} {name} to {_DOUBLES}") for name in names]


def _write_results(writer: Writer, totals: list[str], form: MatrixForm) -> list[str]:
    """The words of the sums; a NaN is always the same."""
    algebra, pure = LlvmAlgebra(writer), writer.emitter.pure

    def each(convert: Callable[[Operand], Operand]) -> list[str]:
        return [writer.text(convert(Operand(Kind.DOUBLE, lanes=True, text=total)), lanes=True) for total in totals]

    def narrow(kind: Float, nan: int) -> list[str]:
        words = each(lambda total: algebra.view_bits(algebra.convert_float(total, kind, Rounding.NEAREST)))
        wrong = [pure(f"fcmp uno {_DOUBLES} {total}, {total}") for total in totals]
        return [
            pure(f"select <{LANES} x i1> {is_nan}, {VECTOR} splat (i32 {nan}), {VECTOR} {word}")
            for is_nan, word in zip(wrong, words, strict=True)
        ]

    match form.accumulator:
        case "F64":
            bits = [_settle(writer, total) for total in totals]
            halves = [(each, pure(f"lshr {_LONGS} {each}, splat (i64 32)")) for each in bits]
            return [pure(f"trunc {_LONGS} {half} to {VECTOR}") for pair in halves for half in pair]
        case "F32":
            return narrow(Float.F32, SINGLE_NAN)
        case "F16":
            words = narrow(Float.F16, HALF_NAN)
            pairs = zip(words[::2], words[1::2], strict=True)
            return [pure(f"or {VECTOR} {low}, {_shift(writer, 'shl', high, 16)}") for low, high in pairs]
        case _ if form.saturates:
            return each(lambda total: algebra.integer_from_float(total, 32, Rounding.ZERO, signed=True))
        case _:
            longs = [pure(f"fptosi {_DOUBLES} {total} to {_LONGS}") for total in totals]
            return [pure(f"trunc {_LONGS} {each} to {VECTOR}") for each in longs]
