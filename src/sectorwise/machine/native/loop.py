"""Turns a kernel's `run` into a routine that runs whole blocks: warps in turn, barriers, one block after another."""

from __future__ import annotations

from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import (
    BARRIERS,
    CONTEXT,
    GAVE_UP,
    GROUP,
    NOWHERE,
    OUT_OF_FUEL,
    RUNS,
    VOTE_BYTES,
    WARP,
    WARP_BYTES,
    WORD_ROW,
)
from sectorwise.machine.native.trace import VECTOR_SPECIALS

SLICE = 1 << 20
"""Instructions that a warp runs before the next has its turn: a warp may wait for another in a loop."""

ENTRY = "blocks"


def write_loop(*, in_step: bool = False, tries: bool = False) -> Code:
    """Runs the first `count` of the context's blocks, and says how long each was: the instructions of its warps.

    With `in_step` those of its warps that are at the lowest place run one basic block in turn, then again. With `tries`
    groups that wait for the phase of a barrier to end try again when it is their warp's turn.

    Gives how many have run; where it stopped before the last, `stop` in the context says why.
    """
    code = Code(ENTRY, "i64", "ptr %ctx, i64 %count", attributes="", linkage="")
    with code.count("%count") as place:
        block = code.load("i64", code.at(code.load("ptr", "%ctx", CONTEXT["block_numbers"]), place, "i64"))
        _open_block(code, block)
        if in_step:
            _run_in_step(code, place)
        else:
            _run_block(code, place, tries=tries)
        length = code.variable("i64", 0)
        code.store("i64", 0, length)
        with code.count(_warp_count(code)) as number:
            code.bump("i64", length, code.load("i64", _warp(code, number), WARP["steps"]))
        lengths = code.load("ptr", "%ctx", CONTEXT["block_lengths"])
        code.store("i64", code.load("i64", length), code.at(lengths, place, "i64"))
    code.give("%count")
    return code


def _warp_count(code: Code) -> str:
    return code.load("i64", "%ctx", CONTEXT["warp_count"])


def _warp(code: Code, number: str) -> str:
    warps = code.load("ptr", "%ctx", CONTEXT["warps"])
    return code.at(warps, code.value(f"mul i64 {number}, {WARP_BYTES}"))


def _state(code: Code, number: str) -> str:
    size = code.load("i64", "%ctx", CONTEXT["state_bytes"])
    return code.at(code.load("ptr", "%ctx", CONTEXT["states"]), code.value(f"mul i64 {number}, {size}"))


def _open_block(code: Code, block: str) -> None:
    """Fresh state: the block's place in the grid, zeroed memories, one group a warp at the first instruction."""
    code.store("i64", block, "%ctx", CONTEXT["block_number"])
    grid_x, grid_y = (code.load("i64", "%ctx", CONTEXT[f"grid_{axis}"]) for axis in "xy")
    rows = code.value(f"udiv i64 {block}, {grid_x}")
    places = [f"urem i64 {block}, {grid_x}", f"urem i64 {rows}, {grid_y}", f"udiv i64 {rows}, {grid_y}"]
    for axis, text in enumerate(places):
        code.store("i32", code.value(f"trunc i64 {code.value(text)} to i32"), "%ctx", CONTEXT["block"] + 4 * axis)
    _zero(code, code.load("ptr", "%ctx", CONTEXT["shared"]), code.load("i64", "%ctx", CONTEXT["shared_bytes"]))
    warps = _warp_count(code)
    local = code.value(f"mul i64 {code.load('i64', '%ctx', CONTEXT['local_warp_bytes'])}, {warps}")
    _zero(code, code.load("ptr", "%ctx", CONTEXT["locals"]), local)
    _zero(code, code.load("ptr", "%ctx", CONTEXT["shared_map"]), code.load("i64", "%ctx", CONTEXT["shared_map_bytes"]))
    marks = code.value(f"mul i64 {code.load('i64', '%ctx', CONTEXT['local_map_bytes'])}, {warps}")
    _zero(code, code.load("ptr", "%ctx", CONTEXT["local_maps"]), marks)
    _zero(code, code.at("%ctx", CONTEXT["votes"]), str(VOTE_BYTES * BARRIERS))
    _zero(code, code.at("%ctx", CONTEXT["passed"]), str(4 * BARRIERS))
    masks = code.load("ptr", "%ctx", CONTEXT["full_masks"])
    with code.count(warps) as number:
        warp = _warp(code, number)
        mask = code.load("i32", code.at(masks, number, "i32"))
        code.store("i32", mask, warp, WARP["live"])
        code.store("i32", 1, warp, WARP["count"])
        code.store("i64", 0, warp, WARP["steps"])
        code.store("i32", 0, warp, WARP["vote"])
        code.store("i32", 0, warp, WARP["round"])
        group = code.at(warp, WARP["groups"])
        code.store("i32", mask, group, GROUP["mask"])
        code.store("i32", 0, group, GROUP["pc"])
        code.store("i32", RUNS, group, GROUP["state"])
        code.store("i32", 0, group, GROUP["round"])
        code.run("clear", f"ptr {_state(code, number)}")


def _zero(code: Code, pointer: str, size: str) -> None:
    with code.when(code.value(f"icmp ne i64 {size}, 0")):
        code.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")


