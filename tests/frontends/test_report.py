"""The code in a profiler's report is found wherever it lies, whole, and the module of the launched kernel is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.errors import ArgumentError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.report import REPORT, find_cubins
from tests.measured.rows import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

TRANSPOSE = (FOLDER / "transpose.sm_90.cubin").read_bytes()
REDUCTION = (FOLDER / "reduction.sm_90.cubin").read_bytes()
HOST = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + (62).to_bytes(2, "little") + bytes(60)
REQUEST = CompileRequest(target="sm_90", kernels=("k_tr_tile",))


def write_report(folder: Path, *parts: bytes) -> Path:
    path = folder / "some.ncu-rep"
    path.write_bytes(b"NVR\x00" + b"\x12\x34".join(parts) + b"and more")
    return path


def test_cubins_are_found_whole_and_in_their_order() -> None:
    data = b"NVR\x00" + HOST + REDUCTION + b"\x22\x08" + TRANSPOSE + b"\x7fELF\x02\x01"
    assert list(find_cubins(data)) == [REDUCTION, TRANSPOSE]


def test_what_is_cut_off_is_not_taken() -> None:
    assert list(find_cubins(TRANSPOSE[:-1])) == []
    assert list(find_cubins(TRANSPOSE[:40])) == []
    assert list(find_cubins(b"")) == []


def test_the_module_of_the_launched_kernel_is_taken(tmp_path: Path) -> None:
    path = write_report(tmp_path, REDUCTION, TRANSPOSE)
    assert REPORT.accepts(path)
    assert REPORT.compile(path, REQUEST).cubin == TRANSPOSE


def test_a_kernel_that_no_module_has_is_an_error_with_those_there_are(tmp_path: Path) -> None:
    path = write_report(tmp_path, REDUCTION)
    with pytest.raises(ArgumentError, match=r"no module of .* has k_tr_tile; its kernels are k_histogram, k_reduce"):
        REPORT.compile(path, REQUEST)


def test_reports_without_code_and_options_of_compilers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="holds no machine code"):
        REPORT.compile(write_report(tmp_path, b"nothing"), REQUEST)
    with pytest.raises(ArgumentError, match="macros"):
        REPORT.compile(write_report(tmp_path, TRANSPOSE), CompileRequest(target="sm_90", macros=("N=4",)))
    with pytest.raises(ArgumentError, match="there is no file"):
        REPORT.compile(tmp_path / "missing.ncu-rep", REQUEST)
