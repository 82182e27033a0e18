from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from sectorwise.report import json as document
from tests.report.samples import BECAUSE, COPYING, FAULTY, UNKNOWN, make_analysis, make_kernel

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    text = resources.files("sectorwise.report").joinpath("analysis.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


def read(*kernels: KernelAnalysis) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(document.render(make_analysis(*kernels)))
    return loaded


@pytest.mark.parametrize("kernel", [make_kernel(), make_kernel(sites=()), UNKNOWN, FAULTY, COPYING])
def test_documents_satisfy_the_schema(schema: dict[str, Any], kernel: KernelAnalysis) -> None:
    jsonschema.validate(read(kernel), schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("name", "value"), [("sectors", -1), ("sectors", "8192"), ("space", "constant"), ("invented", 1), ("offset", 128)]
)
def test_schema_refuses_what_the_document_must_not_be(schema: dict[str, Any], name: str, value: object) -> None:
    spoiled = read()
    spoiled["kernels"][0]["sites"][0][name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoiled, schema, cls=jsonschema.Draft202012Validator)


def test_bulk_copies_have_a_place_of_their_own() -> None:
    (kernel,) = read(COPYING)["kernels"]
    tiles, spread, _, lost = kernel["copies"]
    assert (tiles["operation"], tiles["source"], tiles["target"], tiles["shape"]) == (
        "load",
        "global",
        "shared",
        "tile",
    )
    assert (tiles["copies"], tiles["sectors"], tiles["sectors_ideal"], tiles["row_bytes"]) == (64, 32768, 16384, 16)
    assert (spread["multicast"], spread["targets"], spread["outside_bytes"]) == (True, 64, 1024)
    known = {"offset", "sass", "location", "operation", "shape", "source", "target", "multicast", "executed"}
    assert {name for name, value in lost.items() if value is not None} == {*known, "unknown_because"}


def test_schema_misses_what_is_missing(schema: dict[str, Any]) -> None:
    spoiled = read()
    del spoiled["kernels"][0]["sites"][0]["sectors"]
    with pytest.raises(jsonschema.ValidationError, match="'sectors' is a required property"):
        jsonschema.validate(spoiled, schema, cls=jsonschema.Draft202012Validator)


def test_document_has_the_shape_that_readers_rely_on() -> None:
    loaded = read()
    assert list(loaded) == ["schema", "tool", "device", "source", "kernels", "source_texts"]
    assert loaded["schema"] == "sectorwise.analysis/1"
    (kernel,) = loaded["kernels"]
    assert kernel["launch"] == {"grid": [8, 8, 1], "block": [32, 32, 1], "dynamic_shared_bytes": 1024}
    assert kernel["sites"][0] == {
        "offset": "0x0080",
        "sass": "LDG.E.CONSTANT R3, desc[UR4][R2.64]",
        "location": {"file": "sample.cu", "line": 1, "inlined_at": [{"file": "sample.cu", "line": 5}]},
        "space": "global",
        "operation": "load",
        "width_bytes": 4,
        "executed": 2048,
        "tag_requests": 2048,
        "sectors": 8192,
        "sectors_ideal": 8192,
        "sectors_local": 0,
        "wavefronts": 0,
        "wavefronts_ideal": 0,
        "wavefronts_hardware": 0,
        "certainty": "exact",
        "unknown_because": None,
        "lanes": 65536,
        "certainty_hardware": "exact",
        "patterns": [],
    }
    assert (kernel["traffic"], kernel["time"]) == (None, None)


def test_unknown_site_has_null_counts_and_null_certainty() -> None:
    site = read(UNKNOWN)["kernels"][0]["sites"][5]
    assert site["executed"] == 2048
    assert site["unknown_because"] == BECAUSE
    assert {site[name] for name in ("sectors", "sectors_ideal", "tag_requests", "wavefronts", "certainty")} == {None}


def test_same_analysis_gives_the_same_bytes() -> None:
    assert document.render(make_analysis()) == document.render(make_analysis())


def test_values_without_a_place_are_refused() -> None:
    with pytest.raises(TypeError, match="complex"):
        document.to_plain(1j)
