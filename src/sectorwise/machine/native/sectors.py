"""Turns a global access pattern that a site forgets into its sectors and lines, counted where it stands.

Of a kernel whose every request lies otherwise, writing them down for the counting rules takes ten times as long as
running it. So a pattern that is no dearer than all that are kept for people to see adds to sums of its site. This is
the one counting rule that machine code holds; the tests hold it to `counting.coalescing`.
"""

from __future__ import annotations

from sectorwise.counting.coalescing import LINE_BYTES, SECTOR_BYTES
from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import LANES, PATTERN, SITE
from sectorwise.machine.native.requests import spread

_VECTOR = f"<{LANES} x i32>"
_LONGS = f"<{LANES} x i64>"
_SECTOR_BITS = SECTOR_BYTES.bit_length() - 1
_LINE_BITS = (LINE_BYTES // SECTOR_BYTES).bit_length() - 1
_BITS = 64


def write_sector_routine(name: str) -> str:
    """The routine of this name."""
    match name.split("."):
        case ["sectors", "forget"]:
            return _write_forget().text()
        case ["sectors", "window"]:
            return _write_window().text()
        case ["sectors", "distinct"]:
            return _write_distinct().text()
        case _:
            raise AssertionError(name)


def _write_forget() -> Code:
    """Adds a pattern to its site's sums; gives 1 if it did, 0 if it is to be written down."""
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


def _add(code: Code, sectors: str, lines: str, most: str) -> None:
    """Adds all that came in this pattern, and forgets it, unless it is to be kept: then gives 0."""
    lanes = code.value(f"call i32 @llvm.ctpop.i32(i32 {code.load('i32', '%pattern', PATTERN['mask'])})")
    bytes_ = code.value(f"mul i32 {lanes}, {code.load('i32', '%site', SITE['width'])}")
    packed = code.value(f"udiv i32 {code.value(f'add i32 {bytes_}, {SECTOR_BYTES - 1}')}, {SECTOR_BYTES}")
    ideal = code.value(f"call i64 @llvm.umin.i64(i64 {sectors}, i64 {code.value(f'zext i32 {packed} to i64')})")
    with code.when(code.value(f"icmp sgt i64 {code.value(f'sub i64 {sectors}, {ideal}')}, {most}")):
        code.give(0)
    hits = code.load("i64", "%pattern", PATTERN["hits"])
    for field, each in (
        ("sum_sectors", sectors),
        ("sum_ideal", ideal),
        ("sum_lines", lines),
        ("sum_lanes", code.value(f"zext i32 {lanes} to i64")),
        ("sum_requests", "1"),
    ):
        code.bump("i64", "%site", code.value(f"mul i64 {hits}, {each}"), SITE[field])
    code.store("i64", 0, "%pattern", PATTERN["hits"])


def _write_window() -> Code:
    """Distinct numbers of which none is above 63: bits of one word."""
    code = Code("sectors.window", "i64", f"{_LONGS} %numbers")
    bits = code.value(f"shl {_LONGS} splat (i64 1), %numbers")
    word = code.value(f"call i64 @llvm.vector.reduce.or.v32i64({_LONGS} {bits})")
    code.give(code.value(f"call i64 @llvm.ctpop.i64(i64 {word})"))
    return code


def _write_distinct() -> Code:
    """Distinct numbers: lanes of which no lower one has the same, each held to all lower ones in turn."""
    code = Code("sectors.distinct", "i64", f"{_VECTOR} %numbers")
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
    first = code.value(f"xor i32 {code.load('i32', repeated)}, -1")
    code.give(code.value(f"zext i32 {code.value(f'call i32 @llvm.ctpop.i32(i32 {first})')} to i64"))
    return code
