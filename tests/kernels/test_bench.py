"""The table of goals is whole, rows are judged by their goals, and without a GPU the command says so."""

from __future__ import annotations

import ctypes
import sys
import types
from collections import Counter
from typing import TYPE_CHECKING, Any

from sectorwise.cli.kernels import render_row
from sectorwise.kernels import launching, torch_operators
from sectorwise.kernels.bench import BenchRow
from sectorwise.kernels.bench_cases import list_cases
from sectorwise.kernels.plan import SOURCES, Pointer, TensorMap
from tests.cli.commands import run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_table_has_what_is_to_be_reached() -> None:
    cases = {case.name: case for case in list_cases(132, (9, 0))}
    assert len(cases) == len(list_cases(132, (9, 0)))
    assert cases["gemv bf16 1024 x 4096"].goal_us == 4.6
    turned = cases["matmul bf16 4096 x 4096 x 14336 turned"].plan
    assert turned.kernel == "matmul_tma<bf16, 128, 256, 4, 2, false, false, false, false, false>"
    assert cases["gemv u4 28672 x 8192"].goal_us == 34.5
    assert cases["gemv x16 e4m3 14336 x 4096"].goal_us == 15.5
    assert cases["transpose 16 bit 12288 x 12288"].goal_of_memcpy == 0.95
    assert cases["matmul bf16 2048 x 2048 x 2048"].goal_of_peer == 0.95
    assert [cases[f"gemv x4 bf16 {shape}"].goal_of_peer for shape in ("4096 x 4096", "14336 x 4096")] == [1.3, 1.0]
    assert cases["gemv bf16 57344 x 7168"].moved_bytes == 2 * (57344 * 7168 + 57344 + 7168)
    peers = Counter(case.peer for case in cases.values())
    assert peers == {
        "linear": 30,
        "int4pack_mm": 4,
        "scaled_mm": 9,
        "int_mm": 9,
        "copy": 1,
        "matmul": 4,
        "matmul_turned": 1,
        "transpose4": 8,
        "transpose2": 3,
    }
    for case in cases.values():
        assert (SOURCES / case.plan.source).is_file()
        pointers = {each.operand for each in case.plan.arguments if isinstance(each, Pointer | TensorMap)}
        assert pointers == set(case.sizes_bytes)
        assert set(case.rotated) <= pointers


def test_rows_are_held_against_goal_or_peer() -> None:
    row = BenchRow("gemv", "k", 4.5, 1.9, "linear", 6.9, None, 4.6, None)
    assert row.reached
    assert render_row(row).split() == ["gemv", "4.50", "-", "1.90", "6.90", "4.60", "us", "ok"]
    copy = BenchRow("copy", "k", 4.5, 4.0, "copy", None, "not there", None, 4.13)
    assert copy.reached is False
    assert render_row(copy).split() == ["copy", "4.50", "-", "4.00", "-", "4.13", "TB/s", "slow"]
    assert BenchRow("t", "k", 4.5, 4.0, "transpose4", 5.0, None, None, None).reached
    assert BenchRow("t", "k", 4.5, 4.0, "transpose4", None, "not there", None, None).reached is None
    short = BenchRow("gemv x8", "k", 4.0, 1.9, "linear", 5.0, None, None, None, alone_us=4.4, goal_of_peer=1.3)
    assert short.reached is False
    assert render_row(short).split() == ["gemv", "x8", "4.00", "4.40", "1.90", "5.00", "1.3", "x", "peer", "slow"]


def test_without_a_gpu_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(*_: object) -> ctypes.CDLL:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    launching.open_library.cache_clear()
    outcome = run(capsys, "kernels", "bench", "-o", tmp_path / "rows.json")
    launching.open_library.cache_clear()
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(
        "error: the kernels run on an NVIDIA GPU, and here is none: there is no NVIDIA driver"
    )
    assert not (tmp_path / "rows.json").exists()


def test_operators_are_registered_where_pytorch_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, tuple[str, Any]] = {}

    class Operator:
        def __init__(self, name: str) -> None:
            self.name = name

        def register_fake(self, fake: object) -> None:
            made[self.name] = (made[self.name][0], fake)

    def custom_op(name: str, function: object, *, schema: str, **named: object) -> Operator:
        assert callable(function)
        assert named == {"mutates_args": (), "device_types": "cuda"}
        made[name] = (schema, None)
        return Operator(name)

    torch_operators.register.cache_clear()
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not torch_operators.register()
    torch_operators.register.cache_clear()
    fake = types.ModuleType("torch")
    fake.library = types.SimpleNamespace(custom_op=custom_op)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert torch_operators.register()
    torch_operators.register.cache_clear()
    names = (
        "copy",
        "transpose",
        "soa_from_aos",
        "aos_from_soa",
        "gemv",
        "gemv_int8",
        "gemv_fp8",
        "gemv_int4",
        "matmul",
    )
    assert sorted(made) == sorted(f"sectorwise::{name}" for name in names)
    assert made["sectorwise::gemv"][0] == "(Tensor x, Tensor weights) -> Tensor"

    class Shaped:
        def __init__(self, *shape: int) -> None:
            self.shape = shape

        def new_empty(self, shape: tuple[int, ...]) -> tuple[int, ...]:
            return shape

    assert made["sectorwise::gemv"][1](Shaped(3, 64), Shaped(8, 64)) == (3, 8)
    assert made["sectorwise::transpose"][1](Shaped(2, 3, 5)) == (2, 5, 3)
