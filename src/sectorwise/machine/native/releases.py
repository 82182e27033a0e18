"""Turns the block's barriers into routines: who is counted there, and who is let go.

The rules are those of `machine.convergence.release_barriers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import (
    BARRIER,
    BARRIERS,
    CONTEXT,
    GROUP,
    GROUP_BYTES,
    LANES,
    RUNS,
    WARP,
    WARP_BYTES,
)
from sectorwise.machine.native.votes import close_vote

if TYPE_CHECKING:
    from collections.abc import Iterator


def group_at(code: Code, warp: str, number: str) -> str:
    """Pointer to a group of a warp."""
    offset = code.value(f"add i64 {code.value(f'mul i64 {number}, {GROUP_BYTES}')}, {WARP['groups']}")
    return code.at(warp, offset)


def count_groups(code: Code, warp: str) -> str:
    """How many groups a warp has, i64."""
    return code.value(f"zext i32 {code.load('i32', warp, WARP['count'])} to i64")


def current_group(code: Code, warp: str) -> str:
    """The number of the group that runs, i64."""
    return code.value(f"zext i32 {code.load('i32', warp, WARP['current'])} to i64")


def _add_lanes(code: Code, total: str, mask: str) -> None:
    lanes = code.value(f"call i32 @llvm.ctpop.i32(i32 {mask})")
    code.store("i32", code.value(f"add i32 {code.load('i32', total)}, {lanes}"), total)


def _waiting(code: Code, warps: str, number: str, key: str) -> Iterator[str]:
    """What follows happens for each group of a warp that waits at a block barrier."""
    warp = code.at(warps, code.value(f"mul i64 {number}, {WARP_BYTES}"))
    with code.count(count_groups(code, warp)) as place:
        group = group_at(code, warp, place)
        waits = code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {BARRIER}")
        here = code.value(f"icmp eq i32 {code.load('i32', group, GROUP['key'])}, {key}")
        with code.when(code.value(f"and i1 {waits}, {here}")):
            yield group


def _passed(code: Code, barrier: str) -> str:
    """Where the threads are counted that have passed a barrier (i64) without waiting."""
    return code.at(code.at("%ctx", CONTEXT["passed"]), barrier, "i32")


def _count_present(code: Code, warps: str, key: str, needed: str) -> tuple[str, str]:
    """Whether any lane waits at a barrier, and whether all have come that are awaited, both i1."""
    present, whole, counted, here = (code.variable("i32", 0) for _ in range(4))
    for variable in (present, whole, counted):
        code.store("i32", 0, variable)
    with code.count(code.load("i64", "%ctx", CONTEXT["warp_count"])) as number:
        code.store("i32", 0, here)
        for group in _waiting(code, warps, number, key):
            _add_lanes(code, here, code.load("i32", group, GROUP["mask"]))
            wanted, known = code.load("i32", group, GROUP["awaited"]), code.load("i32", counted)
            code.store("i32", code.value(f"call i32 @llvm.umax.i32(i32 {wanted}, i32 {known})"), counted)
        lanes = code.load("i32", here)
        code.bump("i32", present, lanes)
        live = code.load("i32", code.at(warps, code.value(f"mul i64 {number}, {WARP_BYTES}")), WARP["live"])
        alive = code.value(f"call i32 @llvm.ctpop.i32(i32 {live})")
        all_here = code.value(f"icmp eq i32 {lanes}, {alive}")
        some_here = code.value(f"icmp ne i32 {lanes}, 0")
        counts = code.value(f"and i1 {all_here}, {some_here}")
        code.bump("i32", whole, code.value(f"select i1 {counts}, i32 {LANES}, i32 0"))
    passed = code.load("i32", _passed(code, code.value(f"zext i32 {key} to i64")))
    threads, wanted = code.load("i32", whole), code.load("i32", counted)
    lanes = code.value(f"add i32 {code.load('i32', present)}, {passed}")
    all_came = code.value(f"icmp uge i32 {lanes}, {needed}")
    enough = code.value(f"icmp uge i32 {code.value(f'add i32 {threads}, {passed}')}, {wanted}")
    is_counted = code.value(f"icmp ne i32 {wanted}, 0")
    some = code.value(f"icmp ne i32 {code.load('i32', present)}, 0")
    return some, code.value(f"select i1 {is_counted}, i1 {enough}, i1 {all_came}")


def write_pass() -> Code:
    """Counts a whole warp that passes a barrier without waiting: part of one does not count."""
    code = Code("pass", "void", "ptr %ctx, i32 %barrier, i32 %taken")
    live = code.load("i32", code.load("ptr", "%ctx", CONTEXT["warp"]), WARP["live"])
    whole = code.value(f"icmp eq i32 %taken, {live}")
    place = _passed(code, code.value("zext i32 %barrier to i64"))
    code.bump("i32", place, code.value(f"select i1 {whole}, i32 {LANES}, i32 0"))
    code.give()
    return code


def write_release() -> Code:
    """Lets go of block barriers at which all come that are awaited; gives the number of groups let go.

    Those are all lanes that have not exited, or so many threads, whole warps, where one that waits says how many; who
    has passed without waiting is one of them.
    """
    code = Code("release", "i32", "ptr %ctx")
    warps = code.load("ptr", "%ctx", CONTEXT["warps"])
    total = code.load("i64", "%ctx", CONTEXT["warp_count"])
    needed, released = code.variable("i32", 0), code.variable("i32", 0)
    with code.count(total) as number:
        warp = code.at(warps, code.value(f"mul i64 {number}, {WARP_BYTES}"))
        _add_lanes(code, needed, code.load("i32", warp, WARP["live"]))
    with code.count(BARRIERS) as barrier:
        key = code.value(f"trunc i64 {barrier} to i32")
        some, enough = _count_present(code, warps, key, code.load("i32", needed))
        with code.when(code.value(f"and i1 {some}, {enough}")):
            code.store("i32", 0, _passed(code, barrier))
            voted, result = close_vote(code, barrier)
            with code.count(total) as number:
                warp = code.at(warps, code.value(f"mul i64 {number}, {WARP_BYTES}"))
                for group in _waiting(code, warps, number, key):
                    code.store("i32", RUNS, group, GROUP["state"])
                    code.bump("i32", group, 1, GROUP["pc"])
                    code.bump("i32", released, 1)
                    before = code.load("i32", warp, WARP["vote"])
                    code.store("i32", code.value(f"select i1 {voted}, i32 {result}, i32 {before}"), warp, WARP["vote"])
    code.give(code.load("i32", released))
    return code
