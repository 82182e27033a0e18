"""Tensor maps: the bytes that the driver makes, what it refuses, and how they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from sectorwise.errors import LaunchError
from sectorwise.launch.config import BufferArgument, Contents, TensorMapArgument
from sectorwise.launch.files import parse_launch_file
from sectorwise.launch.formatting import format_argument
from sectorwise.launch.map_bytes import MAP_BYTES, decode_map, encode_map
from sectorwise.launch.notation import parse_launch
from sectorwise.launch.tensor_maps import LISTS, SIZES, find_map_trouble, make_tensor_map
from tests.launch.strategies import tensor_maps

DRIVER: list[tuple[dict[str, Any], int, str | None]] = json.loads(
    (Path(__file__).parent / "tensor_maps.json").read_text()
)["maps"]
"""What the driver made of maps that differ in one thing each: spec, address, first bytes (the rest is zero) or None."""

LARGE = 1 << 80


def make(spec: dict[str, Any], count: int = LARGE) -> TensorMapArgument:
    lists: dict[str, tuple[int, ...]] = {key: tuple(spec[key]) for key in LISTS if key in spec}
    sizes: dict[str, int] = {key: spec[key] for key in SIZES if key in spec}
    return make_tensor_map(BufferArgument(spec["dtype"], count, Contents()), lists, sizes, spec.get("fill", "zeros"))


def test_bytes_are_the_drivers() -> None:
    taken = [(spec, address, data) for spec, address, data in DRIVER if data is not None]
    assert len(taken) == 197
    for spec, address, data in taken:
        made = make(spec)
        assert find_map_trouble(made) is None, spec
        assert encode_map(made, address).hex() == data.ljust(2 * MAP_BYTES, "0"), spec


def test_what_the_driver_refuses_is_refused() -> None:
    refused = [spec for spec, _, data in DRIVER if data is None]
    assert [find_map_trouble(make(spec)) is None for spec in refused] == [False] * 3


@given(tensor_maps())
def test_bytes_say_what_the_map_says(made: TensorMapArgument) -> None:
    read = decode_map(encode_map(made, 0x7F12_3456_0000))
    assert read is not None
    assert (read.address, read.shape, read.strides_bytes) == (0x7F12_3456_0000, made.shape, made.strides_bytes)
    assert (read.box, read.swizzle_bytes) == (made.box, made.swizzle_bytes)
    assert read.steps[1:] == made.steps[1:]
    assert find_map_trouble(made) is None


@pytest.mark.parametrize("data", [b"", bytes(MAP_BYTES), b"\xff" * MAP_BYTES])
def test_other_bytes_are_no_map(data: bytes) -> None:
    assert decode_map(data) is None


def test_the_shape_is_the_buffers_with_its_densest_axis_first() -> None:
    (argument,) = parse_launch("k<<<1, 1>>>(tensor_map(a=f16[48, 64]=arange, box=(64, 8), swizzle=128))").arguments
    assert isinstance(argument, TensorMapArgument)
    assert (argument.shape, argument.strides_bytes, argument.box) == ((64, 48), (128,), (64, 8))
    assert (argument.steps, argument.swizzle_bytes, argument.buffer.name) == ((1, 1), 128, "a")
    assert format_argument(argument) == "tensor_map(a=f16[48, 64]=arange, box=(64, 8), swizzle=128)"


REFUSED = (
    ("f32[64]", "box: expected 1 number for 1 axes, got 0"),
    ("f32[64], box=3", "box: expected rows of a multiple of 16 bytes, got 12"),
    ("f32[64], box=64, swizzle=48", "swizzle: expected one of 0, 32, 64, 128 bytes, got 48"),
    ("f32[64], box=64, swizzle=128", "box: expected rows of at most the 128 bytes of the swizzle, got 256"),
    ("f32[8, 9], box=(8, 8)", "strides: expected multiples of 16 bytes below 2^40, got 36"),
    ("f32[64], shape=128, box=64", "shape: the map reaches 512 bytes, the buffer has 256"),
    ("f32[4, 512], box=(512, 4)", "box: expected numbers from 1 to 256, got 512"),
    ("f32[4, 64], box=(64, 4), steps=(1, 9)", "steps: expected numbers from 1 to 8, got 9"),
    ("i32[64], box=64, fill=nan", "fill: expected zeros for whole numbers (i32), got nan"),
    ("f32[64, 64], box=(32, 8), interleave=16", "interleave: expected 3 axes or more, got 2"),
    ("f32[4, 4, 12], box=(8, 1, 1), interleave=32", "strides: expected multiples of 32 bytes below 2^40, got 48"),
    ("f32[64], box=64, box=32", "expected box once"),
    ("f32[64], box=64, fill=ones", "expected zeros or nan, got 'ones'"),
    ("f32[64], boxes=64", "expected one of shape, strides, box, steps, swizzle, interleave, promotion, fill"),
    ("n=64, box=64", "expected the buffer that the map is of, such as f16[64, 64]"),
)


@pytest.mark.parametrize(("text", "wanted"), REFUSED)
def test_errors_say_what_is_wrong(text: str, wanted: str) -> None:
    with pytest.raises(LaunchError) as caught:
        parse_launch(f"k<<<1, 1>>>(tensor_map({text}))")
    assert wanted in str(caught.value)


def test_launch_files_have_them_too() -> None:
    argument = {
        "kind": "tensor_map",
        "buffer": {"kind": "buffer", "dtype": "float16", "size": 4096, "init": "arange"},
        "shape": [64, 64],
        "box": [64, 8],
        "swizzle": 128,
    }
    case: dict[str, Any] = {"kernel": "k", "grid": 1, "block": 32, "args": [argument]}
    text = json.dumps({"cases": [case]})
    (launch,) = parse_launch_file(text, Path("a.json")).cases
    assert (
        launch.arguments
        == parse_launch("k<<<1, 1>>>(tensor_map(f16[4096]=arange, shape=(64, 64), box=(64, 8), swizzle=128))").arguments
    )
    argument["box"] = [64, 8, 8]
    with pytest.raises(LaunchError, match=r"args\[0\]\.box: expected 2 numbers for 2 axes, got 3"):
        parse_launch_file(json.dumps({"cases": [case]}), Path("a.json"))
