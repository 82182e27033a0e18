"""Turns divergence into routines over a warp's groups: who runs next, who parts, who waits for whom.

The rules are those of `machine.convergence` and `machine.scheduler`: of the groups that can run, the one at the lowest
place does; groups meet only where a convergence instruction says so.
"""

from __future__ import annotations

from sectorwise.machine.native.aside_code import write_aside_routine
from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import (
    CONTEXT,
    GROUP,
    MEETS,
    NOWHERE,
    RUNS,
    TRIES,
    WARP,
)
from sectorwise.machine.native.releases import count_groups, current_group, group_at, write_pass, write_release
from sectorwise.machine.native.votes import write_vote_routine
from sectorwise.machine.scheduler import QUANTUM


def write_group_routine(name: str) -> str:
    """The routine of this name."""
    match name:
        case "choose":
            return _write_choose().text()
        case "lowest":
            return _write_lowest().text()
        case "remove":
            return _write_remove().text()
        case "append":
            return _write_append().text()
        case "stay":
            return _write_stay().text()
        case "split":
            return _write_split().text()
        case "leave":
            return _write_leave().text()
        case "park":
            return _write_park().text()
        case "meet":
            return _write_meet().text()
        case "break":
            return _write_break().text()
        case "release":
            return write_release().text()
        case "pass":
            return write_pass().text()
        case "wake":
            return _write_wake().text()
        case "aside" | "retract":
            return write_aside_routine(name)
        case "vote":
            return write_vote_routine()
        case _:
            raise AssertionError(name)


