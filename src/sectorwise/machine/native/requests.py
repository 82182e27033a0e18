"""Turns the address patterns of a memory instruction into routines that remember them, and log what they forget.

A site keeps its last patterns, each with how often it came. What is forgotten is written to a log, and counted by the
counting rules themselves when the log is full: machine code holds no rule of its own.
"""

from __future__ import annotations

from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import (
    CONSECUTIVE,
    CONTEXT,
    COPY_PATTERN_BYTES,
    IN_PLACE,
    LANES,
    LOG_COLUMNS,
    ONE_PLACE,
    PATTERN,
    PATTERN_BITS,
    PATTERN_BYTES,
    RECENT_BITS,
    SCATTERED,
    SITE,
    WIDE_COLUMNS,
)
from sectorwise.machine.native.writer import ALL_ZERO, LANE_BITS
from sectorwise.machine.sites import COPY_PERIOD_BYTES, PERIOD_BYTES

_VECTOR = f"<{LANES} x i32>"
_LONGS = f"<{LANES} x i64>"
_FORGET = {"i64": "sectors.forget", "i32": "sectors.passes"}
_FUTILE = 64
"""After so many requests that are like none that is remembered, only each of so many is looked up."""

_GOLDEN = -1640531535  # 2**32 over the golden ratio: spreads masks over the slots


def spread(code: Code, kind: str, value: str) -> str:
    """One number in all lanes."""
    vector = f"<{LANES} x {kind}>"
    first = code.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
    return code.value(f"shufflevector {vector} {first}, {vector} poison, {_VECTOR} {ALL_ZERO}")


def booleans(code: Code, mask: str) -> str:
    """A mask as booleans."""
    own = code.value(f"and {_VECTOR} {spread(code, 'i32', mask)}, {LANE_BITS}")
    return code.value(f"icmp ne {_VECTOR} {own}, zeroinitializer")


def lane_of(code: Code, mask: str) -> str:
    """The lowest lane of a mask that is not empty, as i64."""
    lane = code.value(f"call i32 @llvm.cttz.i32(i32 {mask}, i1 true)")
    return code.value(f"zext i32 {lane} to i64")


def first_of(code: Code, kind: str, row: str, lane: str) -> str:
    """A lane's number in a row of the context."""
    return code.load(kind, code.at(code.at("%ctx", CONTEXT[row]), lane, kind))


def write_request_routine(name: str) -> str:
    """The routine of this name."""
    match name.split("."):
        case ["note", "long"]:
            return _note("note.long", "i64").text()
        case ["note", "word"]:
            return _note("note.word", "i32").text()
        case ["note", "copy"]:
            return _note_copy().text()
        case ["once", kind]:
            return _write_once(kind).text()
        case ["evict", kind]:
            return _evict(kind).text()
        case ["evict_copy"]:
            return _evict_copy().text()
        case _:
            raise AssertionError(name)


def _relate(
    code: Code, kind: str, row: str, lane: str, inside: str, period_bytes: int = PERIOD_BYTES
) -> tuple[str, str]:
    """Differences of a row to its first active lane, and that lane's place in the period, i32."""
    vector = f"<{LANES} x {kind}>"
    addresses = code.load(vector, "%ctx", CONTEXT[row], 64)
    first = first_of(code, kind, row, lane)
    apart = code.value(f"sub {vector} {addresses}, {spread(code, kind, first)}")
    differences = code.value(f"select <{LANES} x i1> {inside}, {vector} {apart}, {vector} zeroinitializer")
    low = first if kind == "i32" else code.value(f"trunc i64 {first} to i32")
    return differences, code.value(f"and i32 {low}, {period_bytes - 1}")


def _recent(code: Code, place: str, size: int) -> tuple[str, str]:
    """The pattern that came last for this place and mask, and where its number is kept."""
    mixed = code.value(f"mul i32 %mask, {_GOLDEN}")
    high = code.value(f"lshr i32 {mixed}, {32 - RECENT_BITS}")
    index = code.value(f"xor i32 {code.value(f'lshr i32 {place}, 1')}, {high}")
    slot = code.value(f"zext i32 {code.value(f'and i32 {index}, {(1 << RECENT_BITS) - 1}')} to i64")
    kept = code.at(code.at("%site", SITE["recent"]), slot, "i32")
    return _pattern(code, code.load("i32", kept), size), kept


def _pattern(code: Code, number: str, size: int) -> str:
    offset = code.value(f"mul i64 {code.value(f'zext i32 {number} to i64')}, {size}")
    return code.at(code.at("%site", SITE["patterns"]), offset)


