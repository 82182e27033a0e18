"""Turns atomics, async copies, matrix accesses and products into routines over the context's rows."""

from __future__ import annotations

from sectorwise.counting.banks import PASS_BYTES
from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import (
    ALLOCATION,
    CONTEXT,
    LANES,
    LOADED,
    SITE,
    SITE_BYTES,
    STORED,
    WORD_ROW,
)
from sectorwise.machine.native.matrices import write_product_routine
from sectorwise.machine.native.memory import ARGUMENTS, WINDOW_BYTES
from sectorwise.machine.native.moves import GATHER, LONGS, POINTERS, SCATTER, VECTOR
from sectorwise.machine.native.requests import booleans, first_of, spread

_FOLDS = {
    "add": "add {kind} {old}, {new}",
    "and": "and {kind} {old}, {new}",
    "or": "or {kind} {old}, {new}",
    "xor": "xor {kind} {old}, {new}",
    "smin": "call {kind} @llvm.smin.{kind}({kind} {old}, {kind} {new})",
    "smax": "call {kind} @llvm.smax.{kind}({kind} {old}, {kind} {new})",
    "umin": "call {kind} @llvm.umin.{kind}({kind} {old}, {kind} {new})",
    "umax": "call {kind} @llvm.umax.{kind}({kind} {old}, {kind} {new})",
}


_MOST_BYTES = 16
"""Of one copy."""


def write_exchange_routine(name: str) -> str:
    """The routine of this name."""
    match name.split("."):
        case ["touch", "whole", width]:
            return _write_touch(name, int(width)).text()
        case ["resolve", space, width]:
            return _write_resolve(name, space, int(width)).text()
        case ["place", "global", width]:
            return _write_place(name, int(width)).text()
        case ["fold", operation, width]:
            return _write_fold(name, operation, int(width)).text()
        case ["leaders"]:
            return _write_leaders().text()
        case ["winners", width]:
            return _write_winners(name, int(width)).text()
        case ["copy" | "copy_touch", width]:
            return _write_copy(name, int(width)).text()
        case ["product", *_]:
            return write_product_routine(name)
        case ["matrix", operation, matrices]:
            return _write_matrix(name, operation, int(matrices)).text()
        case _:
            raise AssertionError(name)


def _give_up_when(code: Code, condition: str) -> None:
    with code.when(condition):
        code.run("give_up", "ptr %ctx")
        if code.result == "void":
            code.give()
        else:
            code.give(0)


def _write_place(name: str, width: int) -> Code:
    """The host's address of a global access, i64; 0 where it is in no buffer or misaligned."""
    code = Code(name, "i64", "ptr %ctx, ptr %site, i64 %address, i32 %flag")
    odd = code.value(f"icmp ne i64 {code.value(f'and i64 %address, {width - 1}')}, 0")
    with code.when(odd):
        code.give(0)
    known = code.load("ptr", "%site", SITE["allocation"])
    chosen = code.variable("ptr", known)
    offset = code.value(f"sub i64 %address, {code.load('i64', known, ALLOCATION['base'])}")
    size = code.load("i64", known, ALLOCATION["size"])
    end = code.value(f"add i64 {offset}, {width}")
    far = code.value(f"icmp uge i64 {offset}, {size}")
    over = code.value(f"icmp ugt i64 {end}, {size}")
    with code.when(code.value(f"or i1 {far}, {over}")):
        found = code.call("ptr", "find", f"ptr %ctx, ptr %site, i64 %address, i64 {width}, i32 %flag")
        with code.when(code.value(f"icmp eq ptr {found}, null")):
            code.give(0)
        code.store("ptr", found, "%site", SITE["allocation"])
        code.store("ptr", found, chosen)
    entry = code.load("ptr", chosen)
    inside = code.value(f"sub i64 %address, {code.load('i64', entry, ALLOCATION['base'])}")
    # A buffer that is not made has no address; nobody uses what comes out then, but it must not be 0.
    host = code.load("i64", entry, ALLOCATION["host"])
    some = code.value(f"select i1 {code.value(f'icmp eq i64 {host}, 0')}, i64 1, i64 {host}")
    code.give(code.value(f"add i64 {some}, {inside}"))
    return code


