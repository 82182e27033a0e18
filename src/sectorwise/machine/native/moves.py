"""Turns the data of an access into moves between the context's rows and memory: whole rows, one place, or lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.encounters import COLLIDED
from sectorwise.machine.native.layout import CONSECUTIVE, CONTEXT, IN_PLACE, LANES, ONE_PLACE, SITE, WORD_ROW
from sectorwise.machine.native.requests import booleans, first_of, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sectorwise.machine.native.code import Code

    Move = Callable[[Code, str, int], None]

VECTOR = f"<{LANES} x i32>"
LONGS = f"<{LANES} x i64>"
POINTERS = f"<{LANES} x ptr>"
GATHER = f"call {VECTOR} @llvm.masked.gather.v32i32.v32p0"
SCATTER = "call void @llvm.masked.scatter.v32i32.v32p0"
_WORD_BYTES = 4


def words_of(width: int) -> int:
    """Words that an access of this width moves."""
    return max(1, width // 4)


def data_row(code: Code, word: int) -> str:
    """Pointer to a row of data."""
    return code.at("%ctx", CONTEXT["data"] + WORD_ROW * word)


def _read_block(code: Code, host: str, width: int) -> None:
    """All lanes' words from consecutive addresses."""
    if width < 4:
        narrow = code.load(f"<{LANES} x i{8 * width}>", host, align=1)
        code.store(VECTOR, code.value(f"zext <{LANES} x i{8 * width}> {narrow} to {VECTOR}"), data_row(code, 0))
        return
    words = words_of(width)
    block = code.load(f"<{LANES * words} x i32>", host, align=4)
    for word in range(words):
        part = block
        if words > 1:
            places = ", ".join(f"i32 {words * lane + word}" for lane in range(LANES))
            wide = f"<{LANES * words} x i32>"
            part = code.value(f"shufflevector {wide} {block}, {wide} poison, {VECTOR} <{places}>")
        code.store(VECTOR, part, data_row(code, word))


def _write_block(code: Code, host: str, width: int) -> None:
    """All lanes' words to consecutive addresses."""
    values = [code.load(VECTOR, data_row(code, word)) for word in range(words_of(width))]
    if width < 4:
        narrow = code.value(f"trunc {VECTOR} {values[0]} to <{LANES} x i{8 * width}>")
        code.store(f"<{LANES} x i{8 * width}>", narrow, host, align=1)
        return
    lanes, joined = LANES, values
    while len(joined) > 1:
        # Words w and w + n/2 of each lane become neighbours; after the last step all words of a lane are.
        half = len(joined) // 2
        places = ", ".join(f"i32 {place // 2 + (place % 2) * lanes}" for place in range(2 * lanes))
        kind = f"<{lanes} x i32>"
        joined = [
            code.value(f"shufflevector {kind} {joined[k]}, {kind} {joined[k + half]}, <{2 * lanes} x i32> <{places}>")
            for k in range(half)
        ]
        lanes *= 2
    code.store(f"<{lanes} x i32>", joined[0], host, align=4)


def _read_one(code: Code, host: str, width: int) -> None:
    """One address for all lanes."""
    for word in range(words_of(width)):
        if width < 4:
            value = code.value(f"zext i{8 * width} {code.load(f'i{8 * width}', host, align=1)} to i32")
        else:
            value = code.load("i32", host, 4 * word, 4)
        code.store(VECTOR, spread(code, "i32", value), data_row(code, word))


def _write_one(code: Code, host: str, width: int) -> None:
    """One address from all lanes: the highest wins."""
    zeros = code.value("call i32 @llvm.ctlz.i32(i32 %mask, i1 true)")
    lane = code.value(f"zext i32 {code.value(f'sub i32 31, {zeros}')} to i64")
    for word in range(words_of(width)):
        value = code.load("i32", code.at(data_row(code, word), lane, "i32"))
        if width < 4:
            narrow = code.value(f"trunc i32 {value} to i{8 * width}")
            code.store(f"i{8 * width}", narrow, host, align=1)
            value = code.value(f"zext i{8 * width} {narrow} to i32")
        else:
            code.store("i32", value, host, 4 * word, 4)
        kept = spread(code, "i32", value)
        _note_collision(code, code.value(f"icmp ne {VECTOR} {_stored(code, word, width)}, {kept}"))


def _place_of_lane_zero(code: Code, host: str) -> str:
    """Where lane 0 would access a word, if the first active lane does so at `host`."""
    lane = code.value(f"zext i32 {code.value('call i32 @llvm.cttz.i32(i32 %mask, i1 true)')} to i64")
    return code.at(host, code.value(f"sub i64 0, {lane}"), "i32")


def _read_in_place(code: Code, host: str, width: int) -> None:
    """The active lanes' words, each at its place among 32 that are consecutive."""
    del width
    place, inside = _place_of_lane_zero(code, host), booleans(code, "%mask")
    arguments = f"ptr {place}, i32 4, <{LANES} x i1> {inside}, {VECTOR} zeroinitializer"
    code.store(VECTOR, code.value(f"call {VECTOR} @llvm.masked.load.v32i32.p0({arguments})"), data_row(code, 0))


def _write_in_place(code: Code, host: str, width: int) -> None:
    """The active lanes' words, each to its place among 32 that are consecutive."""
    del width
    place, inside = _place_of_lane_zero(code, host), booleans(code, "%mask")
    value = code.load(VECTOR, data_row(code, 0))
    code.do(f"call void @llvm.masked.store.v32i32.p0({VECTOR} {value}, ptr {place}, i32 4, <{LANES} x i1> {inside})")


