"""Turns a warp's pointer into code that finds its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.native.layout import GROUP_BYTES, WARP

if TYPE_CHECKING:
    from sectorwise.machine.native.code import Code


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
