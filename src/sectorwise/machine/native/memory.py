"""Turns loads and stores of each space and width into routines over the context's rows of addresses and data.

A routine notes the request, checks bounds and alignment of all active lanes, and moves the words. What it cannot do
(an access outside of every buffer, a wrong alignment) makes the launch give up: the reference engine takes it over.
"""

from __future__ import annotations

from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import (
    ALLOCATION,
    ALLOCATION_BYTES,
    CHUNK_BITS,
    CONTEXT,
    GAVE_UP,
    LANES,
    LOADED,
    MISSED,
    ONE_PLACE,
    PATTERN,
    SITE,
    SITE_BYTES,
    STORED,
    STRAYED,
    WORD_ROW,
)
from sectorwise.machine.native.moves import (
    LONGS,
    MOVES,
    VECTOR,
    data_row,
    list_simple_moves,
    move_lane,
    note_lost,
    words_of,
)
from sectorwise.machine.native.requests import booleans, first_of, lane_of, spread
from sectorwise.machine.native.written import write_written_routine

WINDOW_BYTES = 1 << 24
ARGUMENTS = "ptr %ctx, ptr %site, i32 %mask"


def write_memory_routine(name: str) -> str:
    """The routine of this name: `load.global.4`, `store.shared.16`, ..."""
    match name.split("."):
        case [("load" | "store" | "touch") as operation, space, width]:
            return _SPACES[space](name, operation, int(width)).text()
        case ["find"]:
            return _write_find().text()
        case ["chunks"]:
            return _write_chunks().text()
        case ["lanes", operation, width]:
            return _write_lanes(name, operation, int(width)).text()
        case ["local", operation, width]:
            return _write_local_lanes(name, operation, int(width)).text()
        case ["written", *_]:
            return write_written_routine(name)
        case ["watch"]:
            return _write_watch().text()
        case ["give_up"] | ["miss"]:
            return _write_end(name, GAVE_UP if name == "give_up" else MISSED).text()
        case _:
            raise AssertionError(name)


def _write_watch() -> Code:
    """Keeps the least and the greatest of the values of some lanes."""
    code = Code("watch", "void", f"ptr %place, {LONGS} %values, i32 %mask")
    with code.when(code.value("icmp eq i32 %mask, 0")):
        code.give()
    inside = booleans(code, "%mask")
    for offset, operation, neutral in ((0, "smin", (1 << 63) - 1), (8, "smax", -(1 << 63))):
        chosen = code.value(f"select <{LANES} x i1> {inside}, {LONGS} %values, {LONGS} splat (i64 {neutral})")
        one = code.value(f"call i64 @llvm.vector.reduce.{operation}.v32i64({LONGS} {chosen})")
        old = code.load("i64", "%place", offset)
        code.store("i64", code.value(f"call i64 @llvm.{operation}.i64(i64 {old}, i64 {one})"), "%place", offset)
    code.give()
    return code


def _write_end(name: str, why: int) -> Code:
    code = Code(name, "void", "ptr %ctx")
    _stop(code, why)
    code.give()
    return code


def _stop(code: Code, why: int) -> None:
    """Ends the run at the next basic block."""
    code.store("i32", why, "%ctx", CONTEXT["stop"])
    code.store("i64", -1, "%ctx", CONTEXT["fuel"])


def _write_find() -> Code:
    """The buffer that holds `bytes` from an address on, null if there is none; made now if a flag says what for.

    Ends the run where it is a buffer that the site was thought not to reach.
    """
    code = Code("find", "ptr", "ptr %ctx, ptr %site, i64 %address, i64 %bytes, i32 %flag")
    table = code.load("ptr", "%ctx", CONTEXT["allocations"])
    with code.count(code.load("i64", "%ctx", CONTEXT["allocation_count"])) as number:
        entry = code.at(table, code.value(f"mul i64 {number}, {ALLOCATION_BYTES}"))
        offset = code.value(f"sub i64 %address, {code.load('i64', entry, ALLOCATION['base'])}")
        size = code.load("i64", entry, ALLOCATION["size"])
        end = code.value(f"add i64 {offset}, %bytes")
        inside = code.value(f"icmp ult i64 {offset}, {size}")
        whole = code.value(f"icmp ule i64 {end}, {size}")
        with code.when(code.value(f"and i1 {inside}, {whole}")):
            expected = code.load("i8", code.at(code.load("ptr", "%site", SITE["reach"]), number))
            with code.when(code.value(f"icmp eq i8 {expected}, 0")):
                _stop(code, STRAYED)
            missing = code.value(f"icmp eq i64 {code.load('i64', entry, ALLOCATION['host'])}, 0")
            wanted = code.value("icmp ne i32 %flag, 0")
            with code.when(code.value(f"and i1 {missing}, {wanted}")):
                fetch = code.load("ptr", "%ctx", CONTEXT["fetch"])
                code.do(f"call void {fetch}(i64 {number})")
            flags = code.value(f"or i32 {code.load('i32', entry, ALLOCATION['flags'])}, %flag")
            code.store("i32", flags, entry, ALLOCATION["flags"])
            code.give(entry)
    code.give("null")
    return code


