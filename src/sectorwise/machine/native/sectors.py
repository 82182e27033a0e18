"""Turns an access pattern that a site forgets into its sectors and lines, or its passes, counted where it stands.

Of a kernel whose every request lies otherwise, writing them down for the counting rules takes ten times as long as
running it. So a pattern that is no dearer than all that are kept for people to see adds to sums of its site. These are
the counting rules that machine code holds, for global memory and for shared loads and stores of one word a lane; the
tests hold them to `counting.coalescing` and `counting.banks`.
"""

from __future__ import annotations

from sectorwise.counting.banks import BANKS, PASS_BYTES
from sectorwise.counting.coalescing import LINE_BYTES, SECTOR_BYTES
from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import LANES, PATTERN, PATTERN_BITS, PATTERN_BYTES, SITE
from sectorwise.machine.native.requests import spread

_VECTOR = f"<{LANES} x i32>"
_LONGS = f"<{LANES} x i64>"
_SECTOR_BITS = SECTOR_BYTES.bit_length() - 1
_LINE_BITS = (LINE_BYTES // SECTOR_BYTES).bit_length() - 1
_BITS = 64

SWEEPS = {"sweep.long": "sectors.forget", "sweep.word": "sectors.passes"}
"""Functions that are exported, by the rule that they count by."""

SELDOM = 8
"""A pattern that came no more often than this has no claim to be shown."""


def write_sector_routine(name: str) -> str:
    """The routine of this name."""
    match name.split("."):
        case ["sectors", "forget"]:
            return _write_forget().text()
        case ["sectors", "passes"]:
            return _write_passes().text()
        case ["sectors", "window"]:
            return _write_window().text()
        case ["sectors", "distinct"]:
            return _write_distinct().text()
        case ["sectors", "first"]:
            return _write_first().text()
        case _:
            raise AssertionError(name)


def write_sweep(routines: str) -> str:
    """Functions that machine code exports: each counts, of a site, the patterns remembered that came a few times.

    There is one for each kind of address that these routines note.
    """
    return "\n".join(_write_sweep(sweep, rule).text() for sweep, rule in SWEEPS.items() if f"@{rule}(" in routines)


def _write_sweep(name: str, rule: str) -> Code:
    code = Code(name, "void", "ptr %site", attributes="", linkage="")
    patterns = code.at("%site", SITE["patterns"])
    with code.count(1 << PATTERN_BITS) as number:
        pattern = code.at(patterns, code.value(f"mul i64 {number}, {PATTERN_BYTES}"))
        less = code.value(f"sub i64 {code.load('i64', pattern, PATTERN['hits'])}, 1")
        seldom = code.value(f"icmp ult i64 {less}, {SELDOM}")
        with code.when(seldom):
            code.call("i32", rule, f"ptr %site, ptr {pattern}")
    code.give()
    return code


def _write_forget() -> Code:
    """Adds a global pattern to its site's sums; gives 1 if it did, 0 if it is to be written down."""
    code = Code("sectors.forget", "i32", "ptr %site, ptr %pattern")
    most = code.load("i64", "%site", SITE["most_excess"])
    with code.when(code.value(f"icmp slt i64 {most}, 0")):
        code.give(0)
    # Lanes that are not active have no difference to the first that is: they add no sector.
    differences = code.load(_LONGS, "%pattern", PATTERN["differences"], 64)
    place = code.value(f"zext i32 {code.load('i32', '%pattern', PATTERN['place'])} to i64")
    addresses = code.value(f"add {_LONGS} {differences}, {spread(code, 'i64', place)}")
    sectors = code.value(f"ashr {_LONGS} {addresses}, splat (i64 {_SECTOR_BITS})")
    lowest = code.value(f"call i64 @llvm.vector.reduce.smin.v32i64({_LONGS} {sectors})")
    # Lines begin where the lowest sector's does.
    start = code.value(f"and i64 {lowest}, {-1 << _LINE_BITS}")
    offsets = code.value(f"sub {_LONGS} {sectors}, {spread(code, 'i64', start)}")
    most_offset = code.value(f"call i64 @llvm.vector.reduce.umax.v32i64({_LONGS} {offsets})")
    with code.when(code.value(f"icmp ugt i64 {most_offset}, {0x7FFFFFFF}")):
        code.give(0)
    lines = code.value(f"lshr {_LONGS} {offsets}, splat (i64 {_LINE_BITS})")
    counts = [_count(code, offsets, most_offset)]
    last_line = code.value(f"lshr i64 {most_offset}, {_LINE_BITS}")
    counts.append(_count(code, lines, last_line))
    _add(code, counts[0], counts[1], most)
    code.give(1)
    return code


def _count(code: Code, numbers: str, most: str) -> str:
    """How many distinct numbers these are, i64; none is above `most`."""
    result = code.variable("i64", 0)
    near = code.value(f"icmp ult i64 {most}, {_BITS}")
    with code.when(near):
        code.store("i64", code.call("i64", "sectors.window", f"{_LONGS} {numbers}"), result)
    with code.when(code.value(f"xor i1 {near}, true")):
        short = code.value(f"trunc {_LONGS} {numbers} to {_VECTOR}")
        code.store("i64", code.call("i64", "sectors.distinct", f"{_VECTOR} {short}"), result)
    return code.load("i64", result)


def _add(code: Code, cost: str, lines: str, most: str, unit_bytes: int = SECTOR_BYTES) -> None:
    """Adds all that came in this pattern, and forgets it, unless it is to be kept: then gives 0."""
    lanes = code.value(f"call i32 @llvm.ctpop.i32(i32 {code.load('i32', '%pattern', PATTERN['mask'])})")
    bytes_ = code.value(f"mul i32 {lanes}, {code.load('i32', '%site', SITE['width'])}")
    packed = code.value(f"udiv i32 {code.value(f'add i32 {bytes_}, {unit_bytes - 1}')}, {unit_bytes}")
    ideal = code.value(f"call i64 @llvm.umin.i64(i64 {cost}, i64 {code.value(f'zext i32 {packed} to i64')})")
    with code.when(code.value(f"icmp sgt i64 {code.value(f'sub i64 {cost}, {ideal}')}, {most}")):
        code.give(0)
    hits = code.load("i64", "%pattern", PATTERN["hits"])
    for field, each in (
        ("sum_cost", cost),
        ("sum_ideal", ideal),
        ("sum_lines", lines),
        ("sum_lanes", code.value(f"zext i32 {lanes} to i64")),
        ("sum_requests", "1"),
    ):
        code.bump("i64", "%site", code.value(f"mul i64 {hits}, {each}"), SITE[field])
    code.store("i64", 0, "%pattern", PATTERN["hits"])


def _write_passes() -> Code:
    """The same for shared loads and stores of one word a lane: as many passes as words lie in one bank."""
    code = Code("sectors.passes", "i32", "ptr %site, ptr %pattern")
    most = code.load("i64", "%site", SITE["most_excess"])
    with code.when(code.value(f"icmp slt i64 {most}, 0")):
        code.give(0)
    differences = code.load(_VECTOR, "%pattern", PATTERN["differences"], 64)
    addresses = code.value(
        f"add {_VECTOR} {differences}, {spread(code, 'i32', code.load('i32', '%pattern', PATTERN['place']))}"
    )
    words = code.value(f"ashr {_VECTOR} {addresses}, splat (i32 2)")
    ends = [code.value(f"call i32 @llvm.vector.reduce.{end}.v32i32({_VECTOR} {words})") for end in ("smin", "smax")]
    passes = code.variable("i64", 1)
    near = code.value(f"icmp ult i32 {code.value(f'sub i32 {ends[1]}, {ends[0]}')}, {BANKS}")
    with code.when(code.value(f"xor i1 {near}, true")):
        counts = code.variable(_VECTOR, "zeroinitializer")
        banks = code.variable(_VECTOR, code.value(f"and {_VECTOR} {words}, splat (i32 {BANKS - 1})"))
        code.store(_VECTOR, "zeroinitializer", counts)
        code.store(_VECTOR, code.value(f"and {_VECTOR} {words}, splat (i32 {BANKS - 1})"), banks)
        with code.lanes(code.call("i32", "sectors.first", f"{_VECTOR} {words}")) as lane:
            bank = code.value(f"zext i32 {code.load('i32', code.at(banks, lane, 'i32'))} to i64")
            code.bump("i32", code.at(counts, bank, "i32"), 1)
        fullest = code.value(f"call i32 @llvm.vector.reduce.umax.v32i32({_VECTOR} {code.load(_VECTOR, counts)})")
        code.store("i64", code.value(f"zext i32 {fullest} to i64"), passes)
    _add(code, code.load("i64", passes), "0", most, PASS_BYTES)
    code.give(1)
    return code


def _write_window() -> Code:
    """Distinct numbers of which none is above 63: bits of one word."""
    code = Code("sectors.window", "i64", f"{_LONGS} %numbers")
    bits = code.value(f"shl {_LONGS} splat (i64 1), %numbers")
    word = code.value(f"call i64 @llvm.vector.reduce.or.v32i64({_LONGS} {bits})")
    code.give(code.value(f"call i64 @llvm.ctpop.i64(i64 {word})"))
    return code


def _write_distinct() -> Code:
    """How many distinct numbers there are."""
    code = Code("sectors.distinct", "i64", f"{_VECTOR} %numbers")
    first = code.call("i32", "sectors.first", f"{_VECTOR} %numbers")
    code.give(code.value(f"zext i32 {code.value(f'call i32 @llvm.ctpop.i32(i32 {first})')} to i64"))
    return code


def _write_first() -> Code:
    """Lanes of which no lower one has the same number, as a mask: each is held to all lower ones in turn."""
    code = Code("sectors.first", "i32", f"{_VECTOR} %numbers")
    rows = code.variable(f"<{2 * LANES} x i32>", "zeroinitializer")
    code.store(_VECTOR, "%numbers", rows, 4 * LANES, 4)
    repeated = code.variable("i32", 0)
    with code.count(LANES - 1) as number:
        shift = code.value(f"add i64 {number}, 1")
        other = code.load(_VECTOR, code.at(rows, code.value(f"sub i64 {LANES}, {shift}"), "i32"), align=4)
        same = code.value(f"bitcast <{LANES} x i1> {code.value(f'icmp eq {_VECTOR} %numbers, {other}')} to i32")
        above = code.value(f"shl i32 -1, {code.value(f'trunc i64 {shift} to i32')}")
        found = code.value(f"and i32 {same}, {above}")
        code.store("i32", code.value(f"or i32 {code.load('i32', repeated)}, {found}"), repeated)
    code.give(code.value(f"xor i32 {code.load('i32', repeated)}, -1"))
    return code
