"""The SARIF log has the shape that its specification (OASIS SARIF 2.1.0) asks for, and stable fingerprints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sectorwise.analyze import analyze
from sectorwise.report import sarif
from sectorwise.rules.table import RULES

TRANSPOSE = Path(__file__).parents[2] / "examples" / "transpose.cu"
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
PLACE = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {"required": ["uri"], "properties": {"uri": {"format": "uri-reference"}}},
                "region": {"required": ["startLine"], "properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        },
    },
}
# What sections 3.13 to 3.52 of the specification ask of the parts that are used here.
SHAPE: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "minItems": 1,
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id", "shortDescription", "help"],
                                            "properties": {"shortDescription": TEXT, "help": TEXT},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "items": {
                            "required": ["ruleId", "ruleIndex", "message", "locations", "partialFingerprints"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "locations": {"minItems": 1, "items": PLACE},
                                "relatedLocations": {"items": PLACE},
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                            },
                        }
                    },
                },
            },
        },
    },
}
KERNEL = """\
// sectorwise: launch gather<<<2, 32>>>(f32[4096], f32[64])
__device__ float read(const float* p, int i) {
    return p[i * 64 % 2048];
}
extern "C" __global__ void gather(const float* in, float* out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = read(in, i);
}
"""


def render(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "gather.cu"
    path.write_text(text, encoding="utf-8")
    log: dict[str, Any] = json.loads(sarif.render(analyze("gather.cu")))
    return log


def test_log_has_the_shape_of_the_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = render(tmp_path, KERNEL)
    jsonschema.validate(log, SHAPE, cls=jsonschema.Draft202012Validator)
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.code for rule in RULES]
    (result,) = [each for each in run["results"] if each["ruleId"] == "SW101"]
    assert RULES[result["ruleIndex"]].code == "SW101"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("gather.cu", 3)
    assert [each["physicalLocation"]["region"]["startLine"] for each in result["relatedLocations"]] == [7]


def test_fingerprints_stay_when_lines_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = read_fingerprints(render(tmp_path, KERNEL))
    after = read_fingerprints(render(tmp_path, KERNEL.replace("__device__", "\n\n// Moved.\n__device__")))
    assert before == after
    assert len(set(before)) == len(before) > 0
    other = read_fingerprints(render(tmp_path, KERNEL.replace("i * 64", "i * 65")))
    assert not set(before) & set(other) or len(before) > len(set(before) & set(other))


@pytest.mark.parametrize("device", ["a100", "b200", "rtx5090"])
def test_fingerprints_stay_when_other_code_is_generated(device: str) -> None:
    """Code for another architecture stands for that of another compiler: other instructions for the same lines."""
    usual, other = (analyze(TRANSPOSE, device=name, ignore=["SW4"]) for name in ("h200", device))
    assert [site.sass for site in usual.kernels[0].sites] != [site.sass for site in other.kernels[0].sites]
    expected, found = (read_fingerprints(json.loads(sarif.render(each))) for each in (usual, other))
    assert sorted(expected) == sorted(found)
    assert len(expected) >= 2


def read_fingerprints(log: dict[str, Any]) -> list[str]:
    return [result["partialFingerprints"]["sectorwise/v1"] for result in log["runs"][0]["results"]]


def close_objects(shape: object) -> object:
    """The same shape, whose objects have no properties but those of it and their neighbours in the specification."""
    if isinstance(shape, list):
        return [close_objects(each) for each in shape]
    if not isinstance(shape, dict):
        return shape
    closed = {name: close_objects(each) for name, each in shape.items()}
    properties = shape.get("properties")
    if isinstance(properties, dict) and "type" not in properties:
        further = [name for known, names in NAMES_OF_THE_SPECIFICATION.items() if known in properties for name in names]
        closed["properties"] = {name: close_objects(properties.get(name, {})) for name in (*properties, *further)}
        closed["additionalProperties"] = False
    return closed


NAMES_OF_THE_SPECIFICATION = {
    "runs": ["$schema"],
    "tool": ["columnKind"],
    "rules": ["name", "version"],
    "shortDescription": ["id", "name", "defaultConfiguration"],
    "partialFingerprints": ["ruleId", "ruleIndex", "properties"],
    "physicalLocation": ["message"],
    "text": ["markdown"],
}


def test_log_has_no_names_that_the_specification_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its schema allows no property that it does not name, except in property bags."""
    monkeypatch.chdir(tmp_path)
    closed = close_objects(SHAPE)
    assert isinstance(closed, dict)
    log = render(tmp_path, KERNEL)
    jsonschema.validate(log, closed, cls=jsonschema.Draft202012Validator)
    log["runs"][0]["results"][0]["costNs"] = 1
    with pytest.raises(jsonschema.ValidationError, match="costNs"):
        jsonschema.validate(log, closed, cls=jsonschema.Draft202012Validator)