def _find_pattern(code: Code, key: str, rows: list[tuple[str, str]], kept: str, size: int) -> str:
    """The pattern in which a request belongs by all that it is, made the last one of its place and mask."""
    sums = []
    for turn, (kind, values) in enumerate(rows):
        words = values if kind == "i32" else code.value(f"trunc {_LONGS} {values} to {_VECTOR}")
        factors = (
            "<" + ", ".join(f"i32 {(_GOLDEN * (2 * lane + 64 * turn + 1)) & 0xFFFFFFFF}" for lane in range(LANES)) + ">"
        )
        sums.append(code.value(f"mul {_VECTOR} {words}, {factors}"))
    total = sums[0]
    for more in sums[1:]:
        total = code.value(f"add {_VECTOR} {total}, {more}")
    number = code.value(f"call i32 @llvm.vector.reduce.add.v32i32({_VECTOR} {total})")
    for part in (f"trunc i64 {key} to i32", f"trunc i64 {code.value(f'lshr i64 {key}, 32')} to i32"):
        number = code.value(f"mul i32 {code.value(f'xor i32 {number}, {code.value(part)}')}, {_GOLDEN}")
    number = code.value(f"lshr i32 {number}, {32 - PATTERN_BITS}")
    code.store("i32", number, kept)
    with code.when(code.value(f"icmp eq i32 {code.load('i32', '%site', SITE['touched'])}, 0")):
        _keep_first(code, rows[0][0])
    return _pattern(code, number, size)


def _keep_first(code: Code, kind: str) -> None:
    """Keeps the addresses of a site's first request."""
    code.store("i32", 1, "%site", SITE["touched"])
    code.store("i32", "%mask", "%site", SITE["first_mask"])
    warps = code.load("i64", "%ctx", CONTEXT["warp_count"])
    before = code.value(f"mul i64 {code.load('i64', '%ctx', CONTEXT['block_number'])}, {warps}")
    warp = code.value(f"add i64 {before}, {code.load('i64', '%ctx', CONTEXT['warp_number'])}")
    code.store("i64", warp, "%site", SITE["first_warp"])
    vector = f"<{LANES} x {kind}>"
    code.store(vector, code.load(vector, "%ctx", CONTEXT["addresses"], 64), "%site", SITE["first_addresses"], 64)


def _differs(code: Code, kind: str, values: str, pattern: str, field: str) -> str:
    vector = f"<{LANES} x {kind}>"
    known = code.load(vector, pattern, PATTERN[field], 64)
    lanes = code.value(f"icmp ne {vector} {values}, {known}")
    bits = code.value(f"bitcast <{LANES} x i1> {lanes} to i32")
    return code.value(f"icmp ne i32 {bits}, 0")


def _key(code: Code, place: str) -> str:
    """Mask and place as one i64, as they lie in a pattern."""
    upper = code.value(f"shl i64 {code.value(f'zext i32 {place} to i64')}, 32")
    return code.value(f"or i64 {upper}, {code.value('zext i32 %mask to i64')}")


def _kind_of(code: Code, kind: str, differences: str, lane: str) -> str:
    """How the lanes lie, of which `lane` is the first: CONSECUTIVE, ONE_PLACE, IN_PLACE or SCATTERED, i32."""
    vector = f"<{LANES} x {kind}>"
    width = code.load("i32", "%site", SITE["width"])
    first = lane
    if kind == "i64":
        width = code.value(f"zext i32 {width} to i64")
    else:
        first = code.value(f"trunc i64 {lane} to i32")
    numbers = "<" + ", ".join(f"{kind} {number}" for number in range(LANES)) + ">"
    behind = code.value(f"sub {vector} {numbers}, {spread(code, kind, first)}")
    steps = code.value(f"mul {vector} {spread(code, kind, width)}, {behind}")
    far = code.value(f"icmp ne {vector} {differences}, {steps}")
    off = code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {far} to i32')}, %mask")
    in_steps = code.value(f"icmp eq i32 {off}, 0")
    full = code.value("icmp eq i32 %mask, -1")
    apart = code.value(f"icmp ne {vector} {differences}, zeroinitializer")
    some = code.value(f"bitcast <{LANES} x i1> {apart} to i32")
    same = code.value(f"icmp eq i32 {some}, 0")
    stepped = code.value(f"select i1 {full}, i32 {CONSECUTIVE}, i32 {IN_PLACE}")
    else_kind = code.value(f"select i1 {in_steps}, i32 {stepped}, i32 {SCATTERED}")
    return code.value(f"select i1 {same}, i32 {ONE_PLACE}, i32 {else_kind}")


