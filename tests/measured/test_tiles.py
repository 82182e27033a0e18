"""Copies of tiles and of whole ranges leave in memory what an H200 left, and move the sectors that it counted."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.numpy_engine import execute

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.launch.config import LaunchConfig
    from sectorwise.machine.execution import Execution

FOLDER = Path(__file__).parent / "tiles"
TOTALS = ("bulk_load_sectors", "bulk_store_sectors", "bulk_reduction_sectors")
UNSURE = ("store_same", "add_")
"""All blocks store to one place, or sums that are not computed here."""


@cache
def read_cases() -> dict[str, dict[str, Any]]:
    cases = json.loads((FOLDER / "tensor_copies.json").read_text())["cases"]
    return {case["name"]: case["measured"] for case in cases}


@cache
def read_launches() -> dict[str, LaunchConfig]:
    return {str(each.case): each for each in read_launch_file(FOLDER / "tensor_copies.json").cases}


@cache
def read_kernels() -> dict[str, Kernel]:
    path = FOLDER / "tensor_copies.sm_90.cubin"
    return {kernel.name: kernel for kernel in read_cubin(path.read_bytes(), path.name).kernels}


@cache
def run(name: str) -> Execution:
    launch = read_launches()[name]
    return execute(bind(read_kernels()[launch.kernel], launch, load_device("h200")), ExecutionOptions())


def _list(key: str) -> list[str]:
    return [name for name, measured in read_cases().items() if key in measured]


@pytest.mark.parametrize("name", [name for name in _list("totals") if name != "spread_row16"])
def test_sectors_are_those_that_the_profiler_counted(name: str) -> None:
    measured = read_cases()[name]["totals"]
    assert sum(each.sectors for each in run(name).bulk) == sum(measured.get(total, 0) for total in TOTALS)
    assert read_cases()[name]["memory_instructions"] == []


def test_short_rows_for_several_blocks_are_not_counted() -> None:
    assert run("spread_row16").bulk == ()
    assert any("rows of 16 bytes: it is not counted" in each.because for each in run("spread_row16").limitations)


@pytest.mark.parametrize("name", [name for name in _list("output_sha256") if not name.startswith(UNSURE)])
def test_memory_is_what_the_gpu_left(name: str) -> None:
    loads = read_launches()[name].kernel.startswith(("load", "spread"))
    left = np.ascontiguousarray(run(name).read_buffer(int(loads)))
    assert hashlib.sha256(left.tobytes()).hexdigest() == read_cases()[name]["output_sha256"]
    assert run(name).faults == ()


@pytest.mark.parametrize("name", _list("stopped"))
def test_what_stopped_the_gpu_is_a_fault(name: str) -> None:
    assert run(name).faults != ()


def test_enough_was_measured() -> None:
    assert (len(_list("totals")), len(_list("output_sha256")), len(_list("stopped"))) == (72, 76, 10)
