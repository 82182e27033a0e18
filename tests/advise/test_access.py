from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tensor_layouts

import sectorwise as sw
from sectorwise.advise.access import access, access_cpu
from sectorwise.advise.expressions import evaluate
from sectorwise.advise.tables import make_table
from sectorwise.errors import ArgumentError, MissingToolError
from sectorwise.layout.algebra import Layout
from sectorwise.layout.swizzle import Swizzle, SwizzledLayout
from tests.cli.commands import run
from tests.measured.rows import read_rows

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LANE = np.arange(32, dtype=np.int64)[None, :]

MEASURED_GLOBAL = {
    "k_ld_f32_stride2": ("i*2", 4, None),
    "k_ld_f32_stride6": ("i*6", 4, None),
    "k_ld_f32_stride16": ("i*16", 4, None),
    "k_ld_f32x4": ("i", 16, None),
    "k_ld_u8_contig": ("(i*1)", 1, None),
    "k_ld_f32_bcast4_stride8": ("(i/4)*8", 4, None),
    "k_ld_f32_off1": ("i + 1", 4, None),
}
"""Rows of `global_load`, the index of the lane's element, and the bytes of a lane."""

MEASURED_SHARED = {
    "k_sh_row": ("i", 4),
    "k_sh_stride16": ("i*16", 4),
    "k_sh_stride17": ("i*17", 4),
    "k_sh_bcast": ("0*i", 4),
    "k_sh_f2_col17": ("i*17", 8),
    "k_sh_f4_stride3": ("i*3", 16),
    "k_sh_f4_swz": ("(i>>3)*8+((i&7)^(i>>3))", 16),
    "k_sh_f4_mod2": ("i&1", 16),
}


@pytest.mark.parametrize("name", MEASURED_GLOBAL)
def test_expressions_cost_what_was_measured(name: str) -> None:
    text, width, mask = MEASURED_GLOBAL[name]
    (row,) = (row for row in read_rows("global_load") if row.name == name)
    load = next(each for each in row.instructions if each["sass"].startswith("LDG"))
    cost = access(text, width, unit=width, mask=mask)
    assert (cost.sectors, cost.sectors_ideal, cost.lines) == (
        load["sectors"] / load["executed"],
        load["sectors_ideal"] / load["executed"],
        load["tag_requests"] / load["executed"],
    )


@pytest.mark.parametrize("name", MEASURED_SHARED)
def test_shared_expressions_cost_what_was_measured(name: str) -> None:
    text, width = MEASURED_SHARED[name]
    (row,) = (row for row in read_rows("shared_load") if row.name == name)
    loads = [each for each in row.instructions if each["sass"].startswith("LDS")]
    cost = access(text, width, unit=width, space="shared")
    assert {each["wavefronts"] / each["executed"] for each in loads} == {cost.wavefronts}


@pytest.mark.parametrize(
    "text",
    [
        "i*12",
        "(i >> 2) * 33 + (i & 3)",
        "i % 7 == 3 ? i << 4 : -i + 40",
        "(i ^ 5) | 64",
        "~i & 0xff",
        "i < 3 || i > 29 && i != 31",
        "min(i, 17) - max(3, i) // 2",
        "!(i >= 4) * 9",
        "i - 1 - 2 - 3",
        "2 + 3 * i % 5",
        "1 << 2 + 1",
        "i & 3 == 3",
    ],
)
def test_expressions_mean_what_they_mean_in_c(text: str) -> None:
    replaced = text.replace("||", " or ").replace("&&", " and ").replace("!(", " not (")
    for lane, value in enumerate(evaluate(text, {"i": LANE})[0]):
        if "?" in text:
            wanted = lane << 4 if lane % 7 == 3 else -lane + 40
        elif text == "i & 3 == 3":  # C binds == tighter than &
            wanted = lane & 1
        elif "!" in text and "!=" not in text:
            wanted = int(not (lane >= 4)) * 9
        else:
            wanted = int(eval(replaced, {"i": lane, "min": min, "max": max}))  # noqa: S307 - texts of this file
        assert value == wanted, (text, lane)