def _write_chunks() -> Code:
    """Makes those chunks of a buffer between two offsets that are not made yet."""
    code = Code("chunks", "void", "ptr %ctx, ptr %buffer, i64 %low, i64 %high")
    made = code.load("ptr", "%buffer", ALLOCATION["made"])
    with code.when(code.value(f"icmp eq ptr {made}, null")):
        code.give()
    first, last = (code.value(f"lshr i64 {offset}, {CHUNK_BITS}") for offset in ("%low", "%high"))
    table = code.load("ptr", "%ctx", CONTEXT["allocations"])
    distance = code.value(
        f"sub i64 {code.value('ptrtoint ptr %buffer to i64')}, {code.value(f'ptrtoint ptr {table} to i64')}"
    )
    number = code.value(f"udiv i64 {distance}, {ALLOCATION_BYTES}")
    place = code.variable("i64", first)
    with code.loop() as behind:
        chunk = code.load("i64", place)
        code.leave(behind, code.value(f"icmp ugt i64 {chunk}, {last}"))
        # Another thread may make it: what it wrote must be seen with the word that says so.
        done = code.value(f"load atomic i32, ptr {code.at(made, chunk, 'i32')} acquire, align 4")
        with code.when(code.value(f"icmp eq i32 {done}, 0")):
            make = code.load("ptr", "%ctx", CONTEXT["make"])
            code.do(f"call void {make}(i64 {number}, i64 {chunk})")
        code.bump("i64", place, 1)
    code.give()
    return code


def _make_lanes(code: Code, entry: str, extent: tuple[str, str], width: int) -> None:
    """Makes what the active lanes read in a buffer (of this base and size), if all of them are inside of it."""
    base, size = extent
    made = code.load("ptr", entry, ALLOCATION["made"])
    with code.when(code.value(f"icmp ne ptr {made}, null")):
        addresses = code.load(LONGS, "%ctx", CONTEXT["addresses"], 64)
        offsets = code.value(f"sub {LONGS} {addresses}, {spread(code, 'i64', base)}")
        whole = code.value(f"icmp eq i32 {_outside(code, offsets, size, width)}, 0")
        with code.when(whole):
            _make_between(code, entry, offsets, width)


def _make_between(code: Code, entry: str, offsets: str, width: int) -> None:
    """Makes all from the least to the greatest offset of the active lanes, where that is little; else lane by lane."""
    inside = booleans(code, "%mask")
    ends = []
    for operation, neutral in (("umin", -1), ("umax", 0)):
        chosen = code.value(f"select <{LANES} x i1> {inside}, {LONGS} {offsets}, {LONGS} splat (i64 {neutral})")
        ends.append(code.value(f"call i64 @llvm.vector.reduce.{operation}.v32i64({LONGS} {chosen})"))
    low, high = ends[0], code.value(f"add i64 {ends[1]}, {width - 1}")
    near = code.value(f"icmp ule i64 {code.value(f'sub i64 {high}, {low}')}, {1 << CHUNK_BITS}")
    with code.when(near):
        code.run("chunks", f"ptr %ctx, ptr {entry}, i64 {low}, i64 {high}")
    with code.when(code.value(f"xor i1 {near}, true")), code.lanes("%mask") as lane:
        own = code.value(f"extractelement {LONGS} {offsets}, i64 {lane}")
        end = code.value(f"add i64 {own}, {width - 1}")
        code.run("chunks", f"ptr %ctx, ptr {entry}, i64 {own}, i64 {end}")


