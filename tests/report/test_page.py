from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.report.figures import write_bytes, write_percent, write_ratio
from sectorwise.report.page import Page, Role, clip, fold, measure, paint, tidy, wrap


@given(text=st.text(), columns=st.integers(min_value=1, max_value=120), unicode=st.booleans())
def test_clipped_text_fits_and_stays_on_its_line(text: str, columns: int, *, unicode: bool) -> None:
    shown = clip(Page(unicode=unicode), text, columns)
    assert measure(shown) <= columns
    assert shown.isprintable() or shown == ""
    assert unicode or shown.isascii()


def test_clip_marks_what_it_cut() -> None:
    assert clip(Page(), "abcdef", 4) == "abc…"
    assert clip(Page(unicode=False), "abcdef", 4) == "abc~"
    assert clip(Page(), "abcd", 4) == "abcd"


def test_wide_characters_count_twice() -> None:
    assert measure("行列") == 4
    assert clip(Page(), "行列行列", 5) == "行列…"


@pytest.mark.parametrize("value", ["972 ns", "1.03 us", "12 %", "4 KiB", "4.26 TB/s", "96 B"])
def test_a_number_stays_with_its_unit(value: str) -> None:
    for width in range(40, 60):
        lines = wrap(Page(width=width), f"the difference takes about {value} of all that there is", 4)
        assert any(value in line for line in lines)
        assert max(map(len, lines)) <= width
        assert any(value in line for line in fold(Page(width=width), f"  the difference takes about {value} or so"))


def test_words_that_begin_like_a_unit_are_no_units() -> None:
    assert wrap(Page(width=40), f"{'x' * 30} 8 blocks", 0) == [f"{'x' * 30} 8 blocks"]
    assert wrap(Page(width=40), f"{'x' * 38} 8 blocks", 0) == [f"{'x' * 38} 8", "  blocks"]


def test_tabs_become_spaces_and_controls_question_marks() -> None:
    assert tidy(Page(), "a\tb\x1b[2Jc\r") == "a   b?[2Jc?"


def test_paint_needs_colour_and_something_to_paint() -> None:
    assert paint(Page(color=True), Role.BAD, "x") == "\x1b[31mx\x1b[0m"
    assert paint(Page(color=True), Role.BAD, "  ") == "  "
    assert paint(Page(), Role.BAD, "x") == "x"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "-"),
        (4.0, "4.0"),
        (32.0, "32.0"),
        (4.03, "4.03"),
        (3.999, "4.0"),
        (16.5, "16.5"),
        (0.25, "0.25"),
        (0.999, "1.0"),
    ],
)
def test_ratios(value: float | None, written: str) -> None:
    assert write_ratio(value) == written


@pytest.mark.parametrize(
    ("value", "written"), [(None, "-"), (1.0, "100 %"), (0.9999, "99 %"), (0.125, "12 %"), (1 / 3, "33 %")]
)
def test_only_all_of_it_is_100_percent(value: float | None, written: str) -> None:
    assert write_percent(value) == written


@pytest.mark.parametrize(("count", "written"), [(0, "0 B"), (4096, "4 KiB"), (9600, "9,600 B"), (233472, "228 KiB")])
def test_bytes(count: int, written: str) -> None:
    assert write_bytes(count) == written