def _write_choose() -> Code:
    """Makes the group at the lowest place the one that runs; gives its place, -1 if none can run."""
    code = Code("choose", "i32", "ptr %ctx")
    warp = code.load("ptr", "%ctx", CONTEXT["warp"])
    with code.when(code.value(f"icmp ne i64 {code.load('i64', '%ctx', CONTEXT['unsettled'])}, 0")):
        code.store("i64", 0, "%ctx", CONTEXT["unsettled"])
        code.run("meet", f"ptr {warp}")
    lowest, second = code.variable("i32", NOWHERE), code.variable("i32", NOWHERE)
    best = code.variable("i64", -1)
    with code.count(count_groups(code, warp)) as number:
        group = group_at(code, warp, number)
        with code.when(code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {RUNS}")):
            place, least = code.load("i32", group, GROUP["pc"]), code.load("i32", lowest)
            below = code.value(f"icmp slt i32 {place}, {least}")
            passed = code.value(f"select i1 {below}, i32 {least}, i32 {place}")
            old = code.load("i32", second)
            code.store("i32", code.value(f"call i32 @llvm.smin.i32(i32 {old}, i32 {passed})"), second)
            code.store("i32", code.value(f"select i1 {below}, i32 {place}, i32 {least}"), lowest)
            before = code.load("i64", best)
            code.store("i64", code.value(f"select i1 {below}, i64 {number}, i64 {before}"), best)
    chosen = code.load("i64", best)
    with code.when(code.value(f"icmp slt i64 {chosen}, 0")):
        code.give(-1)
    code.store("i32", code.value(f"trunc i64 {chosen} to i32"), warp, WARP["current"])
    code.store("i32", code.load("i32", warp, WARP["round"]), group_at(code, warp, chosen), GROUP["round"])
    code.store("i32", code.load("i32", second), "%ctx", CONTEXT["next_pc"])
    code.store("i32", code.load("i32", group_at(code, warp, chosen), GROUP["mask"]), "%ctx", CONTEXT["mask"])
    code.give(code.load("i32", lowest))
    return code


def _write_lowest() -> Code:
    """The lowest place of a warp's groups that can run, which it counts; ends the run where one has waited too long."""
    code = Code("lowest", "i32", "ptr %ctx, ptr %warp, i32 %round")
    code.store("i32", "%round", "%warp", WARP["round"])
    code.run("meet", "ptr %warp")
    lowest = code.variable("i32", NOWHERE)
    with code.count(count_groups(code, "%warp")) as number:
        group = group_at(code, "%warp", number)
        with code.when(code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {RUNS}")):
            code.bump("i32", "%ctx", 1, CONTEXT["running"])
            place, least = code.load("i32", group, GROUP["pc"]), code.load("i32", lowest)
            code.store("i32", code.value(f"call i32 @llvm.smin.i32(i32 {least}, i32 {place})"), lowest)
            waited = code.value(f"sub i32 %round, {code.load('i32', group, GROUP['round'])}")
            with code.when(code.value(f"icmp sgt i32 {waited}, {QUANTUM}")):
                # The reference engine would let it run before those at lower places.
                code.run("miss", "ptr %ctx")
    code.give(code.load("i32", lowest))
    return code


def _write_remove() -> Code:
    """Takes a group out; those behind it move up."""
    code = Code("remove", "void", "ptr %warp, i64 %number")
    last = code.value(f"sub i64 {count_groups(code, '%warp')}, 1")
    code.store("i32", code.value(f"trunc i64 {last} to i32"), "%warp", WARP["count"])
    place = code.variable("i64", "%number")
    with code.loop() as behind:
        number = code.load("i64", place)
        code.leave(behind, code.value(f"icmp sge i64 {number}, {last}"))
        after = code.value(f"add i64 {number}, 1")
        target, source = group_at(code, "%warp", number), group_at(code, "%warp", after)
        code.store("<8 x i32>", code.load("<8 x i32>", source, align=4), target, align=4)
        code.store("i64", after, place)
    code.give()
    return code


def _write_append() -> Code:
    """Adds a group that can run, unless it has no lane."""
    code = Code("append", "void", "ptr %warp, i32 %mask, i32 %pc")
    with code.when(code.value("icmp eq i32 %mask, 0")):
        code.give()
    group = group_at(code, "%warp", count_groups(code, "%warp"))
    code.store("i32", "%mask", group, GROUP["mask"])
    code.store("i32", "%pc", group, GROUP["pc"])
    code.store("i32", RUNS, group, GROUP["state"])
    code.store("i32", code.load("i32", "%warp", WARP["round"]), group, GROUP["round"])
    code.bump("i32", "%warp", 1, WARP["count"])
    code.give()
    return code


def _write_stay() -> Code:
    """The running group gives way; it goes on later from a place."""
    code = Code("stay", "void", "ptr %ctx, i32 %pc")
    warp = code.load("ptr", "%ctx", CONTEXT["warp"])
    code.store("i32", "%pc", group_at(code, warp, current_group(code, warp)), GROUP["pc"])
    code.store("i32", "%pc", "%ctx", CONTEXT["stop_pc"])
    code.give()
    return code


def _write_split() -> Code:
    """The running group parts: some lanes go to one place, the rest to another."""
    code = Code("split", "void", "ptr %ctx, i32 %taken, i32 %there, i32 %rest, i32 %behind")
    warp = code.load("ptr", "%ctx", CONTEXT["warp"])
    code.run("remove", f"ptr {warp}, i64 {current_group(code, warp)}")
    code.run("append", f"ptr {warp}, i32 %taken, i32 %there")
    code.run("append", f"ptr {warp}, i32 %rest, i32 %behind")
    code.give()
    return code


def _unsettle(code: Code) -> None:
    code.store("i64", 1, "%ctx", CONTEXT["unsettled"])


def _write_leave() -> Code:
    """Lanes exit; the rest of the running group goes on behind."""
    code = Code("leave", "void", "ptr %ctx, i32 %taken, i32 %behind")
    warp = code.load("ptr", "%ctx", CONTEXT["warp"])
    current = current_group(code, warp)
    group = group_at(code, warp, current)
    others = code.value("xor i32 %taken, -1")
    code.store("i32", code.value(f"and i32 {code.load('i32', warp, WARP['live'])}, {others}"), warp, WARP["live"])
    rest = code.value(f"and i32 {code.load('i32', group, GROUP['mask'])}, {others}")
    code.store("i32", rest, group, GROUP["mask"])
    code.store("i32", "%behind", group, GROUP["pc"])
    _unsettle(code)
    with code.when(code.value(f"icmp eq i32 {rest}, 0")):
        code.run("remove", f"ptr {warp}, i64 {current}")
    code.give()
    return code


def _write_park() -> Code:
    """Lanes of the running group wait at a place; the others go on behind it."""
    code = Code("park", "void", "ptr %ctx, i32 %taken, i32 %at, i32 %state, i32 %key, i32 %awaited")
    warp = code.load("ptr", "%ctx", CONTEXT["warp"])
    group = group_at(code, warp, current_group(code, warp))
    others = code.value("xor i32 %taken, -1")
    rest = code.value(f"and i32 {code.load('i32', group, GROUP['mask'])}, {others}")
    code.store("i32", "%taken", group, GROUP["mask"])
    code.store("i32", "%at", group, GROUP["pc"])
    code.store("i32", "%state", group, GROUP["state"])
    code.store("i32", "%key", group, GROUP["key"])
    code.store("i32", "%awaited", group, GROUP["awaited"])
    code.run("append", f"ptr {warp}, i32 {rest}, i32 {code.value('add i32 %at, 1')}")
    _unsettle(code)
    code.give()
    return code


def _write_break() -> Code:
    """Takes lanes out of the barrier register whose lanes' copies are at `copies`: nobody waits for them there."""
    code = Code("break", "void", "ptr %ctx, ptr %copies, i32 %leaving, i32 %lane, i32 %key")
    with code.when(code.value("icmp eq i32 %leaving, 0")):
        code.give()
    warp = code.load("ptr", "%ctx", CONTEXT["warp"])
    members = code.load("i32", code.at("%copies", code.value("zext i32 %lane to i64"), "i32"))
    others = code.value("xor i32 %leaving, -1")
    with code.lanes(members) as lane:
        copy = code.at("%copies", lane, "i32")
        code.store("i32", code.value(f"and i32 {code.load('i32', copy)}, {others}"), copy)
    with code.count(count_groups(code, warp)) as number:
        group = group_at(code, warp, number)
        waits = code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {MEETS}")
        here = code.value(f"icmp eq i32 {code.load('i32', group, GROUP['key'])}, %key")
        common = code.value(f"and i32 {code.load('i32', group, GROUP['mask'])}, {members}")
        some = code.value(f"icmp ne i32 {common}, 0")
        with code.when(code.value(f"and i1 {code.value(f'and i1 {waits}, {here}')}, {some}")):
            left = code.value(f"and i32 {code.load('i32', group, GROUP['awaited'])}, {others}")
            code.store("i32", left, group, GROUP["awaited"])
    _unsettle(code)
    code.give()
    return code


def _write_wake() -> Code:
    """Lets groups try again that wait for the phase of a barrier to end."""
    code = Code("wake", "void", "ptr %warp")
    with code.count(count_groups(code, "%warp")) as number:
        group = group_at(code, "%warp", number)
        with code.when(code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {TRIES}")):
            code.store("i32", RUNS, group, GROUP["state"])
    code.give()
    return code


def _waits_so(code: Code, live: str, group: str, key: str, awaited: str) -> str:
    """Whether a group waits at this barrier register for these lanes, i1."""
    meets = code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {MEETS}")
    here = code.value(f"icmp eq i32 {code.load('i32', group, GROUP['key'])}, {key}")
    own = code.value(f"and i32 {code.load('i32', group, GROUP['awaited'])}, {live}")
    same = code.value(f"icmp eq i32 {own}, {awaited}")
    return code.value(f"and i1 {code.value(f'and i1 {meets}, {here}')}, {same}")


def _write_meet() -> Code:
    """Lets go of groups whose awaited lanes have all come: those at one place go on as one, behind it."""
    code = Code("meet", "void", "ptr %warp")
    live = code.load("i32", "%warp", WARP["live"])
    place = code.variable("i64", 0)
    arrived = code.variable("i32", 0)
    with code.loop() as behind:
        number = code.load("i64", place)
        code.leave(behind, code.value(f"icmp sge i64 {number}, {count_groups(code, '%warp')}"))
        group = group_at(code, "%warp", number)
        code.store("i64", code.value(f"add i64 {number}, 1"), place)
        with code.when(code.value(f"icmp eq i32 {code.load('i32', group, GROUP['state'])}, {MEETS}")):
            key = code.load("i32", group, GROUP["key"])
            awaited = code.value(f"and i32 {code.load('i32', group, GROUP['awaited'])}, {live}")
            code.store("i32", 0, arrived)
            with code.count(count_groups(code, "%warp")) as other:
                second = group_at(code, "%warp", other)
                with code.when(_waits_so(code, live, second, key, awaited)):
                    mask = code.load("i32", second, GROUP["mask"])
                    code.store("i32", code.value(f"or i32 {code.load('i32', arrived)}, {mask}"), arrived)
            absent = code.value(f"xor i32 {code.load('i32', arrived)}, -1")
            missing = code.value(f"and i32 {awaited}, {absent}")
            with code.when(code.value(f"icmp eq i32 {missing}, 0")):
                _let_go(code, live, key, awaited)
                _join(code, live, number, key)
                code.store("i64", 0, place)
    code.give()
    return code


def _let_go(code: Code, live: str, key: str, awaited: str) -> None:
    """Marks all groups of a wait as waiting for nobody: those at other places are joined in their turn."""
    with code.count(count_groups(code, "%warp")) as other:
        second = group_at(code, "%warp", other)
        with code.when(_waits_so(code, live, second, key, awaited)):
            code.store("i32", 0, second, GROUP["awaited"])


def _join(code: Code, live: str, number: str, key: str) -> None:
    """Joins the group with all that were let go at its place, as one group that runs, at the end of the list."""
    at = code.load("i32", group_at(code, "%warp", number), GROUP["pc"])
    joined = code.variable("i32", 0)
    other = code.variable("i64", 0)
    code.store("i32", 0, joined)
    code.store("i64", count_groups(code, "%warp"), other)
    with code.loop() as behind:
        last = code.value(f"sub i64 {code.load('i64', other)}, 1")
        code.leave(behind, code.value(f"icmp slt i64 {last}, {number}"))
        code.store("i64", last, other)
        second = group_at(code, "%warp", last)
        here = code.value(f"icmp eq i32 {code.load('i32', second, GROUP['pc'])}, {at}")
        with code.when(code.value(f"and i1 {here}, {_waits_so(code, live, second, key, '0')}")):
            mask = code.load("i32", second, GROUP["mask"])
            code.store("i32", code.value(f"or i32 {code.load('i32', joined)}, {mask}"), joined)
            code.run("remove", f"ptr %warp, i64 {last}")
    code.run("append", f"ptr %warp, i32 {code.load('i32', joined)}, i32 {code.value(f'add i32 {at}, 1')}")
