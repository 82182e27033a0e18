from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.analysis.data import SCHEMA
from sectorwise.analysis.reading import read_analysis
from sectorwise.errors import ArgumentError
from sectorwise.report import json as document
from tests.comparison.kernels import analyze_example
from tests.report.samples import COPYING, FAULTY, UNKNOWN, make_analysis, make_kernel

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.analysis.data import Analysis


@pytest.mark.parametrize("analysis", [analyze_example(), make_analysis(make_kernel(), UNKNOWN, FAULTY, COPYING)])
def test_what_is_written_is_read(analysis: Analysis, tmp_path: Path) -> None:
    path = tmp_path / "analysis.json"
    path.write_text(document.render(analysis), encoding="utf-8")
    found = read_analysis(path)
    assert found == analysis
    assert found.source_texts == analysis.source_texts
    assert document.render(found) == path.read_text(encoding="utf-8")


def test_fields_of_later_versions_are_passed_over_and_new_ones_may_lack(tmp_path: Path) -> None:
    plain: dict[str, Any] = json.loads(document.render(make_analysis()))
    plain["invented"] = plain["kernels"][0]["invented"] = [1]
    del plain["kernels"][0]["sites"][0]["patterns"], plain["source_texts"]
    path = tmp_path / "analysis.json"
    path.write_text(json.dumps(plain), encoding="utf-8")
    assert read_analysis(path).kernels == make_analysis().kernels


def test_documents_from_before_bulk_copies_are_read(tmp_path: Path) -> None:
    plain: dict[str, Any] = json.loads(document.render(make_analysis(COPYING)))
    (kernel,) = plain["kernels"]
    del kernel["copies"], kernel["copy_ring"], kernel["limitations"][0]["of_values"]
    for name in ("bulk_load_sectors", "bulk_store_sectors", "bulk_reduction_sectors"):
        del kernel["totals"][name]
    path = tmp_path / "analysis.json"
    path.write_text(json.dumps(plain), encoding="utf-8")
    (found,) = read_analysis(path).kernels
    assert (found.copies, found.copy_ring, found.totals.bulk_load_sectors) == ((), None, None)


@pytest.mark.parametrize(
    ("way", "value", "said"),
    [
        (
            ("schema",),
            "sectorwise.analysis/9",
            f"{SCHEMA!r}, which is the only one supported, got 'sectorwise.analysis/9'",
        ),
        (("kernels", 0, "sites", 0, "space"), "moon", "kernels[0].sites[0].space: expected one of global, shared"),
        (("kernels", 0, "sites", 1, "executed"), "2048", "kernels[0].sites[1].executed: expected int, got '2048'"),
        (("kernels", 0, "launch", "grid"), [1, 2], "kernels[0].launch.grid: expected 3 values, got 2"),
        (("kernels", 0, "sites", 0, "location"), {"line": 4}, "expected a file and a line"),
        (("kernels",), {}, "kernels: expected list, got {}"),
        (("kernels", 0), 5, "kernels[0]: expected dict, got 5"),
    ],
)
def test_spoiled_documents_are_refused_with_the_place(
    tmp_path: Path, way: tuple[str | int, ...], value: object, said: str
) -> None:
    plain: Any = json.loads(document.render(make_analysis()))
    inner = plain
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = value
    path = tmp_path / "analysis.json"
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ArgumentError) as caught:
        read_analysis(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_field_is_named(tmp_path: Path) -> None:
    plain = json.loads(document.render(make_analysis()))
    del plain["kernels"][0]["totals"]["instructions"]
    path = tmp_path / "analysis.json"
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"kernels\[0\].totals has no 'instructions'"):
        read_analysis(path)


@pytest.mark.parametrize(("text", "said"), [("{", "no JSON document"), ("[]", "got None"), (None, "cannot read")])
def test_what_is_no_document_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "analysis.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError, match=said):
        read_analysis(path)


def test_a_number_that_no_counter_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "analysis.json"
    plain: Any = json.loads(document.render(make_analysis()))
    plain["kernels"][0]["sites"][0]["executed"] = 10**400
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ArgumentError, match="has 401 digits, and no count has more than 20"):
        read_analysis(path)