def _write_resolve(name: str, space: str, width: int) -> Code:
    """Notes a request and puts the host's address of each active lane into `others`; gives the lanes, 0 to give up."""
    code = Code(name, "i32", ARGUMENTS)
    with code.when(code.value("icmp eq i32 %mask, 0")):
        code.give(0)
    match space:
        case "shared":
            _resolve_shared(code, width)
        case "global":
            _resolve_global(code, width)
        case _:
            _resolve_generic(code, width, inside=space == "inside")
    code.give("%mask")
    return code


def _resolve_shared(code: Code, width: int) -> None:
    code.call("ptr", "note.word", ARGUMENTS)
    addresses = code.load(VECTOR, "%ctx", CONTEXT["addresses"], 64)
    offsets = code.value(f"zext {VECTOR} {addresses} to {LONGS}")
    room = code.value(f"add i64 {code.load('i64', '%ctx', CONTEXT['shared_bytes'])}, {-width}")
    far = code.value(f"icmp sgt {LONGS} {offsets}, {spread(code, 'i64', room)}")
    rest = code.value(f"and {LONGS} {offsets}, splat (i64 {width - 1})")
    odd = code.value(f"icmp ne {LONGS} {rest}, zeroinitializer")
    wrong = code.value(f"or <{LANES} x i1> {far}, {odd}")
    bad = code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {wrong} to i32')}, %mask")
    _give_up_when(code, code.value(f"icmp ne i32 {bad}, 0"))
    shared = code.value(f"ptrtoint ptr {code.load('ptr', '%ctx', CONTEXT['shared'])} to i64")
    hosts = code.value(f"add {LONGS} {offsets}, {spread(code, 'i64', shared)}")
    code.store(LONGS, hosts, "%ctx", CONTEXT["others"], 64)


def _resolve_global(code: Code, width: int) -> None:
    code.call("ptr", "note.long", ARGUMENTS)
    with code.lanes("%mask") as lane:
        address = first_of(code, "i64", "addresses", lane)
        host = code.call("i64", f"place.global.{width}", f"ptr %ctx, ptr %site, i64 {address}, i32 {LOADED | STORED}")
        _give_up_when(code, code.value(f"icmp eq i64 {host}, 0"))
        code.store("i64", host, code.at(code.at("%ctx", CONTEXT["others"]), lane, "i64"))


def _write_touch(name: str, width: int) -> Code:
    """Notes the request of a generic atomic whose values are not wanted."""
    code = Code(name, "void", ARGUMENTS)
    _, local = _find_near(code, "local_window")
    with code.when(_are_both(code, local, code.value(f"xor i32 {local}, %mask"))):
        # The groups of lanes below are those of two memories.
        code.run("miss", "ptr %ctx")
        code.give()
    _, own = _find_near(code, "shared_window")
    _count_both(code, own, width)
    code.run(f"touch.generic.{width}", ARGUMENTS)
    code.give()
    return code


