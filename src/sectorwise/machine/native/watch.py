"""Turns the conditions under which blocks are alike into code that watches values, and what it saw into extents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from sectorwise.machine.likeness import SAME, Condition, Extent, Form, Likeness, Rule, relate, spoil, take_as_axis
from sectorwise.machine.native.alike import SpoiledError
from sectorwise.machine.native.layout import CONTEXT
from sectorwise.machine.native.values import BITS, LANES, Kind, Operand
from sectorwise.machine.sites import PERIOD_BYTES
from sectorwise.machine.tables import read_known, tabulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.counting.request import Space
    from sectorwise.machine.algebra import MatrixForm
    from sectorwise.machine.native.writer import Writer

WATCH_BYTES = 16
NEVER_LEAST, NEVER_GREATEST = (1 << 63) - 1, -(1 << 63)

_FAR = 1 << 62
_WORDS = (0, (1 << 32) - 1)
_SIGNED_WORDS = (-(1 << 31), (1 << 31) - 1)


class Watch(Struct, frozen=True):
    """Values whose least and greatest are kept: how they move between blocks, and how far they may.

    For addresses (`space`) that follows from the buffer in which they are found; `width_bytes` are read there. Numbers
    that are `tabulated` have to be what the table says; `quotient_bits` says how many lower bits alone may change.
    """

    form: Form
    low: int = 0
    high: int = 0
    space: Space | None = None
    width_bytes: int = 0
    tabulated: bool = False
    quotient_bits: int | None = None


class Watcher(Struct):
    """Writes the watches of a kernel; `moves` are forms by which addresses move, with periods of counts."""

    writer: Writer
    watches: list[Watch] = field(default_factory=list)
    moves: dict[tuple[Form, int], None] = field(default_factory=dict)

    def check(self, condition: Condition, operands: Sequence[Operand], mask: str) -> None:
        """Watches what a condition asks for, in the lanes of a mask."""
        first = operands[condition.operands[0]]
        match condition.rule:
            case Rule.UNSIGNED:
                self._keep(Watch(condition.form, *_WORDS), self._widen(first, signed=False), mask)
            case Rule.SIGNED:
                self._keep(Watch(condition.form, *_SIGNED_WORDS), self._widen(first, signed=True), mask)
            case Rule.SIGN:
                self._watch_sides(condition, self._widen(first, signed=True), mask)
            case Rule.TABULATED:
                self._keep(Watch(condition.form, tabulated=True), self._as_long(first), mask)
            case Rule.QUOTIENT:
                watch = Watch(condition.form, *_WORDS, quotient_bits=condition.limit)
                self._keep(watch, self._widen(first, signed=False), mask)
            case Rule.BELOW:
                self._keep(Watch(SAME, 0, condition.limit - 1), self._widen(first, signed=False), mask)
            case _:
                self._compare(condition, operands, mask)

    def check_whole(self, group: str) -> None:
        """Watches that all lanes of the warp issue: what those hold that went another way may differ otherwise."""
        emitter = self.writer.emitter
        places = [emitter.pure(f"getelementptr i8, ptr %ctx, i64 {CONTEXT[n]}") for n in ("full_masks", "warp_number")]
        masks = emitter.result(f"load ptr, ptr {places[0]}")
        number = emitter.result(f"load i64, ptr {places[1]}")
        full = emitter.result(f"load i32, ptr {emitter.result(f'getelementptr i32, ptr {masks}, i64 {number}')}")
        wide = emitter.result(f"zext i32 {emitter.result(f'xor i32 {full}, {group}')} to i64")
        row = emitter.pure(f"insertelement <{LANES} x i64> zeroinitializer, i64 {wide}, i32 0")
        self._keep(Watch(SAME, 0, 0), row, "-1")

    def follow_address(
        self, address: Operand, space: Space, width_bytes: int, mask: str, period_bytes: int = PERIOD_BYTES
    ) -> None:
        """Watches an address that moves between blocks; addresses a period apart count alike."""
        likeness = take_as_axis(likeness_of(address))
        if likeness.spoiled:
            raise SpoiledError(likeness.spoiled)
        if likeness.form == SAME:
            return
        self.moves[likeness.form, period_bytes] = None
        self._keep(Watch(likeness.form, space=space, width_bytes=width_bytes), self._as_long(address), mask)

    def _as_long(self, operand: Operand) -> str:
        return self._widen(operand, signed=False) if operand.kind is Kind.WORD else self._text(operand)

    def _text(self, operand: Operand) -> str:
        return self.writer.text(operand, lanes=True)

    def _widen(self, operand: Operand, *, signed: bool) -> str:
        """The (low) word of each lane, as i64."""
        emitter = self.writer.emitter
        text = self._text(operand)
        if operand.kind is Kind.LONG:
            text = emitter.pure(f"trunc <{LANES} x i64> {text} to <{LANES} x i32>")
        return emitter.pure(f"{'sext' if signed else 'zext'} <{LANES} x i32> {text} to <{LANES} x i64>")

    def _compare(self, condition: Condition, operands: Sequence[Operand], mask: str) -> None:
        """Differences on each side of a comparison stay there."""
        emitter, signed = self.writer.emitter, condition.rule is not Rule.LESS_UNSIGNED
        a, b = (self._widen(operands[place], signed=signed) for place in condition.operands)
        self._watch_sides(condition, emitter.pure(f"sub <{LANES} x i64> {a}, {b}"), mask)

    def _watch_sides(self, condition: Condition, difference: str, mask: str) -> None:
        """Values on each side of zero stay there; a signed word does not overflow."""
        emitter = self.writer.emitter
        sides = [("slt", -_FAR, -1), ("sge", 0, _FAR)]
        if condition.rule is Rule.SIGN:
            sides = [("slt", _SIGNED_WORDS[0], -1), ("sge", 0, _SIGNED_WORDS[1])]
        if condition.rule is Rule.EQUAL:
            sides = [("slt", -_FAR, -1), ("eq", 0, 0), ("sgt", 1, _FAR)]
        for relation, low, high in sides:
            lanes = emitter.pure(f"icmp {relation} <{LANES} x i64> {difference}, zeroinitializer")
            bits = emitter.pure(f"bitcast <{LANES} x i1> {lanes} to i32")
            self._keep(Watch(condition.form, low, high), difference, emitter.pure(f"and i32 {bits}, {mask}"))

    def _keep(self, watch: Watch, values: str, mask: str) -> None:
        emitter = self.writer.emitter
        place = emitter.pure(f"getelementptr i8, ptr %watches, i64 {WATCH_BYTES * len(self.watches)}")
        self.watches.append(watch)
        routine = emitter.require("watch")
        emitter.effect(f"call void {routine}(ptr {place}, <{LANES} x i64> {values}, i32 {mask})")


def likeness_of(operand: Operand) -> Likeness:
    """How an operand differs between blocks; constants do not."""
    if operand.constant is None:
        return operand.likeness
    bits = BITS.get(operand.kind, 1)
    if operand.constant.shape[1] != 1:
        return Likeness(bits=bits)
    table = tabulate(f"{operand.kind}:{operand.constant.tobytes().hex()}", operand.constant)
    return Likeness(bits=bits, known=read_known(table), table=table)


def tabulate_words(words: Sequence[Operand], likenesses: Sequence[Likeness]) -> Sequence[Operand]:
    """Words that were loaded, with their tables; those without decide nothing, or the proof would have ended."""
    return [
        word if likeness.table is None else replace(word, likeness=likeness)
        for word, likeness in zip(words, likenesses, strict=True)
    ]


class WatchedAlgebra(Struct):
    """An algebra whose results carry their likeness; `mask` gives the lanes in which conditions are watched."""

    inner: Any
    watcher: Watcher
    mask: Callable[[], str] = lambda: "-1"

    def multiply_matrices(
        self, a: Sequence[Operand], b: Sequence[Operand], c: Sequence[Operand], form: MatrixForm
    ) -> list[Operand]:
        """The words of a product hang on all words of its matrices."""
        likeness = spoil([likeness_of(word) for word in (*a, *b, *c)], 32)
        return [replace(word, likeness=likeness) for word in self.inner.multiply_matrices(a, b, c, form)]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any operation of the algebra."""
        operation = getattr(self.inner, name)

        def run(*values: Any, **options: Any) -> Any:  # noqa: ANN401 - any operation of the algebra
            result = operation(*values, **options)
            operands = [value for value in values if isinstance(value, Operand)]
            if not operands or not isinstance(result, Operand):
                return result
            arguments = [likeness_of(value) if isinstance(value, Operand) else value for value in values]
            likeness, conditions = relate(name, arguments, options)
            for condition in conditions:
                self.watcher.check(condition, operands, self.mask())
            return result if result.constant is not None else replace(result, likeness=likeness)

        return run


def make_extent(watch: Watch, least: int, greatest: int, bounds: tuple[int, int]) -> Extent:
    """What a watch saw, with how far its values may go; `bounds` are those of an address."""
    low, high = (watch.low, watch.high) if watch.space is None else bounds
    if watch.quotient_bits is not None:
        first, last = least >> watch.quotient_bits, greatest >> watch.quotient_bits
        low, high = (first << watch.quotient_bits, ((last + 1) << watch.quotient_bits) - 1)
        if first != last:
            low, high = least, greatest
    return Extent(watch.form, least, greatest, low, high)
