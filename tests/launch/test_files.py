from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.errors import LaunchError
from sectorwise.launch.files import parse_launch_file, read_launch_file
from sectorwise.launch.formatting import format_launch

MEASURED = Path(__file__).parents[1] / "measured" / "h200"


def test_all_measured_launches_are_read() -> None:
    files = [
        read_launch_file(path.with_name(path.name.replace("sm_90.cubin", "json")))
        for path in sorted(MEASURED.glob("*.cubin"))
    ]
    assert len(files) == 34
    assert sum(len(file.cases) for file in files) == 389
    by_name = {launch.case: launch for file in files for launch in file.cases}
    assert format_launch(by_name["k_ld_f32_gather"]) == (
        "k_ld_f32_gather<<<64, 256>>>(f32[16384]=uniform(1), f32[16384], i32[16384]=perm(7))"
    )
    assert format_launch(by_name["t_mm_naive"]) == (
        "t_mm_naive<<<(64, 256), (32, 8)>>>(f32[4194304]=noise, f32[4194304]=noise, f32[4194304], i32(2048))"
    )
    transpose = next(file for file in files if file.path.stem == "transpose")
    assert transpose.source == MEASURED / "transpose.cu"


def read_case(**case: Any) -> str:  # noqa: ANN401 - any JSON
    launch = {"name": "c", "kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "args": []} | case
    launch = {key: value for key, value in launch.items() if value is not ...}
    file = parse_launch_file(json.dumps({"source": "a.cu", "cases": [launch]}), Path("dir/a.json"))
    return format_launch(file.cases[0])


def test_every_kind_of_argument_is_read() -> None:
    arguments = [
        {"kind": "buffer", "dtype": "bfloat16", "size": 8, "init": "uniform:3", "name": "a"},
        {"kind": "buffer", "dtype": "int32", "size": 8, "init": "uniform:3:100"},
        {"kind": "buffer", "dtype": "u8", "size": 8, "init": "@my file.npy"},
        {"kind": "scalar", "value": 7},
        {"kind": "scalar", "dtype": "float32", "value": 1},
        {
            "kind": "struct",
            "fields": [{"kind": "scalar", "value": True, "name": "n"}, {"kind": "bytes", "hex": "00 ff"}],
        },
        {"kind": "pointer", "target": "a", "offset": 4},
    ]
    constants = {"tab": {"dtype": "int32", "size": 4, "init": "arange"}, "n": {"kind": "scalar", "value": 3}}
    path = json.dumps(str(Path("dir/my file.npy")))
    assert read_case(grid=4, shared=1024, args=arguments, constants=constants, note="...", measured={}) == (
        f"k<<<4, 32, 1024>>>(a=bf16[8]=uniform(3), i32[8]=uniform(3, 100), u8[8]=@{path}, 7, f32(1.0), "
        "{n=1, bytes(00ff)}, ptr(a, 4)) with tab=i32[4]=arange, n=3"
    )


def test_a_case_may_be_written_in_notation() -> None:
    text = json.dumps(
        {"cases": [{"launch": "k<<<1, 32>>>(f32[32])"}, {"name": "b", "launch": "k<<<2, 32>>>(f32[64])"}]}
    )
    file = parse_launch_file(text, Path("a.json"))
    assert [launch.case for launch in file.cases] == ["k", "b"]
    assert file.source is None


ERRORS = [
    ({"kernel": ...}, "kernel: expected a kernel's name, got nothing"),
    ({"grid": ...}, "grid: expected one to three numbers of blocks, got nothing"),
    ({"grid": [1, "x"]}, "grid: expected one to three numbers of blocks, got [1, 'x']"),
    ({"block": [1, 1, 1, 1]}, "block: expected one to three numbers of threads, got [1, 1, 1, 1]"),
    ({"shared": "4K"}, "shared: expected a number of shared bytes, got '4K'"),
    ({"args": {}}, "args: expected a list of arguments, got an object"),
    ({"shard": 3}, "expected no key 'shard'"),
    ({"kernel": "k@1"}, "expected a kernel's name, got 'k@1'"),
    (
        {"args": [{"kind": "bufer"}]},
        "args[0].kind: expected one of buffer, scalar, struct, bytes, pointer, tensor_map, got 'bufer'; did",
    ),
    ({"args": [{"kind": "buffer", "dtype": "float32", "siez": 3}]}, "args[0]: expected no key 'siez'"),
    ({"args": [{"kind": "buffer", "dtype": "float23", "size": 3}]}, "got 'float23'; did you mean 'float32'?"),
    ({"args": [{"kind": "buffer", "dtype": "float32"}]}, "args[0].size: expected a number of elements, got nothing"),
    (
        {"args": [{"kind": "buffer", "dtype": "float32", "size": 0}]},
        "args[0].size: expected at least one element, got 0",
    ),
    (
        {"args": [{"kind": "buffer", "dtype": "float32", "size": 3, "init": "perm"}]},
        "args[0].init: expected zeros, arange",
    ),
    (
        {"args": [{"kind": "buffer", "dtype": "uint8", "size": 999, "init": "perm:1"}]},
        "args[0].init: a permutation of 999",
    ),
    ({"args": [{"kind": "scalar", "dtype": "int8", "value": 300}]}, "args[0].value: 300 does not fit i8 (-128 to 127)"),
    ({"args": [{"kind": "scalar", "dtype": "int8", "value": "3"}]}, "args[0].value: expected a number, got '3'"),
    ({"args": [{"kind": "struct", "fields": []}]}, "args[0].fields: expected a list of arguments, got a list"),
    ({"args": [{"kind": "bytes", "hex": "0"}]}, "args[0].hex: expected pairs of hexadecimal digits, got '0'"),
    ({"args": [{"kind": "pointer", "target": 3}]}, "args[0].target: expected the name of a buffer, got 3"),
    ({"constants": {"a b": {}}}, "constants: expected the name of a module variable, got 'a b'"),
    ({"constants": {"tab": {"dtype": "x", "size": 1}}}, "constants.tab.dtype: expected a type"),
]


@pytest.mark.parametrize(("change", "message"), ERRORS)
def test_errors_name_file_case_and_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        read_case(**change)
    assert str(caught.value).startswith("a.json: case c: ")
    assert message in str(caught.value)


def test_files_that_are_no_launch_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(LaunchError, match="cannot read the launch file: No such file"):
        read_launch_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LaunchError, match="not UTF-8"):
        read_launch_file(path)
    with pytest.raises(LaunchError) as caught:
        parse_launch_file('{"cases": [\n  {"a":]}', path)
    assert str(caught.value) == 'a.json:2: this is not JSON: expecting value\n    {"a":]}\n         ^'
    with pytest.raises(
        LaunchError, match=r"a\.json: cases: expected a list of cases, got nothing; did you mean 'case'"
    ):
        parse_launch_file('{"case": []}', path)
    with pytest.raises(LaunchError, match="two cases are named 'a'"):
        parse_launch_file('{"cases": [{"name": "a"}, {"name": "a"}]}', path)
    with pytest.raises(LaunchError, match="nested too deeply"):
        parse_launch_file("[" * 100_000, path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["name", "kernel", "grid", "block", "shared", "args", "constants", "launch"]
ARGUMENT_KEYS = ["kind", "dtype", "size", "init", "value", "fields", "hex", "target", "offset", "name"]
WORDS = st.sampled_from(
    ["buffer", "scalar", "struct", "bytes", "pointer", "float32", "int8", "perm:1", "uniform:1:2", "@a", "00"]
)
arguments = st.dictionaries(st.sampled_from(ARGUMENT_KEYS), WORDS | json_values, max_size=6)
BASE = {"kernel": "k", "grid": [1], "block": 32, "args": []}
cases = st.builds(
    lambda given, wild: BASE | {"args": given} | wild,
    st.lists(arguments, max_size=2),
    st.dictionaries(st.sampled_from(KEYS), json_values, max_size=1),
)


@given(st.lists(cases | json_values, max_size=2) | json_values)
def test_any_json_is_a_launch_file_or_an_error_for_people(data: object) -> None:
    trouble = ""
    try:
        parse_launch_file(json.dumps({"cases": data}), Path("a.json"))
    except LaunchError as error:
        trouble = str(error)
    assert trouble.startswith("a.json" if trouble else "")