def _current(code: Code, address: str, flag: int, slow: str) -> tuple[str, str, str, str]:
    """The buffer at an address, its base, size and host address; jumps to `slow` where there is none."""
    site_allocation = code.load("ptr", "%site", SITE["allocation"])
    chosen = code.variable("ptr", site_allocation)
    offset = code.value(f"sub i64 {address}, {code.load('i64', site_allocation, ALLOCATION['base'])}")
    size = code.load("i64", site_allocation, ALLOCATION["size"])
    with code.when(code.value(f"icmp uge i64 {offset}, {size}")):
        found = code.call("ptr", "find", f"ptr %ctx, ptr %site, i64 {address}, i64 1, i32 {flag}")
        code.leave(slow, code.value(f"icmp eq ptr {found}, null"))
        code.store("ptr", found, "%site", SITE["allocation"])
        code.store("ptr", found, chosen)
    entry = code.load("ptr", chosen)
    return (
        entry,
        code.load("i64", entry, ALLOCATION["base"]),
        code.load("i64", entry, ALLOCATION["size"]),
        code.load("i64", entry, ALLOCATION["host"]),
    )


_FLAGS = {"load": LOADED, "store": STORED, "touch": 0}


def _skip_empty(code: Code) -> None:
    with code.when(code.value("icmp eq i32 %mask, 0")):
        code.give()


def _write_global(name: str, operation: str, width: int) -> Code:
    code = Code(name, "void", ARGUMENTS)
    _skip_empty(code)
    pattern = code.call("ptr", "note.long", ARGUMENTS)
    kind = code.load("i32", pattern, PATTERN["kind"])
    first = first_of(code, "i64", "addresses", lane_of(code, "%mask"))
    slow = code.fresh("slow")
    entry, base, size, host = _current(code, first, _FLAGS[operation], slow)
    offset = code.value(f"sub i64 {first}, {base}")
    aligned = code.value(f"icmp eq i64 {code.value(f'and i64 {first}, {width - 1}')}, 0")
    place = code.value(f"inttoptr i64 {code.value(f'add i64 {host}, {offset}')} to ptr")
    if operation == "load":
        _make_lanes(code, entry, (base, size), width)
    _simple_patterns(code, operation, width, (kind, aligned, place, offset, size))
    addresses = code.load(LONGS, "%ctx", CONTEXT["addresses"], 64)
    offsets = code.value(f"sub {LONGS} {addresses}, {spread(code, 'i64', base)}")
    bad = _outside(code, offsets, size, width)
    code.leave(slow, code.value(f"icmp ne i32 {bad}, 0"))
    MOVES[operation][-1](code, code.value(f"add {LONGS} {offsets}, {spread(code, 'i64', host)}"), width)
    code.give()
    code.label(slow)
    code.run(f"lanes.{operation}.{width}", ARGUMENTS)
    code.give()
    return code


def _simple_patterns(code: Code, operation: str, width: int, where: tuple[str, str, str, str, str]) -> None:
    """Does the access at once, and returns, where lanes are consecutive or at one place, aligned and inside."""
    kind, aligned, place, offset, size = where
    for wanted, reach, move in list_simple_moves(code, operation, width):
        fits = code.value(f"icmp ule i64 {code.value(f'add i64 {offset}, {reach}')}, {size}")
        so = code.value(f"icmp eq i32 {kind}, {wanted}")
        with code.when(code.value(f"and i1 {code.value(f'and i1 {so}, {fits}')}, {aligned}")):
            move(code, place, width)
            code.give()


def _outside(code: Code, offsets: str, size: str, width: int) -> str:
    """Active lanes whose offset is misaligned or not within `size` bytes, as a mask."""
    more = code.value(f"add i64 {size}, {1 - width}")
    room = code.value(f"call i64 @llvm.smax.i64(i64 {more}, i64 0)")
    far = code.value(f"icmp uge {LONGS} {offsets}, {spread(code, 'i64', room)}")
    if width > 1:
        rest = code.value(f"and {LONGS} {offsets}, splat (i64 {width - 1})")
        odd = code.value(f"icmp ne {LONGS} {rest}, zeroinitializer")
        far = code.value(f"or <{LANES} x i1> {far}, {odd}")
    return code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {far} to i32')}, %mask")


