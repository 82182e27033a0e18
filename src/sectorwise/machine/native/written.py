"""Turns stores to shared and local memory into marks on the bytes that they write, and loads into a look at these.

Only launches have marks in which a load of such memory decides what is counted. A byte that is marked is 0xFF in a map
that lies as the memory does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.encounters import UNWRITTEN
from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import CONTEXT, LANES, WORD_ROW
from sectorwise.machine.native.moves import GATHER, LONGS, POINTERS, SCATTER, VECTOR, note_encounter, words_of
from sectorwise.machine.native.requests import booleans, first_of, spread
from sectorwise.machine.unwritten import may_read_unwritten

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.counting.request import Access
    from sectorwise.machine.native.flow import Flow

_ARGUMENTS = "ptr %ctx, ptr %site, i32 %mask"
_LANE_NUMBERS = "<" + ", ".join(f"i64 {4 * lane}" for lane in range(LANES)) + ">"
_MATRIX_ROW_BYTES = 16


def find_tracked(flow: Flow, relevant: frozenset[int] | None) -> frozenset[Space]:
    """The spaces of which a load decides anything: shared and local memory at most."""
    found: set[Space] = set()
    for step in flow.steps() if relevant is not None else ():
        if (
            step.access is not None
            and step.instruction.index in (relevant or ())
            and may_read_unwritten(step.instruction, step.access)
        ):
            found |= {Space.SHARED, Space.LOCAL} if step.access.space is Space.GENERIC else {step.access.space}
    return frozenset(found)


def choose_written_routine(instruction: Instruction, access: Access, tracked: frozenset[Space]) -> str | None:
    """The routine that an access calls before it reads or writes; None where it needs none."""
    if not tracked or access.space not in (*tracked, Space.GENERIC, Space.GLOBAL):
        return None
    place = f"{access.space}.{access.width_bytes}"
    match access.operation:
        case Operation.ASYNC_COPY:
            return f"written.mark.copy.{access.width_bytes}"
        case Operation.MATRIX_STORE:
            return f"written.mark.matrix.{access.matrices}"
        case _ if access.space is Space.GLOBAL:
            return None
        case Operation.MATRIX_LOAD:
            return f"written.check.matrix.{access.matrices}"
        case Operation.LOAD | Operation.ATOMIC if may_read_unwritten(instruction, access):
            return f"written.check.{place}"
        case Operation.STORE:
            return f"written.mark.{place}"
        case Operation.ATOMIC if "EXCH" in access.modifiers:
            return f"written.mark.{place}"
        case _:
            return None


def write_written_routine(name: str) -> str:
    """The routine of this name."""
    code = Code(name, "void", _ARGUMENTS)
    match name.split(".")[1:]:
        case [step, "matrix", matrices]:
            rows = code.value(f"and i32 %mask, {(1 << 8 * int(matrices)) - 1}")
            code.run(f"written.{step}.shared.{_MATRIX_ROW_BYTES}", f"ptr %ctx, ptr %site, i32 {rows}")
        case [step, "generic", width]:
            _split_generic(code, step, width)
        case [step, space, width]:
            offsets, inside = _find_offsets(code, space, int(width))
            (_mark if step == "mark" else _check)(code, _find_places(code, space, offsets), inside, int(width))
        case _:
            raise AssertionError(name)
    code.give()
    return code.text()


def _find_offsets(code: Code, space: str, width: int) -> tuple[str, str]:
    """Byte offsets of all lanes in the memory, i64, and the active ones within it, as a mask."""
    row = "others" if space == "copy" else "addresses"
    offsets = code.value(f"zext {VECTOR} {code.load(VECTOR, '%ctx', CONTEXT[row], 64)} to {LONGS}")
    size = code.load("i64", "%ctx", CONTEXT["local_bytes" if space == "local" else "shared_bytes"])
    if space == "local":
        start = code.load("i64", "%ctx", CONTEXT["local_start"])
        offsets = code.value(f"sub {LONGS} {offsets}, {spread(code, 'i64', start)}")
    room = code.value(f"call i64 @llvm.smax.i64(i64 {code.value(f'add i64 {size}, {1 - width}')}, i64 0)")
    near = code.value(f"icmp ult {LONGS} {offsets}, {spread(code, 'i64', room)}")
    return offsets, code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {near} to i32')}, %mask")


def _find_places(code: Code, space: str, offsets: str) -> tuple[str, str, int]:
    """Host addresses of the marks of each lane's first word, i64; its byte in that word; bytes between words."""
    byte = code.value(f"and {LONGS} {offsets}, splat (i64 3)")
    word = code.value(f"and {LONGS} {offsets}, splat (i64 -4)")
    start = code.load("i64", "%ctx", CONTEXT["local_map" if space == "local" else "shared_map"])
    if space == "local":
        rows = code.value(f"mul {LONGS} {word}, splat (i64 {LANES})")
        word = code.value(f"add {LONGS} {rows}, {_LANE_NUMBERS}")
    return code.value(f"add {LONGS} {word}, {spread(code, 'i64', start)}"), byte, WORD_ROW if space == "local" else 4