def _run_block(code: Code, place: str, *, tries: bool) -> None:
    """Warps in turn until all have exited; where nobody can go on, block barriers are let go."""
    ran, alive = code.variable("i64", 0), code.variable("i32", 0)
    with code.loop() as behind:
        code.store("i64", 0, ran)
        code.store("i32", 0, alive)
        with code.count(_warp_count(code)) as number:
            if tries:
                code.run("wake", f"ptr {_warp(code, number)}")
            used = _run_warp(code, place, number)
            code.bump("i64", ran, used)
            live = code.load("i32", _warp(code, number), WARP["live"])
            code.store("i32", code.value(f"or i32 {code.load('i32', alive)}, {live}"), alive)
        code.leave(behind, code.value(f"icmp eq i32 {code.load('i32', alive)}, 0"))
        released = code.call("i32", "release", "ptr %ctx")
        idle = code.value(f"icmp eq i64 {code.load('i64', ran)}, 0")
        stuck = code.value(f"icmp eq i32 {released}, 0")
        with code.when(code.value(f"and i1 {idle}, {stuck}")):
            code.store("i32", GAVE_UP, "%ctx", CONTEXT["stop"])
            code.give(place)


def _run_in_step(code: Code, place: str) -> None:
    """Those warps that are at the lowest place run one basic block each, until all have exited.

    Where nobody can go on, block barriers are let go. A round is what the reference engine calls a frame, or less: it
    ends where groups part, meet or wait, and at jumps backwards.
    """
    names = ("least", "before", "running", "round", "alive")
    least, before, running, now, alive = (code.variable("i32", 0) for _ in names)
    for variable in (before, running, now):
        code.store("i32", 0, variable)
    with code.loop() as behind:
        code.store("i32", NOWHERE, least)
        code.store("i32", 0, alive)
        code.store("i32", 0, "%ctx", CONTEXT["running"])
        with code.count(_warp_count(code)) as number:
            low = _lowest(code, _warp(code, number), now)
            known = code.load("i32", least)
            code.store("i32", code.value(f"call i32 @llvm.smin.i32(i32 {known}, i32 {low})"), least)
            live = code.load("i32", _warp(code, number), WARP["live"])
            code.store("i32", code.value(f"or i32 {code.load('i32', alive)}, {live}"), alive)
        code.leave(behind, code.value(f"icmp eq i32 {code.load('i32', alive)}, 0"))
        nobody = code.value(f"icmp eq i32 {code.load('i32', least)}, {NOWHERE}")
        with code.when(nobody):
            stuck = code.value(f"icmp eq i32 {code.call('i32', 'release', 'ptr %ctx')}, 0")
            with code.when(stuck):
                code.store("i32", GAVE_UP, "%ctx", CONTEXT["stop"])
                code.give(place)
        with code.when(code.value(f"xor i1 {nobody}, true")):
            _begin_round(code, (least, before, running, now))
            with code.count(_warp_count(code)) as number:
                low = _lowest(code, _warp(code, number), now)
                with code.when(code.value(f"icmp eq i32 {low}, {code.load('i32', least)}")):
                    _run_warp(code, place, number)


def _begin_round(code: Code, variables: tuple[str, str, str, str]) -> None:
    """Counts a round, unless the same groups go on to a higher place."""
    least, before, running, now = variables
    place, count = code.load("i32", least), code.load("i32", "%ctx", CONTEXT["running"])
    back = code.value(f"icmp sle i32 {place}, {code.load('i32', before)}")
    others = code.value(f"icmp ne i32 {count}, {code.load('i32', running)}")
    new = code.value(f"zext i1 {code.value(f'or i1 {back}, {others}')} to i32")
    code.store("i32", place, before)
    code.store("i32", count, running)
    code.bump("i32", now, new)


def _lowest(code: Code, warp: str, now: str) -> str:
    return code.call("i32", "lowest", f"ptr %ctx, ptr {warp}, i32 {code.load('i32', now)}")


def _run_warp(code: Code, place: str, number: str) -> str:
    """Lets a warp run until it waits, or its turn is over; gives how many instructions it ran."""
    warp = _warp(code, number)
    code.store("i64", number, "%ctx", CONTEXT["warp_number"])
    code.store("ptr", warp, "%ctx", CONTEXT["warp"])
    code.store("ptr", _state(code, number), "%ctx", CONTEXT["state"])
    special = code.value(f"mul i64 {number}, {len(VECTOR_SPECIALS) * WORD_ROW}")
    code.store(
        "ptr", code.at(code.load("ptr", "%ctx", CONTEXT["threads_special"]), special), "%ctx", CONTEXT["special"]
    )
    for own, all_of, size in (("local", "locals", "local_warp_bytes"), ("local_map", "local_maps", "local_map_bytes")):
        offset = code.value(f"mul i64 {number}, {code.load('i64', '%ctx', CONTEXT[size])}")
        code.store("ptr", code.at(code.load("ptr", "%ctx", CONTEXT[all_of]), offset), "%ctx", CONTEXT[own])
    code.store("i64", 1, "%ctx", CONTEXT["unsettled"])
    steps, limit = code.load("i64", warp, WARP["steps"]), code.load("i64", "%ctx", CONTEXT["limit"])
    left = code.value(f"sub i64 {limit}, {steps}")
    granted = code.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {SLICE})")
    code.store("i64", granted, "%ctx", CONTEXT["fuel"])
    reason = code.call("i32", "run", "ptr %ctx")
    with code.when(code.value(f"icmp ne i32 {code.load('i32', '%ctx', CONTEXT['stop'])}, 0")):
        code.give(place)
    used = code.value(f"sub i64 {granted}, {code.load('i64', '%ctx', CONTEXT['fuel'])}")
    code.bump("i64", warp, used, WARP["steps"])
    short = code.value(f"icmp slt i64 {granted}, {SLICE}")
    empty = code.value(f"icmp eq i32 {reason}, {OUT_OF_FUEL}")
    with code.when(code.value(f"and i1 {short}, {empty}")):
        code.store("i32", OUT_OF_FUEL, "%ctx", CONTEXT["stop"])
        code.give(place)
    return used