def _write_lanes(name: str, operation: str, width: int) -> Code:
    """A global access lane by lane: each may be in another buffer."""
    code = Code(name, "void", ARGUMENTS)
    flag = _FLAGS[operation]
    with code.lanes("%mask") as lane:
        address = first_of(code, "i64", "addresses", lane)
        found = code.call("ptr", "find", f"ptr %ctx, ptr %site, i64 {address}, i64 {width}, i32 {flag}")
        wrong = code.value(f"icmp eq ptr {found}, null")
        odd = code.value(f"icmp ne i64 {code.value(f'and i64 {address}, {width - 1}')}, 0")
        with code.when(code.value(f"or i1 {wrong}, {odd}")):
            code.run("give_up", "ptr %ctx")
            code.give()
        offset = code.value(f"sub i64 {address}, {code.load('i64', found, ALLOCATION['base'])}")
        if operation == "load":
            end = code.value(f"add i64 {offset}, {width - 1}")
            code.run("chunks", f"ptr %ctx, ptr {found}, i64 {offset}, i64 {end}")
        host = code.value(f"add i64 {code.load('i64', found, ALLOCATION['host'])}, {offset}")
        move_lane(code, operation, width, lane, [code.value(f"inttoptr i64 {host} to ptr")] * words_of(width), 4)
        if operation == "store":
            code.store("i64", host, code.at(code.at("%ctx", CONTEXT["others"]), lane, "i64"))
    if operation == "store":
        note_lost(code, code.load(LONGS, "%ctx", CONTEXT["others"], 64), width)
    code.give()
    return code


def _write_shared(name: str, operation: str, width: int) -> Code:
    code = Code(name, "void", ARGUMENTS)
    _skip_empty(code)
    pattern = code.call("ptr", "note.word", ARGUMENTS)
    kind = code.load("i32", pattern, PATTERN["kind"])
    first = code.value(f"zext i32 {first_of(code, 'i32', 'addresses', lane_of(code, '%mask'))} to i64")
    host, size = code.load("ptr", "%ctx", CONTEXT["shared"]), code.load("i64", "%ctx", CONTEXT["shared_bytes"])
    aligned = code.value(f"icmp eq i64 {code.value(f'and i64 {first}, {width - 1}')}, 0")
    _simple_patterns(code, operation, width, (kind, aligned, code.at(host, first), first, size))
    addresses = code.load(VECTOR, "%ctx", CONTEXT["addresses"], 64)
    offsets = code.value(f"zext {VECTOR} {addresses} to {LONGS}")
    bad = _outside(code, offsets, size, width)
    with code.when(code.value(f"icmp ne i32 {bad}, 0")):
        code.run("give_up", "ptr %ctx")
        code.give()
    start = spread(code, "i64", code.value(f"ptrtoint ptr {host} to i64"))
    MOVES[operation][-1](code, code.value(f"add {LONGS} {offsets}, {start}"), width)
    code.give()
    return code


def _write_local(name: str, operation: str, width: int) -> Code:
    """Local memory: rows of 32 words, one a lane; lanes that share an offset move whole rows."""
    code = Code(name, "void", ARGUMENTS)
    _skip_empty(code)
    pattern = code.call("ptr", "note.word", ARGUMENTS)
    kind = code.load("i32", pattern, PATTERN["kind"])
    slow = code.fresh("slow")
    far = code.value(f"icmp ne i32 {kind}, {ONE_PLACE}")
    if width < 4:
        far = code.value("or i1 true, false")
    code.leave(slow, far)
    first = code.value(f"zext i32 {first_of(code, 'i32', 'addresses', lane_of(code, '%mask'))} to i64")
    offset = code.value(f"sub i64 {first}, {code.load('i64', '%ctx', CONTEXT['local_start'])}")
    room = code.value(f"add i64 {code.load('i64', '%ctx', CONTEXT['local_bytes'])}, {-width}")
    wrong = code.value(f"icmp ugt i64 {offset}, {room}")
    odd = code.value(f"icmp ne i64 {code.value(f'and i64 {first}, {width - 1}')}, 0")
    code.leave(slow, code.value(f"or i1 {wrong}, {odd}"))
    inside = booleans(code, "%mask")
    start = code.at(code.load("ptr", "%ctx", CONTEXT["local"]), code.value(f"mul i64 {offset}, {LANES}"))
    for word in range(words_of(width)):
        place = code.at(start, WORD_ROW * word) if word else start
        if operation == "load":
            code.store(VECTOR, code.load(VECTOR, place, align=4), data_row(code, word))
        elif operation == "store":
            old, new = code.load(VECTOR, place, align=4), code.load(VECTOR, data_row(code, word))
            code.store(
                VECTOR, code.value(f"select <{LANES} x i1> {inside}, {VECTOR} {new}, {VECTOR} {old}"), place, 0, 4
            )
    code.give()
    code.label(slow)
    code.run(f"local.{operation}.{width}", ARGUMENTS)
    code.give()
    return code