def _note(name: str, kind: str) -> Code:
    """Counts a request of the context's addresses, with at least one active lane; gives its pattern."""
    code = Code(name, "ptr", "ptr %ctx, ptr %site, i32 %mask")
    lane = lane_of(code, "%mask")
    differences, place = _relate(code, kind, "addresses", lane, booleans(code, "%mask"))
    key = _key(code, place)
    once = f"ptr %ctx, ptr %site, i32 %mask, i64 {key}, <{LANES} x {kind}> {differences}"
    strange = code.load("i32", "%site", SITE["strange"])
    futile = code.value(f"icmp uge i32 {strange}, {_FUTILE}")
    turn = code.value(f"icmp ne i32 {code.value(f'and i32 {strange}, {_FUTILE - 1}')}, 0")
    with code.when(code.value(f"and i1 {futile}, {turn}")):
        _count_once(code, kind, once)
    pattern, kept = _recent(code, place, PATTERN_BYTES)

    def is_new(candidate: str) -> str:
        # Most that are new have another mask or place: then what else is kept of the pattern is not touched.
        other = code.value(f"icmp ne i64 {code.load('i64', candidate, PATTERN['mask'])}, {key}")
        code.store("i1", other, new)
        with code.when(code.value(f"xor i1 {other}, true")):
            code.store("i1", _differs(code, kind, differences, candidate, "differences"), new)
        return code.load("i1", new)

    chosen, new = code.variable("ptr", pattern), code.variable("i1", "true")
    with code.when(is_new(pattern)):
        _count_once(code, kind, once)
        second = _find_pattern(code, key, [(kind, differences)], kept, PATTERN_BYTES)
        code.store("ptr", second, chosen)
        with code.when(is_new(second)):
            code.run(f"evict.{kind}", f"ptr %ctx, ptr %site, ptr {second}")
            code.store("i64", key, second, PATTERN["mask"])
            code.store(f"<{LANES} x {kind}>", differences, second, PATTERN["differences"], 64)
            code.store("i32", _kind_of(code, kind, differences, lane), second, PATTERN["kind"])
    result = code.load("ptr", chosen)
    code.store("i32", 0, "%site", SITE["strange"])
    code.bump("i64", result, 1, PATTERN["hits"])
    code.give(result)
    return code


def _count_once(code: Code, kind: str, arguments: str) -> None:
    """Where a site meets ever new patterns: counts this one, and is done, if it needs not be kept."""
    with code.when(code.value(f"icmp sge i64 {code.load('i64', '%site', SITE['most_excess'])}, 0")):
        pattern = code.call("ptr", f"once.{kind}", arguments)
        with code.when(code.value(f"icmp ne ptr {pattern}, null")):
            code.give(pattern)


def _write_once(kind: str) -> Code:
    """Counts a request of which nothing is kept; gives its pattern, null where it has to be kept."""
    vector = f"<{LANES} x {kind}>"
    code = Code(f"once.{kind}", "ptr", f"ptr %ctx, ptr %site, i32 %mask, i64 %key, {vector} %differences")
    pattern = code.at("%ctx", CONTEXT["pattern"])
    code.store("i64", 1, pattern, PATTERN["hits"])
    code.store("i64", "%key", pattern, PATTERN["mask"])
    code.store(vector, "%differences", pattern, PATTERN["differences"], 64)
    counted = code.call("i32", _FORGET[kind], f"ptr %site, ptr {pattern}")
    with code.when(code.value(f"icmp eq i32 {counted}, 0")):
        code.give("null")
    code.store("i32", _kind_of(code, kind, "%differences", lane_of(code, "%mask")), pattern, PATTERN["kind"])
    code.bump("i32", "%site", 1, SITE["strange"])
    code.give(pattern)
    return code


def _open_row(code: Code, log: str, used: str, columns: int) -> str:
    """The next free row of a log, begun with site, hits, mask and place; the pattern's hits are taken from it."""
    number = code.load("i64", "%ctx", CONTEXT[used])
    offset = code.value(f"mul i64 {number}, {8 * columns}")
    row = code.at(code.load("ptr", "%ctx", CONTEXT[log]), offset)
    site = code.value(f"zext i32 {code.load('i32', '%site', SITE['number'])} to i64")
    code.store("i64", site, row)
    code.store("i64", code.load("i64", "%pattern", PATTERN["hits"]), row, 8)
    for column, field in ((2, "mask"), (3, "place")):
        code.store(
            "i64", code.value(f"zext i32 {code.load('i32', '%pattern', PATTERN[field])} to i64"), row, 8 * column
        )
    code.store("i64", 0, "%pattern", PATTERN["hits"])
    return row


def _close_row(code: Code, used: str, limit: str) -> None:
    """Counts the row, and has a full log emptied."""
    more = code.value(f"add i64 {code.load('i64', '%ctx', CONTEXT[used])}, 1")
    code.store("i64", more, "%ctx", CONTEXT[used])
    with code.when(code.value(f"icmp sge i64 {more}, {code.load('i64', '%ctx', CONTEXT[limit])}")):
        drain = code.load("ptr", "%ctx", CONTEXT["drain"])
        code.do(f"call void {drain}(ptr %ctx)")