def _stored(code: Code, word: int, width: int) -> str:
    """What each lane stores of a word, the bytes of narrow ones alone."""
    value = code.load(VECTOR, data_row(code, word))
    return value if width >= 4 else code.value(f"and {VECTOR} {value}, splat (i32 {(1 << 8 * width) - 1})")


def _note_collision(code: Code, rivals: str) -> None:
    """Notes at the site that some active lane finds another value than its own where it has just stored it."""
    lanes = code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {rivals} to i32')}, %mask")
    with code.when(code.value(f"icmp ne i32 {lanes}, 0")):
        note_encounter(code, COLLIDED)


def note_encounter(code: Code, flag: int) -> None:
    """Adds to what the site has met."""
    met = code.load("i32", "%site", SITE["met"])
    code.store("i32", code.value(f"or i32 {met}, {flag}"), "%site", SITE["met"])


def _places_of_words(code: Code, hosts: str, width: int) -> list[str]:
    """Host addresses of each of the words that lanes access, i64."""
    return [
        code.value(f"add {LONGS} {hosts}, splat (i64 {4 * word})") if word else hosts for word in range(words_of(width))
    ]


def _gather_words(code: Code, pointers: str, inside: str, width: int) -> str:
    """A word of each active lane; zero in the others."""
    value = code.value(f"{GATHER}({POINTERS} {pointers}, i32 1, <{LANES} x i1> {inside}, {VECTOR} zeroinitializer)")
    # Buffers have room behind them, so that whole words can be read.
    return value if width >= 4 else code.value(f"and {VECTOR} {value}, splat (i32 {(1 << 8 * width) - 1})")


def _gather(code: Code, hosts: str, width: int) -> None:
    """Each active lane's words from its own address (host addresses, i64)."""
    inside = booleans(code, "%mask")
    for word, place in enumerate(_places_of_words(code, hosts, width)):
        pointers = code.value(f"inttoptr {LONGS} {place} to {POINTERS}")
        code.store(VECTOR, _gather_words(code, pointers, inside, width), data_row(code, word))


def _scatter(code: Code, hosts: str, width: int) -> None:
    """Each active lane's words to its own address; the highest lane wins."""
    inside = booleans(code, "%mask")
    if width < 4:
        code.store(LONGS, hosts, "%ctx", CONTEXT["others"], 64)
        with code.lanes("%mask") as lane:
            value = code.load("i32", code.at(data_row(code, 0), lane, "i32"))
            narrow = code.value(f"trunc i32 {value} to i{8 * width}")
            host = code.value(f"inttoptr i64 {first_of(code, 'i64', 'others', lane)} to ptr")
            code.store(f"i{8 * width}", narrow, host, align=1)
    for word, place in enumerate(_places_of_words(code, hosts, width) if width >= 4 else ()):
        pointers = code.value(f"inttoptr {LONGS} {place} to {POINTERS}")
        value = code.load(VECTOR, data_row(code, word))
        code.do(f"{SCATTER}({VECTOR} {value}, {POINTERS} {pointers}, i32 1, <{LANES} x i1> {inside})")
    note_lost(code, hosts, width)


def note_lost(code: Code, hosts: str, width: int) -> None:
    """Notes a collision where an active lane does not find what it has just stored (host addresses, i64)."""
    inside = booleans(code, "%mask")
    for word, place in enumerate(_places_of_words(code, hosts, width)):
        kept = _gather_words(code, code.value(f"inttoptr {LONGS} {place} to {POINTERS}"), inside, width)
        _note_collision(code, code.value(f"icmp ne {VECTOR} {_stored(code, word, width)}, {kept}"))


def move_lane(code: Code, operation: str, width: int, lane: str, places: list[str], stride: int) -> None:
    """One lane's words; `places` holds where each begins, `stride` bytes apart from the first."""
    bits = 8 * min(width, 4)
    if operation == "touch":
        return
    for word, place in enumerate(places):
        cell = code.at(data_row(code, word), lane, "i32")
        if operation == "load":
            value = code.load(f"i{bits}", place, stride * word, 1)
            code.store("i32", value if bits == 32 else code.value(f"zext i{bits} {value} to i32"), cell)
        else:
            value = code.load("i32", cell)
            code.store(
                f"i{bits}",
                value if bits == 32 else code.value(f"trunc i32 {value} to i{bits}"),
                place,
                stride * word,
                1,
            )


def _move_nothing(code: Code, host: str, width: int) -> None:
    del code, host, width


MOVES = {
    "load": (_read_block, _read_one, _read_in_place, _gather),
    "store": (_write_block, _write_one, _write_in_place, _scatter),
    "touch": (_move_nothing, _move_nothing, _move_nothing, _move_nothing),
}


def list_simple_moves(code: Code, operation: str, width: int) -> Iterator[tuple[int, int | str, Move]]:
    """Kinds of patterns that are moved at once, the bytes that they reach from the first active lane on, the move."""
    block, one, in_place, _ = MOVES[operation]
    yield CONSECUTIVE, LANES * width, block
    yield ONE_PLACE, width, one
    if width == _WORD_BYTES or operation == "touch":
        before, behind = (code.value(f"call i32 @llvm.{count}.i32(i32 %mask, i1 true)") for count in ("cttz", "ctlz"))
        lanes = code.value(f"sub i32 {LANES}, {code.value(f'add i32 {before}, {behind}')}")
        yield IN_PLACE, code.value(f"mul i64 {code.value(f'zext i32 {lanes} to i64')}, {width}"), in_place