def _write_local_lanes(name: str, operation: str, width: int) -> Code:
    """A local access lane by lane."""
    code = Code(name, "void", ARGUMENTS)
    room = code.value(f"add i64 {code.load('i64', '%ctx', CONTEXT['local_bytes'])}, {-width}")
    start = code.load("i64", "%ctx", CONTEXT["local_start"])
    memory = code.load("ptr", "%ctx", CONTEXT["local"])
    with code.lanes("%mask") as lane:
        address = code.value(f"zext i32 {first_of(code, 'i32', 'addresses', lane)} to i64")
        offset = code.value(f"sub i64 {address}, {start}")
        wrong = code.value(f"icmp ugt i64 {offset}, {room}")
        small = code.value(f"icmp slt i64 {room}, 0")
        odd = code.value(f"icmp ne i64 {code.value(f'and i64 {address}, {width - 1}')}, 0")
        with code.when(code.value(f"or i1 {code.value(f'or i1 {wrong}, {small}')}, {odd}")):
            code.run("give_up", "ptr %ctx")
            code.give()
        row = code.value(f"mul i64 {code.value(f'lshr i64 {offset}, 2')}, {WORD_ROW}")
        cell = code.value(f"add i64 {code.value(f'mul i64 {lane}, 4')}, {code.value(f'and i64 {offset}, 3')}")
        place = code.at(memory, code.value(f"add i64 {row}, {cell}"))
        move_lane(code, operation, width, lane, [place] * words_of(width), WORD_ROW)
    code.give()
    return code


def _write_generic(name: str, operation: str, width: int) -> Code:
    """A generic access: the lanes of each space are a request of their own, at a site of its own."""
    code = Code(name, "void", ARGUMENTS)
    words = words_of(width)
    results = [code.variable(VECTOR, "zeroinitializer") for _ in range(words)]
    kept = code.load(LONGS, "%ctx", CONTEXT["addresses"], 64)
    rest = code.variable("i32", "%mask")
    for number, space in ((1, "shared"), (2, "local"), (0, "global")):
        own, addresses = code.load("i32", rest), kept
        if number:
            window = spread(code, "i64", code.load("i64", "%ctx", CONTEXT[f"{space}_window"]))
            addresses = code.value(f"sub {LONGS} {kept}, {window}")
            near = code.value(f"icmp ult {LONGS} {addresses}, splat (i64 {WINDOW_BYTES})")
            own = code.value(f"and i32 {own}, {code.value(f'bitcast <{LANES} x i1> {near} to i32')}")
            left = code.value(f"xor i32 {code.load('i32', rest)}, {own}")
            code.store("i32", left, rest)
        with code.when(code.value(f"icmp ne i32 {own}, 0")):
            if number:
                short = code.value(f"trunc {LONGS} {addresses} to {VECTOR}")
                code.store(VECTOR, short, "%ctx", CONTEXT["addresses"], 64)
            else:
                code.store(LONGS, kept, "%ctx", CONTEXT["addresses"], 64)
            site = code.at("%site", number * SITE_BYTES) if number else "%site"
            code.run(f"{operation}.{space}.{width}", f"ptr %ctx, ptr {site}, i32 {own}")
            if operation == "load":
                inside = booleans(code, own)
                for word, result in enumerate(results):
                    new, old = code.load(VECTOR, data_row(code, word)), code.load(VECTOR, result)
                    code.store(
                        VECTOR, code.value(f"select <{LANES} x i1> {inside}, {VECTOR} {new}, {VECTOR} {old}"), result
                    )
    if operation == "load":
        for word, result in enumerate(results):
            code.store(VECTOR, code.load(VECTOR, result), data_row(code, word))
    code.give()
    return code


_SPACES = {"global": _write_global, "shared": _write_shared, "local": _write_local, "generic": _write_generic}
