"""Turns stored entries, damaged ones and folders that cannot be written into bytes or into nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.cache import find_cache_folder, make_key, read_entry, write_entry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_is_written_is_read(folder: Path) -> None:
    assert read_entry("area", "key") is None
    write_entry("area", "key", b"content")
    assert read_entry("area", "key") == b"content"
    assert read_entry("other", "key") is None
    write_entry("area", "key", b"")
    assert read_entry("area", "key") == b""
    assert [path.name for path in (folder / "area").iterdir()] == ["key"]


@pytest.mark.parametrize("position", [0, 31, 32, -1])
def test_damaged_entry_is_no_entry(folder: Path, position: int) -> None:
    write_entry("area", "key", b"some content")
    path = folder / "area" / "key"
    damaged = bytearray(path.read_bytes())
    damaged[position] ^= 1
    path.write_bytes(damaged)
    assert read_entry("area", "key") is None
    write_entry("area", "key", b"some content")
    assert read_entry("area", "key") == b"some content"


@pytest.mark.parametrize("kept_bytes", [0, 10, 32, 40])
def test_cut_entry_is_no_entry(folder: Path, kept_bytes: int) -> None:
    write_entry("area", "key", b"some content")
    path = folder / "area" / "key"
    path.write_bytes(path.read_bytes()[:kept_bytes])
    assert read_entry("area", "key") is None


def test_unwritable_folder_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path / "file"))
    write_entry("area", "key", b"content")
    assert read_entry("area", "key") is None


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", ""])
def test_switched_off(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", word)
    assert find_cache_folder() is None
    write_entry("area", "key", b"content")
    assert read_entry("area", "key") is None


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SECTORWISE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_cache_folder() == tmp_path / "sectorwise"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert find_cache_folder() == tmp_path / "home" / ".cache" / "sectorwise"


def test_writers_at_once_leave_one_whole_entry(folder: Path) -> None:
    contents = [bytes([number]) * 200_000 for number in range(8)]
    threads = [threading.Thread(target=write_entry, args=("area", "key", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_entry("area", "key") in contents
    assert [path.name for path in (folder / "area").iterdir()] == ["key"]


@given(st.lists(st.binary(max_size=6), max_size=5), st.lists(st.binary(max_size=6), max_size=5))
def test_keys_are_equal_only_for_equal_parts(one: list[bytes], other: list[bytes]) -> None:
    assert (make_key(*one) == make_key(*other)) == (one == other)


def test_keys_take_text_as_its_bytes() -> None:
    assert make_key("größe") == make_key("größe".encode())
