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
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.numpy_engine import execute

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.launch.config import LaunchConfig
    from sectorwise.machine.execution import Execution

FOLDER = Path(__file__).parent / "tiles"
TOTALS = ("bulk_load_sectors", "bulk_store_sectors", "bulk_reduction_sectors")
UNSURE = "store_same"
"""All blocks store to one place."""


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
def read_rings() -> dict[str, dict[str, Any]]:
    cases = json.loads((FOLDER / "rings.json").read_text())["cases"]
    return {case["name"]: case["measured"]["totals"] for case in cases}


def run_ring(name: str) -> Execution:
    path = FOLDER / "rings.sm_90.cubin"
    kernels = {kernel.name: kernel for kernel in read_cubin(path.read_bytes(), path.name).kernels}
    launch = next(each for each in read_launch_file(FOLDER / "rings.json").cases if each.case == name)
    return execute(bind(kernels[launch.kernel], launch, load_device("h200")), ExecutionOptions())


@cache
def run(name: str) -> Execution:
    launch = read_launches()[name]
    return execute(bind(read_kernels()[launch.kernel], launch, load_device("h200")), ExecutionOptions())


def _list(key: str) -> list[str]:
    return [name for name, measured in read_cases().items() if key in measured]


@pytest.mark.parametrize("name", _list("totals"))
def test_sectors_are_those_that_the_profiler_counted(name: str) -> None:
    measured = read_cases()[name]["totals"]
    assert sum(each.sectors for each in run(name).bulk) == sum(measured.get(total, 0) for total in TOTALS)
    assert read_cases()[name]["memory_instructions"] == []


@pytest.mark.parametrize("name", [name for name in read_rings() if name.startswith(("spread", "exchange"))])
def test_sectors_for_several_blocks_at_once(name: str) -> None:
    (copies,) = run_ring(name).bulk
    assert copies.sectors == read_rings()[name].get("bulk_load_sectors", 0)
    assert copies.sectors_l2 == read_rings()[name].get("l2_sectors_read_from_sm", 0)
    assert copies.certainty is Certainty.EXACT


@pytest.mark.parametrize("name", ["tiles_row32_two", "tiles_row512"])
def test_sectors_of_streams(name: str) -> None:
    done = run_ring(name)
    assert sum(each.sectors for each in done.bulk) == read_rings()[name]["bulk_load_sectors"]
    assert sum(each.sectors_l2 for each in done.bulk) == read_rings()[name]["l2_sectors_read_from_sm"]
    assert (done.limitations, done.hangs) == ((), ())


@pytest.mark.parametrize("name", ["load_plain", "load_row16", "load_row32", "load_range", "spread_row16"])
def test_what_is_asked_of_the_l2(name: str) -> None:
    """Of loads that fill nothing and promote nothing: rows that share a line may be merged on the way."""
    (copies,) = run(name).bulk
    assert copies.sectors_l2 == read_cases()[name]["totals"]["l2_sectors_read_from_sm"]


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
    assert len(read_rings()) == 73