def _pointers(code: Code, places: tuple[str, str, int], word: int) -> str:
    first, _, stride = places
    at = code.value(f"add {LONGS} {first}, splat (i64 {stride * word})") if word else first
    return code.value(f"inttoptr {LONGS} {at} to {POINTERS}")


def _mark(code: Code, places: tuple[str, str, int], inside: str, width: int) -> None:
    if width < 4:
        # Bytes of one word may be several lanes': one after the other.
        code.store(LONGS, code.value(f"add {LONGS} {places[0]}, {places[1]}"), "%ctx", CONTEXT["others"], 64)
        with code.lanes(inside) as lane:
            host = code.value(f"inttoptr i64 {first_of(code, 'i64', 'others', lane)} to ptr")
            code.store(f"i{8 * width}", -1, host, align=1)
        return
    active = booleans(code, inside)
    for word in range(words_of(width)):
        pointers = _pointers(code, places, word)
        code.do(f"{SCATTER}({VECTOR} splat (i32 -1), {POINTERS} {pointers}, i32 4, <{LANES} x i1> {active})")


def _check(code: Code, places: tuple[str, str, int], inside: str, width: int) -> None:
    active = booleans(code, inside)
    marks = "splat (i32 -1)"
    for word in range(words_of(width)):
        pointers = _pointers(code, places, word)
        found = code.value(f"{GATHER}({POINTERS} {pointers}, i32 4, <{LANES} x i1> {active}, {VECTOR} splat (i32 -1))")
        marks = code.value(f"and {VECTOR} {marks}, {found}")
    if width < 4:
        bits = code.value(f"trunc {LONGS} {code.value(f'shl {LONGS} {places[1]}, splat (i64 3)')} to {VECTOR}")
        others = code.value(f"shl {VECTOR} splat (i32 {(1 << 8 * width) - 1}), {bits}")
        marks = code.value(f"or {VECTOR} {marks}, {code.value(f'xor {VECTOR} {others}, splat (i32 -1)')}")
    bare = code.value(f"icmp ne {VECTOR} {marks}, splat (i32 -1)")
    some = code.value(f"icmp ne i32 {code.value(f'bitcast <{LANES} x i1> {bare} to i32')}, 0")
    with code.when(some):
        note_encounter(code, UNWRITTEN)


def _split_generic(code: Code, step: str, width: str) -> None:
    """The lanes of each window; what is noted, is noted where the profiler's site is."""
    kept = code.load(LONGS, "%ctx", CONTEXT["addresses"], 64)
    for space in ("shared", "local"):
        size = code.load("i64", "%ctx", CONTEXT[f"{space}_map_bytes"])
        with code.when(code.value(f"icmp ne i64 {size}, 0")):
            window = spread(code, "i64", code.load("i64", "%ctx", CONTEXT[f"{space}_window"]))
            offsets = code.value(f"sub {LONGS} {kept}, {window}")
            near = code.value(f"icmp ult {LONGS} {offsets}, splat (i64 {1 << 24})")
            own = code.value(f"and i32 {code.value(f'bitcast <{LANES} x i1> {near} to i32')}, %mask")
            code.store(VECTOR, code.value(f"trunc {LONGS} {offsets} to {VECTOR}"), "%ctx", CONTEXT["addresses"], 64)
            code.run(f"written.{step}.{space}.{width}", f"ptr %ctx, ptr %site, i32 {own}")
    code.store(LONGS, kept, "%ctx", CONTEXT["addresses"], 64)
