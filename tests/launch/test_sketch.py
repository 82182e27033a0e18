"""Sketches of launches name what each parameter takes, in words that the notation reads once they are replaced."""

from __future__ import annotations

import pytest

from sectorwise.launch.notation import parse_launch
from sectorwise.launch.sketch import sketch_launch


@pytest.mark.parametrize(
    ("types", "sketched"),
    [
        ((), ""),
        (("const float *", "int"), "f32[count], i32(value)"),
        (("const unsigned char *", "unsigned long long"), "u8[count], u64(value)"),
        (("void *", "Record *", "T *"), "u8[bytes], u8[bytes], u8[bytes]"),
        (("float4 *", "float4", "Record"), "f32[count], {fields}, {fields}"),
        (("float * *", "bool", "__half"), "u64[count], u8(value), f16(value)"),
    ],
)
def test_sketch_shows_what_parameters_take(types: tuple[str, ...], sketched: str) -> None:
    text = sketch_launch("k", types)
    assert text == f"k<<<grid, block>>>({sketched})"
    filled = text.replace("grid", "2").replace("block", "32").replace("count", "8").replace("bytes", "8")
    launch = parse_launch(filled.replace("value", "1").replace("fields", "0, 0"))
    assert len(launch.arguments) == len(types)