def _count_both(code: Code, own: str, width: int) -> None:
    """Counts the groups of lanes of which some are in shared memory (`own`), and others are not."""
    size = min(LANES, PASS_BYTES // width)
    others = code.value(f"xor i32 {own}, %mask")
    with code.when(_are_both(code, own, others)):
        for start in range(0, LANES, size):
            lanes = ((1 << size) - 1) << start
            some = [code.value(f"icmp ne i32 {code.value(f'and i32 {each}, {lanes}')}, 0") for each in (own, others)]
            amount = code.value(f"zext i1 {code.value(f'and i1 {some[0]}, {some[1]}')} to i64")
            code.bump("i64", "%site", amount, SITE["both"])


def _find_near(code: Code, field: str) -> tuple[str, str]:
    """Each lane's distance from where a window of addresses begins, and the active lanes that are in it."""
    addresses = code.load(LONGS, "%ctx", CONTEXT["addresses"], 64)
    window = spread(code, "i64", code.load("i64", "%ctx", CONTEXT[field]))
    offsets = code.value(f"sub {LONGS} {addresses}, {window}")
    near = code.value(f"icmp ult {LONGS} {offsets}, splat (i64 {WINDOW_BYTES})")
    return offsets, code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {near} to i32')}, %mask")


def _are_both(code: Code, own: str, others: str) -> str:
    """Whether neither of two masks is empty, i1."""
    some = [code.value(f"icmp ne i32 {each}, 0") for each in (own, others)]
    return code.value(f"and i1 {some[0]}, {some[1]}")


def _resolve_generic(code: Code, width: int, *, inside: bool) -> None:
    """Each lane in its space; with `inside` all must be in shared memory, else the reference engine takes over."""
    offsets, own = _find_near(code, "shared_window")
    others = code.value(f"xor i32 {own}, %mask")
    if inside:
        with code.when(code.value(f"icmp ne i32 {others}, 0")):
            code.run("miss", "ptr %ctx")
            code.give(0)
    else:
        with code.when(code.value(f"icmp eq i32 {own}, 0")):
            code.give(code.call("i32", f"resolve.global.{width}", ARGUMENTS))
    whole = code.load(LONGS, "%ctx", CONTEXT["addresses"], 64)
    short = code.value(f"trunc {LONGS} {offsets} to {VECTOR}")
    code.store(VECTOR, short, "%ctx", CONTEXT["addresses"], 64)
    site = code.at("%site", SITE_BYTES)
    found = code.call("i32", f"resolve.shared.{width}", f"ptr %ctx, ptr {site}, i32 {own}")
    with code.when(code.value(f"icmp eq i32 {found}, 0")):
        code.give(0)
    if inside:
        return
    with code.when(code.value(f"icmp ne i32 {others}, 0")):
        _count_both(code, own, width)
        code.store(LONGS, whole, "%ctx", CONTEXT["addresses"], 64)
        rest = code.call("i32", f"resolve.global.{width}", f"ptr %ctx, ptr %site, i32 {others}")
        with code.when(code.value(f"icmp eq i32 {rest}, 0")):
            code.give(0)


def _write_fold(name: str, operation: str, width: int) -> Code:
    """Updates memory lane after lane; `data` holds operands first, and what each lane saw afterwards."""
    code = Code(name, "void", "ptr %ctx, i32 %mask")
    kind = f"i{8 * width}"
    rows = [code.at("%ctx", CONTEXT["data"] + WORD_ROW * word) for word in range(width // 4)]
    with code.lanes("%mask") as lane:
        cells = [code.at(row, lane, "i32") for row in rows]
        words = [code.load("i32", cell) for cell in cells]
        new = words[0]
        if len(words) > 1:
            low, high = (code.value(f"zext i32 {word} to i64") for word in words)
            new = code.value(f"or i64 {code.value(f'shl i64 {high}, 32')}, {low}")
        host = code.value(f"inttoptr i64 {first_of(code, 'i64', 'others', lane)} to ptr")
        old = code.load(kind, host)
        if operation == "exch":
            code.store(kind, new, host)
        else:
            code.store(kind, code.value(_FOLDS[operation].format(kind=kind, old=old, new=new)), host)
        if len(words) == 1:
            code.store("i32", old, cells[0])
        else:
            code.store("i32", code.value(f"trunc i64 {old} to i32"), cells[0])
            code.store("i32", code.value(f"trunc i64 {code.value(f'lshr i64 {old}, 32')} to i32"), cells[1])
    code.give()
    return code


def _write_leaders() -> Code:
    """The lowest of the pending lanes at each address of `others`."""
    code = Code("leaders", "i32", "ptr %ctx, i32 %pending")
    hosts = code.load(LONGS, "%ctx", CONTEXT["others"], 64)
    rest, found = code.variable("i32", "%pending"), code.variable("i32", 0)
    with code.loop() as behind:
        bits = code.load("i32", rest)
        code.leave(behind, code.value(f"icmp eq i32 {bits}, 0"))
        lowest = code.value(f"and i32 {bits}, {code.value(f'sub i32 0, {bits}')}")
        lane = code.value(f"zext i32 {code.value(f'call i32 @llvm.cttz.i32(i32 {bits}, i1 true)')} to i64")
        host = first_of(code, "i64", "others", lane)
        same = code.value(f"icmp eq {LONGS} {hosts}, {spread(code, 'i64', host)}")
        equal = code.value(f"bitcast <{LANES} x i1> {same} to i32")
        code.store("i32", code.value(f"or i32 {code.load('i32', found)}, {lowest}"), found)
        code.store("i32", code.value(f"and i32 {bits}, {code.value(f'xor i32 {equal}, -1')}"), rest)
    code.give(code.load("i32", found))
    return code


def _write_winners(name: str, width: int) -> Code:
    """The lowest of the pending lanes in each bank of shared memory, where `others` says that they are.

    Banks are 32 of 4 bytes for a warp, 16 of 8 for each half warp.
    """
    code = Code(name, "i32", "ptr %ctx, i32 %pending")
    banks = 128 // width
    shared = code.value(f"ptrtoint ptr {code.load('ptr', '%ctx', CONTEXT['shared'])} to i64")
    taken, found = code.variable("i32", 0), code.variable("i32", 0)
    with code.lanes("%pending") as lane:
        offset = code.value(f"sub i64 {first_of(code, 'i64', 'others', lane)}, {shared}")
        bank = code.value(f"and i64 {code.value(f'udiv i64 {offset}, {width}')}, {banks - 1}")
        part = code.value(f"and i64 {lane}, {LANES - banks}")
        place = code.value(f"trunc i64 {code.value(f'or i64 {bank}, {part}')} to i32")
        bit, before = code.value(f"shl i32 1, {place}"), code.load("i32", taken)
        code.store("i32", code.value(f"or i32 {before}, {bit}"), taken)
        free = code.value(f"icmp eq i32 {code.value(f'and i32 {before}, {bit}')}, 0")
        with code.when(free):
            own = code.value(f"shl i32 1, {code.value(f'trunc i64 {lane} to i32')}")
            code.store("i32", code.value(f"or i32 {code.load('i32', found)}, {own}"), found)
    code.give(code.load("i32", found))
    return code


def _write_copy(name: str, width: int) -> Code:
    """cp.async, done at once: `addresses` are the sources, `others` the destinations, `sizes` what is read of each."""
    code = Code(name, "void", f"{ARGUMENTS}, i32 %issued")
    with code.when(code.value("icmp eq i32 %mask, 0")):
        code.give()
    code.call("ptr", "note.copy", f"{ARGUMENTS}, i32 %issued")
    shared = code.load("ptr", "%ctx", CONTEXT["shared"])
    room = code.value(f"add i64 {code.load('i64', '%ctx', CONTEXT['shared_bytes'])}, {-width}")
    block, touches = f"<{width // 4} x i32>", name.startswith("copy_touch")
    with code.lanes("%mask") as lane:
        target = code.value(f"zext i32 {first_of(code, 'i32', 'others', lane)} to i64")
        size = first_of(code, "i32", "sizes", lane)
        far = code.value(f"icmp sgt i64 {target}, {room}")
        odd = code.value(f"icmp ne i64 {code.value(f'and i64 {target}, {width - 1}')}, 0")
        wrong = code.value(f"or i1 {far}, {odd}")
        _give_up_when(code, wrong)
        content = code.variable(block, "zeroinitializer")
        code.store(block, "zeroinitializer", content)
        with code.when(code.value(f"icmp ne i32 {size}, 0")):
            source = first_of(code, "i64", "addresses", lane)
            flag = 0 if touches else LOADED
            host = code.call("i64", f"place.global.{width}", f"ptr %ctx, ptr %site, i64 {source}, i32 {flag}")
            _give_up_when(code, code.value(f"icmp eq i64 {host}, 0"))
            if not touches:
                # All of it is read, and what lies behind the size is made zero.
                whole = code.load(f"i{8 * width}", code.value(f"inttoptr i64 {host} to ptr"), align=4)
                kept = code.value(f"call i32 @llvm.umin.i32(i32 {size}, i32 {width})")
                left = code.value(f"zext i32 {code.value(f'sub i32 {8 * width}, {_in_bits(code, kept)}')} to i128")
                mask = code.value(f"lshr i128 {(1 << 8 * width) - 1}, {left}")
                narrow = mask if width == _MOST_BYTES else code.value(f"trunc i128 {mask} to i{8 * width}")
                code.store(f"i{8 * width}", code.value(f"and i{8 * width} {whole}, {narrow}"), content, 0, 4)
        if not touches:
            code.store(block, code.load(block, content), code.at(shared, target), align=4)
    code.give()
    return code


def _in_bits(code: Code, size: str) -> str:
    return code.value(f"shl i32 {size}, 3")


def _write_matrix(name: str, operation: str, matrices: int) -> Code:
    """ldmatrix, stmatrix: lane l has bytes 4 (l mod 4) and on of row l / 4, whose address lane 8 m + l / 4 gives."""
    code = Code(name, "void", ARGUMENTS)
    with code.when(code.value("icmp eq i32 %mask, 0")):
        code.give()
    code.call("ptr", "note.word", ARGUMENTS)
    addresses = code.load(VECTOR, "%ctx", CONTEXT["addresses"], 64)
    inside = booleans(code, "%mask")
    room = code.value(f"add i64 {code.load('i64', '%ctx', CONTEXT['shared_bytes'])}, -4")
    shared = code.value(f"ptrtoint ptr {code.load('ptr', '%ctx', CONTEXT['shared'])} to i64")
    start, limit = spread(code, "i64", shared), spread(code, "i64", room)
    steps = "<" + ", ".join(f"i32 {4 * (lane % 4)}" for lane in range(LANES)) + ">"
    for matrix in range(matrices):
        holders = ", ".join(f"i32 {8 * matrix + lane // 4}" for lane in range(LANES))
        rows = code.value(f"shufflevector {VECTOR} {addresses}, {VECTOR} poison, {VECTOR} <{holders}>")
        offsets = code.value(f"zext {VECTOR} {code.value(f'add {VECTOR} {rows}, {steps}')} to {LONGS}")
        far = code.value(f"icmp sgt {LONGS} {offsets}, {limit}")
        odd = code.value(f"icmp ne {LONGS} {code.value(f'and {LONGS} {offsets}, splat (i64 3)')}, zeroinitializer")
        wrong = code.value(f"or <{LANES} x i1> {far}, {odd}")
        bad = code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {wrong} to i32')}, %mask")
        _give_up_when(code, code.value(f"icmp ne i32 {bad}, 0"))
        pointers = code.value(f"inttoptr {LONGS} {code.value(f'add {LONGS} {offsets}, {start}')} to {POINTERS}")
        row = code.at("%ctx", CONTEXT["data"] + WORD_ROW * matrix)
        active = f"<{LANES} x i1> {inside}"
        if operation == "touch":
            continue
        if operation == "load":
            value = code.value(f"{GATHER}({POINTERS} {pointers}, i32 4, {active}, {VECTOR} zeroinitializer)")
            code.store(VECTOR, value, row)
        else:
            value = code.load(VECTOR, row)
            code.do(f"{SCATTER}({VECTOR} {value}, {POINTERS} {pointers}, i32 4, {active})")
    code.give()
    return code
