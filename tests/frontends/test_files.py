"""Turns names of files into front ends, cubin files into compilations, and other binaries into errors that help."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sectorwise.errors import ArgumentError
from sectorwise.frontends.base import CompileRequest, Frontend
from sectorwise.frontends.choose import choose_frontend, list_frontends
from sectorwise.frontends.cubin import CUBIN

MEASURED = Path(__file__).parents[1] / "measured" / "h200"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a.cu", "cuda"),
        ("b.cuh", "cuda"),
        ("c.sm_90.cubin", "cubin"),
        ("e.ptx", "ptx"),
        ("k.py", "python"),
        ("k.py::scale", "python"),
        ("f.so", "library"),
        ("libg.so.2", "library"),
        ("h.whl", "library"),
        ("dir.cu/d.cubin", "cubin"),
    ],
)
def test_names_choose(file: str, name: str) -> None:
    assert choose_frontend(Path(file)).name == name


@pytest.mark.parametrize("file", ["a.txt", "a", "a.dylib", "a.CUBIN"])
def test_other_names_are_refused(file: str) -> None:
    with pytest.raises(ArgumentError, match=r"reads CUDA C\+\+ \(\.cu, \.cuh\), PTX \(\.ptx\), cubins \(\.cubin\)"):
        choose_frontend(Path(file))


def test_front_ends_keep_the_agreement() -> None:
    agreed: tuple[Frontend, ...] = tuple(list_frontends())
    assert [frontend.name for frontend in agreed] == ["cubin", "cuda", "ptx", "python", "library", "report"]


def test_cubin_is_taken_as_it_is() -> None:
    path = MEASURED / "generic.sm_90.cubin"
    made = CUBIN.compile(path, CompileRequest("sm_90"))
    assert made.cubin == path.read_bytes()
    assert made.target is None
    assert made.source_text is None


def test_compile_options_do_not_fit_a_cubin() -> None:
    with pytest.raises(ArgumentError, match="compiled already"):
        CUBIN.compile(MEASURED / "generic.sm_90.cubin", CompileRequest("sm_90", macros=("N=1",)))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no file"):
        CUBIN.compile(tmp_path / "none.cubin", CompileRequest("sm_90"))
    with pytest.raises(ArgumentError, match="cannot be read"):
        CUBIN.compile(tmp_path, CompileRequest("sm_90"))


def test_other_binaries_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.cubin"
    path.write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0) + bytes(64))
    with pytest.raises(
        ArgumentError, match=r"is no cubin: it is a fat binary, which is read if its name ends in \.fatbin"
    ):
        CUBIN.compile(path, CompileRequest("sm_90"))
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, 62) + bytes(64))
    with pytest.raises(
        ArgumentError, match=r"is no cubin: it is an ELF file for the host, which is read if its name ends in \.so"
    ):
        CUBIN.compile(path, CompileRequest("sm_90"))
