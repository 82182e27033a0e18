"""Turns the picture of one warp into text: lanes to sectors of 32 bytes, or words to the 32 banks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sectorwise.findings import Picture, Scene
from sectorwise.report.page import Page, Role, paint, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SECTOR_BYTES: Final = 32
_WORD_BYTES: Final = 4
_BANKS: Final = 32
_LANES: Final = 32
_MOST_ROWS: Final = 6
"""Sectors drawn before the rest is summed up."""

_MOST_BANKS: Final = 3


def draw_picture(picture: Picture, page: Page) -> Iterator[str]:
    """Lines that show where the lanes of a warp go."""
    match picture.scene:
        case Scene.SECTORS:
            return _draw_sectors(picture, page)
        case Scene.BANKS:
            return _draw_banks(picture, page)


def _draw_sectors(picture: Picture, page: Page) -> Iterator[str]:
    """A row for each sector: its eight words, those that are used filled, and the lanes that use them."""
    sectors: dict[int, list[int]] = {}
    for lane, place in enumerate(picture.lanes):
        if place is not None:
            sectors.setdefault(place // _SECTOR_BYTES, []).append(lane)
    rows = sorted(sectors)
    width = len(f"{rows[-1] * _SECTOR_BYTES:,}") if rows else 0
    shown = rows if len(rows) <= _MOST_ROWS else rows[: _MOST_ROWS - 2]
    for sector in shown:
        yield _draw_sector(picture, sector, sectors[sector], width, page)
    if len(rows) > len(shown):
        yield paint(page, Role.QUIET, tidy(page, f"{'…':>{width + 1}} {len(rows) - len(shown) - 1} more sectors"))
        yield _draw_sector(picture, rows[-1], sectors[rows[-1]], width, page)


def _draw_sector(picture: Picture, sector: int, lanes: list[int], width: int, page: Page) -> str:
    used = set()
    for lane in lanes:
        place = picture.lanes[lane]
        if place is not None:
            first = place % _SECTOR_BYTES
            used |= {byte // _WORD_BYTES for byte in range(first, min(first + picture.width_bytes, _SECTOR_BYTES))}
    words = "".join(tidy(page, "#" if word in used else "·") for word in range(_SECTOR_BYTES // _WORD_BYTES))
    return f"+{sector * _SECTOR_BYTES:<{width},} [{words}] {_name_lanes(lanes)}"


def _draw_banks(picture: Picture, page: Page) -> Iterator[str]:
    """The banks of the worst pass as a strip, each with the number of words that are wanted of it."""
    first, words = _find_worst_pass(picture)
    in_bank: dict[int, set[int]] = {}
    for _, word in words:
        in_bank.setdefault(word % _BANKS, set()).add(word)
    strip = "".join(_write_count(len(in_bank.get(bank, ())), page) for bank in range(_BANKS))
    together = f"lanes {first}-{first + picture.lanes_per_pass - 1}"
    yield paint(page, Role.QUIET, "bank 0       8       16      24")
    yield f"     {strip}  words wanted by {together}"
    deepest = sorted(in_bank, key=lambda bank: (-len(in_bank[bank]), bank))
    for bank in deepest[:_MOST_BANKS]:
        number = len(in_bank[bank])
        if number > 1:
            lanes = sorted({lane for lane, word in words if word % _BANKS == bank})
            yield f"     bank {bank}: {number} words, one by one, for {_name_lanes(lanes)}"
    more = sum(len(in_bank[bank]) == len(in_bank[deepest[0]]) for bank in deepest) - _MOST_BANKS if deepest else 0
    if more > 0 and len(in_bank[deepest[0]]) > 1:
        yield paint(page, Role.QUIET, f"     and {more} more bank{'s' if more != 1 else ''} with as many")


def _find_worst_pass(picture: Picture) -> tuple[int, list[tuple[int, int]]]:
    """The first lane of the group with the fullest bank, and its (lane, word) pairs."""
    words_a_lane = max(1, picture.width_bytes // _WORD_BYTES)
    best: tuple[int, int, list[tuple[int, int]]] = (-1, 0, [])
    for first in range(0, _LANES, picture.lanes_per_pass):
        pairs = [
            (lane, place // _WORD_BYTES + word)
            for lane, place in enumerate(picture.lanes[first : first + picture.lanes_per_pass], first)
            if place is not None
            for word in range(words_a_lane)
        ]
        depth = max(Counter(word % _BANKS for word in {word for _, word in pairs}).values(), default=0)
        if depth > best[0]:
            best = (depth, first, pairs)
    return best[1], best[2]


def _write_count(number: int, page: Page) -> str:
    """One column: a dot for none, a digit, `+` for more than nine."""
    return tidy(page, "·") if number == 0 else str(number) if number < 10 else "+"


def _name_lanes(lanes: Iterable[int]) -> str:
    """`lane 3`, `lanes 0-7, 16`."""
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and lane == runs[-1][1] + 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    shown = ", ".join(parts) if len(parts) <= 6 else ", ".join(parts[:4]) + f", ... {parts[-1]}"
    return f"lane{'s' if len(parts) > 1 or '-' in shown else ''} {shown}"