def _never_came(code: Code) -> None:
    hits = code.load("i64", "%pattern", PATTERN["hits"])
    with code.when(code.value(f"icmp eq i64 {hits}, 0")):
        code.give()


def _evict(kind: str) -> Code:
    code = Code(f"evict.{kind}", "void", "ptr %ctx, ptr %site, ptr %pattern")
    _never_came(code)
    counted = code.call("i32", _FORGET[kind], "ptr %site, ptr %pattern")
    with code.when(code.value(f"icmp ne i32 {counted}, 0")):
        code.give()
    row = _open_row(code, "log", "log_used", LOG_COLUMNS)
    _log_differences(code, kind, "differences", row, 4)
    _close_row(code, "log_used", "log_limit")
    code.give()
    return code


def _log_differences(code: Code, kind: str, field: str, row: str, column: int) -> None:
    values = code.load(f"<{LANES} x {kind}>", "%pattern", PATTERN[field], 64)
    if kind == "i32":
        values = code.value(f"sext {_VECTOR} {values} to {_LONGS}")
    code.store(_LONGS, values, row, 8 * column, 8)


def _note_copy() -> Code:
    """Counts a copy: addresses are the sources, `others` the destinations (i32), `sizes` the bytes read of each.

    `issued` are the lanes whose addresses matter: those that execute it, or all that issue it.
    """
    code = Code("note.copy", "ptr", "ptr %ctx, ptr %site, i32 %mask, i32 %issued")
    lane, inside = lane_of(code, "%issued"), booleans(code, "%issued")
    differences, place = _relate(code, "i64", "addresses", lane, inside, COPY_PERIOD_BYTES)
    others, other_place = _relate(code, "i32", "others", lane, inside)
    asked = code.load(_VECTOR, "%ctx", CONTEXT["sizes"], 64)
    active = booleans(code, "%mask")
    sizes = code.value(f"select <{LANES} x i1> {active}, {_VECTOR} {asked}, {_VECTOR} zeroinitializer")
    (pattern, kept), key = _recent(code, place, COPY_PATTERN_BYTES), _key(code, place)
    rows = {"differences": ("i64", differences), "others": ("i32", others), "sizes": ("i32", sizes)}

    def is_new(candidate: str) -> str:
        new = code.value(f"icmp ne i64 {code.load('i64', candidate, PATTERN['mask'])}, {key}")
        moved = code.value(f"icmp ne i32 {code.load('i32', candidate, PATTERN['other_place'])}, {other_place}")
        others_issue = code.value(f"icmp ne i32 {code.load('i32', candidate, PATTERN['issued'])}, %issued")
        for test in [
            moved,
            others_issue,
            *(_differs(code, kind, value, candidate, field) for field, (kind, value) in rows.items()),
        ]:
            new = code.value(f"or i1 {new}, {test}")
        return new

    chosen = code.variable("ptr", pattern)
    with code.when(is_new(pattern)):
        second = _find_pattern(code, key, list(rows.values()), kept, COPY_PATTERN_BYTES)
        code.store("ptr", second, chosen)
        with code.when(is_new(second)):
            code.run("evict_copy", f"ptr %ctx, ptr %site, ptr {second}")
            code.store("i64", key, second, PATTERN["mask"])
            code.store("i32", other_place, second, PATTERN["other_place"])
            code.store("i32", "%issued", second, PATTERN["issued"])
            for field, (kind, value) in rows.items():
                code.store(f"<{LANES} x {kind}>", value, second, PATTERN[field], 64)
    result = code.load("ptr", chosen)
    code.bump("i64", result, 1, PATTERN["hits"])
    code.give(result)
    return code


def _evict_copy() -> Code:
    code = Code("evict_copy", "void", "ptr %ctx, ptr %site, ptr %pattern")
    _never_came(code)
    row = _open_row(code, "wide_log", "wide_used", WIDE_COLUMNS)
    _log_differences(code, "i64", "differences", row, 4)
    place = code.value(f"zext i32 {code.load('i32', '%pattern', PATTERN['other_place'])} to i64")
    code.store("i64", place, row, 8 * LOG_COLUMNS)
    _log_differences(code, "i32", "others", row, LOG_COLUMNS + 1)
    _log_differences(code, "i32", "sizes", row, LOG_COLUMNS + 1 + LANES)
    issued = code.value(f"zext i32 {code.load('i32', '%pattern', PATTERN['issued'])} to i64")
    code.store("i64", issued, row, 8 * (LOG_COLUMNS + 1 + 2 * LANES))
    _close_row(code, "wide_used", "wide_limit")
    code.give()
    return code
