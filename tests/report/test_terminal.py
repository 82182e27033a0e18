from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sectorwise.machine.execution import Certainty
from sectorwise.report import terminal
from sectorwise.report.page import Page, measure
from tests.report.samples import COPIES, COPYING, FAULTY, SITES, UNKNOWN, make_analysis, make_kernel

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_report_of_all_kinds_of_rows(snapshot: SnapshotAssertion) -> None:
    assert terminal.render(make_analysis(make_kernel(), UNKNOWN, FAULTY)) == snapshot


def test_wide_page_shows_the_instructions(snapshot: SnapshotAssertion) -> None:
    assert terminal.render(make_analysis(), Page(width=132)) == snapshot


def test_bulk_copies_stand_beside_the_accesses_of_their_line(snapshot: SnapshotAssertion) -> None:
    assert terminal.render(make_analysis(COPYING)) == snapshot


def test_a_kernel_may_copy_and_do_nothing_else() -> None:
    shown = terminal.render(make_analysis(replace(make_kernel(sites=()), copies=COPIES[:1])))
    assert re.search(r"^ +! bulk tile load +8K +64 +512\.0 +256\.0 +- +- +50 % exact$", shown, re.MULTILINE)
    assert "no warp issued a memory instruction" not in shown
    assert "bulk       a copy of a whole tile or range" in shown


def test_colours_change_nothing_but_the_colours() -> None:
    analysis = make_analysis(make_kernel(), UNKNOWN, FAULTY)
    coloured = terminal.render(analysis, Page(color=True))
    assert "\x1b[31m" in coloured
    assert ESCAPE.sub("", coloured) == terminal.render(analysis, Page(color=False))


def test_ascii_page_has_nothing_but_ascii() -> None:
    shown = terminal.render(make_analysis(make_kernel(sites=SITES[:1] * 3), FAULTY), Page(unicode=False))
    assert shown.isascii()
    assert "x3" in shown


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    analysis = make_analysis(make_kernel(sites=SITES * 12), UNKNOWN, FAULTY, COPYING)
    lines = terminal.render(analysis, Page(width=width)).splitlines()
    assert max(measure(line) for line in lines) <= width


def test_source_cannot_command_the_terminal() -> None:
    shown = terminal.render(make_analysis())
    assert "\x1b" not in shown
    assert "an escape ?[31m" in terminal.render(make_analysis(), Page(width=132))


def test_missing_source_is_said_and_its_lines_are_still_numbered() -> None:
    shown = terminal.render(make_analysis(source_texts={}))
    assert "sample.cu (source not found: line numbers only)" in shown
    assert re.search(r"^ +7$", shown, re.MULTILINE)


def test_runs_of_equal_sites_are_one_row_with_all_their_requests() -> None:
    shown = terminal.render(make_analysis(make_kernel(sites=SITES[:1] * 5)))
    assert re.search(r"global load +×5 +4 +10,240 +4\.0 +4\.0", shown)  # noqa: RUF001 - the multiplication sign


@pytest.mark.parametrize("executed", [9_999_999, 10_000_000, 51_711_488, 4_294_967_296])
def test_many_requests_do_not_run_into_the_bytes(executed: int) -> None:
    few, many = (
        next(
            line for line in terminal.render(make_analysis(make_kernel(sites=(site,)))).splitlines() if "load " in line
        )
        for site in (SITES[0], replace(SITES[0], executed=executed, sectors=executed * 4, sectors_ideal=executed * 4))
    )
    assert many.split()[:4] == ["global", "load", "4", f"{executed:,}"]
    assert measure(few) == measure(many)


def test_equal_sites_with_others_between_are_one_row() -> None:
    local = replace(SITES[2], location=None)
    global_ = replace(SITES[0], location=None)
    shown = terminal.render(make_analysis(make_kernel(sites=(local, global_, local, global_, local))))
    rows = [line.split()[:4] for line in shown.splitlines() if re.match(r"  [ !] \w+ load ", line)]
    assert rows == [["!", "shared", "load", "×3"], ["global", "load", "×2", "4"]]  # noqa: RUF001


def test_sites_that_differ_in_a_count_stay_apart() -> None:
    other = replace(SITES[0], sectors=16384)
    shown = terminal.render(make_analysis(make_kernel(sites=(SITES[0], other))))
    assert len(re.findall("global load ", shown)) == 2
    assert "50 %" in shown


def test_unknown_counts_are_neither_zero_nor_left_out() -> None:
    shown = terminal.render(make_analysis(UNKNOWN))
    assert re.search(r"\? global atomic +4 +2,048 +\? +\? +\? +\? +\? unknown", shown)
    assert re.search(r"L2 theoretical +unknown sectors +unknown ideal", shown)
    assert "R4, which TEX" in shown


def test_hardware_is_shown_where_it_disagrees_with_the_source_view() -> None:
    assert "hardware says" not in terminal.render(make_analysis())
    other = (*SITES[:2], replace(SITES[2], wavefronts_hardware=60000))
    assert re.search(r"hardware says +62,048 wavefronts", terminal.render(make_analysis(make_kernel(sites=other))))


def test_nothing_unknown_is_said_too() -> None:
    assert "unknown: nothing" in terminal.render(make_analysis())


def test_kernel_without_memory_instructions() -> None:
    shown = terminal.render(make_analysis(make_kernel(sites=())))
    assert "no warp issued a memory instruction" in shown
    assert "efficient" not in shown


def test_faults_of_an_unrolled_line_are_one() -> None:
    (fault,) = FAULTY.faults
    others = [replace(fault, offset=f"0x{0x300 + 16 * k:04x}", lane=k, occurrences=100) for k in range(3)]
    elsewhere = replace(fault, location=None, occurrences=7)
    shown = terminal.render(make_analysis(replace(FAULTY, faults=(fault, *others, elsewhere))))
    assert shown.count("SW901 out of bounds: sample.cu:7") == 1
    assert "lane 5; 1,292 lanes in all, by 4 instructions" in " ".join(shown.split())
    assert "lane 5; 7 lanes in all" in shown


@pytest.mark.parametrize(
    ("certainty", "word", "meaning"),
    [
        (Certainty.SCHEDULE_DEPENDENT, "varies", "depends on the order in which warps run"),
        (Certainty.ASSUMED, "assumed", "depends on values that are taken for granted"),
    ],
)
def test_the_legend_says_what_is_less_than_exact(certainty: Certainty, word: str, meaning: str) -> None:
    line = f"{word:<11}{meaning}"
    assert line not in terminal.render(make_analysis())
    unsure = make_kernel(sites=(replace(SITES[0], certainty=certainty), *SITES[1:]))
    assert line in terminal.render(make_analysis(unsure))


def test_what_is_wrong_comes_before_what_is_slow() -> None:
    shown = terminal.render(make_analysis(FAULTY))
    assert shown.index("  wrong\n") < shown.index("  findings")


def test_fault_names_line_block_lane_and_address() -> None:
    shown = terminal.render(make_analysis(FAULTY))
    assert "SW901 out of bounds: sample.cu:7" in shown
    assert "global store of 4 bytes at 0x7f0000001000: 4096 bytes past the end of argument 1" in " ".join(shown.split())
    assert "first in block (3, 0, 0), warp 1, lane 5; 992 lanes in all" in shown
