"""Turns files in all states into lines, and places into carets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.errors import ArgumentError
from sectorwise.source import make_source, point_at, read_source, shorten_path

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_are_numbered_from_one() -> None:
    source = make_source("a.cu", "first\nsecond\r\nthird\rfourth\n")
    assert source.lines == ("first", "second", "third", "fourth")
    assert source.line(1) == "first"
    assert source.line(4) == "fourth"
    assert source.line(0) is None
    assert source.line(5) is None
    assert make_source("a.cu", "one\n\n").lines == ("one", "")
    assert make_source("a.cu", "").lines == ()


def test_form_feeds_and_other_separators_end_no_line() -> None:
    assert make_source("a.cu", "a\x0cb\x85c\u2028d\n").lines == ("a\x0cb\x85c\u2028d",)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"// plain\n", "// plain\n"),
        ("// größe\n".encode(), "// größe\n"),
        (b"\xef\xbb\xbfint x;\n", "int x;\n"),
        (b"// gr\xf6\xdfe\n", "// größe\n"),
    ],
)
def test_encodings(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "a.cu"
    path.write_bytes(content)
    assert read_source(path, "a.cu").text == text


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"there is no file .*missing\.cu"):
        read_source(tmp_path / "missing.cu")
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory"):
        read_source(tmp_path)


def test_paths_as_people_write_them(tmp_path: Path) -> None:
    assert shorten_path(str(tmp_path / "a" / "b.cu"), tmp_path) == "a/b.cu"
    assert shorten_path("/elsewhere/b.cu", tmp_path) == "/elsewhere/b.cu"


def test_carets() -> None:
    text = "transpose<<<(16, x), (32, 8)>>>(f32[512])"
    assert point_at(text, 17) == f"{text}\n{' ' * 17}^"
    assert point_at(text, 32, 40) == f"{text}\n{' ' * 32}^^^^^^^^"
    assert point_at("one\ntwo words\nthree", 8, 13) == "two words\n    ^^^^^"
    assert point_at("\tx = y;", 1, 2) == "    x = y;\n    ^"
    assert point_at("ends here", 9) == "ends here\n         ^"
    assert point_at("one\ntwo", 1, 7) == "one\n ^^"
    assert point_at("", 0) == "\n^"


@given(st.text(alphabet="ab \t\n", max_size=30), st.integers(-2, 40), st.integers(-2, 40))
def test_carets_stand_in_the_text(text: str, start: int, end: int) -> None:
    line, carets = point_at(text, start, end).split("\n")
    assert line.strip() in text.expandtabs(4)
    assert set(carets) <= {" ", "^"}
    assert carets.count("^") >= 1


def test_a_zero_byte_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.cu"
    path.write_bytes(b"// one\n// t\0wo\n")
    with pytest.raises(ArgumentError, match=r"cut\.cu:2: a byte 0; compilers would stop reading there"):
        read_source(path)