def test_division_rounds_to_zero_as_in_c() -> None:
    assert evaluate("(i - 16) / 3", {"i": LANE})[0].tolist() == [int((lane - 16) / 3) for lane in range(32)]
    assert evaluate("(i - 16) % 3", {"i": LANE})[0].tolist() == [
        lane - 16 - 3 * int((lane - 16) / 3) for lane in range(32)
    ]
    assert evaluate("(i - 16) // 3", {"i": LANE})[0].tolist() == [(lane - 16) // 3 for lane in range(32)]


def test_layouts_and_swizzles_are_expressions_too() -> None:
    assert access("(32,4):(4,128)").sectors == access("i*4").sectors == 4
    assert access("(8,4):(1,8)", unit=4).sectors == 4
    rows = Layout((8, 4), (128, 16))
    assert access(rows, 16, space="shared").wavefronts == access("(8,4):(128,16)", 16, space="shared").wavefronts == 32
    swizzled = SwizzledLayout(Swizzle(3, 4, 3), rows)
    for where in (swizzled, str(swizzled), "Swizzle<3,4,3>([(8,4):(128,16)](i))"):
        assert access(where, 16, space="shared").wavefronts == 4
        assert access(where, 16, space="shared", operation="matrix_load").wavefronts == 4


def test_objects_of_tensor_layouts_are_layouts() -> None:
    rows = tensor_layouts.Layout((8, 4), (128, 16))
    assert access(rows, 16, space="shared").wavefronts == 32
    swizzled = tensor_layouts.compose(tensor_layouts.Swizzle(3, 4, 3), rows)
    assert access(swizzled, 16, space="shared").wavefronts == 4
    with pytest.raises(ArgumentError, match="no layout by itself"):
        access(tensor_layouts.Swizzle(3, 4, 3))


def test_the_calculators_agree() -> None:
    addresses = (LANE * 20).ravel()
    assert access("i*20").sectors == access(addresses).sectors == sw.sectors(addresses)
    assert access("i*20", space="shared").wavefronts == sw.wavefronts(addresses)
    cost = sw.access("thread*4 + block*4096", warps=3, block=2, mask="warp < 2")
    assert (cost.requests, cost.active_lanes, cost.sectors, cost.useful_bytes) == (3, 64, 8, 256)
    assert (
        access("i*4", mask="0xff").sectors
        == access("i*4", mask=0xFF).sectors
        == access("i*4", mask=LANE < 8).sectors
        == 1
    )
    assert (access("i*64").dram_bytes, access("i*128").dram_bytes, access("i*32").dram_bytes) == (2048, 2048, 1024)


def test_a_cpu_has_lines_of_64_bytes() -> None:
    one_field = access_cpu("i*48", 4, count=32)
    assert (one_field.lines, one_field.useful_bytes, one_field.split_accesses) == (24, 128, 0)
    records = access_cpu("i*48", 48, count=64)
    brute = [len({byte // 64 for byte in range(48 * i, 48 * i + 48)}) for i in range(64)]
    assert records.split_accesses == sum(number == 2 for number in brute) == 32
    assert records.efficiency == 1.0
    assert sw.access_cpu("i*64", 4).efficiency == 4 / 64


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("i*foo", {}, "no name 'foo'"),
        ("lan*4", {}, "did you mean 'lane'"),
        ("i*", {}, "expected a number, a name or '\\(', got the end"),
        ("i/(i-4)", {}, "division by zero"),
        ("i << 99", {}, "a shift of 0 to 47, got 99"),
        ("1 << 47 << 20", {}, "more than 48 bits"),
        ("0xffffffffff * 0xffffffffff", {}, "more than 48 bits"),
        ("i*6", {}, "no multiple of 4"),
        ("i - 8", {"width": 1}, "before the beginning"),
        ("(4,4):(1,4)", {}, "16 coordinates, fewer than the 32 threads"),
        ("i ? 4", {}, "':' of the choice"),
        ("[(4,4):(1,4)](i)", {}, "index 16 is outside"),
        ("i*4", {"width": 3}, "width must be one of"),
        ("i*4", {"space": "local"}, "space must be one of"),
        ("i*4", {"operation": "matrix_load"}, "an operation on shared memory"),
        ("i*4", {"mask": "j < 3"}, "mask: there is no name 'j'"),
        ("i*4", {"mask": 1 << 40}, "bits beyond lane 31"),
        ("i*4", {"warps": 0}, "warps is 0"),
        ("i*4", {"unit": 0}, "unit is 0"),
        ("i*4", {"unit": 1 << 40}, "unit is 1099511627776"),
        ("i.__class__", {}, "expected the end, got '.'"),
        ("__import__('os')", {}, "there is no name '__import__'"),
        ("(" * 80 + "i" + ")" * 80, {}, "more than 50 brackets"),
        ("-" * 500 + "i", {}, "more than 50 brackets"),
    ],
)
def test_bad_input_is_explained(text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        access(text, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        ("i*12", "--width", "4"),
        ("i*128", "--space", "shared"),
        ("Swizzle<3,4,3> o (8,4):(128,16)", "--width", "16", "--space", "shared"),
        ("i*48", "--cpu", "32"),
    ],
)
def test_the_report(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, arguments: tuple[str, ...]
) -> None:
    outcome = run(capsys, "access", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert outcome.out == snapshot


def test_the_document_and_the_errors_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "access", "i*12", "--format", "json").out)
    assert document["schema"] == "sectorwise.access/1"
    assert (document["access"]["sectors"], document["access"]["efficiency"]) == (12, pytest.approx(1 / 3))
    outcome = run(capsys, "access", "i*twelve")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.endswith("  i*twelve\n    ^^^^^^\n")


def test_frames_need_pandas_and_get_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingToolError, match="pandas is not installed"):
        access("i*12").to_dataframe()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert access("i*12").to_dataframe() == access("i*12").to_records()
    assert make_table("tiling").to_dataframe() == make_table("tiling").to_records()


def test_results_become_records() -> None:
    (record,) = access("i*12").to_records()
    assert (record["sectors"], record["text"]) == (12, "i*12")
    assert "picture" not in record
    assert str(access("i*12")).splitlines()[0] == "global load of 4 B by 32 lanes: lanes step 12 B"
