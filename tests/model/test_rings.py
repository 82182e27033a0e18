"""Streams through rings of stages: what they move, how much is in flight, and how long it took an H200."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.numpy_engine import execute
from sectorwise.model.kernel_model import model_kernel
from sectorwise.model.rings import Ring, find_ring
from sectorwise.rules.table import check_model
from tests.machine.launching import run

if TYPE_CHECKING:
    from sectorwise.model.kernel_model import KernelModel

FOLDER = Path(__file__).parents[1] / "measured" / "tiles"
SOURCE = (FOLDER / "rings.cu").read_text()


@cache
def read_measured() -> dict[str, dict[str, Any]]:
    cases = json.loads((FOLDER / "rings.json").read_text())["cases"]
    return {case["name"]: case["measured"]["totals"] for case in cases}


@cache
def model_measured(name: str) -> KernelModel:
    kernels = {each.name: each for each in read_cubin((FOLDER / "rings.sm_90.cubin").read_bytes(), "rings").kernels}
    launch = next(each for each in read_launch_file(FOLDER / "rings.json").cases if each.case == name)
    bound = bind(kernels[launch.kernel], launch, load_device("h200"))
    return model_kernel(bound, execute(bound, ExecutionOptions()), follow_caches=True)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("tiles_row128_two", "copies"), ("tiles_row16", "latency")],
)
def test_time_and_traffic_of_streams(name: str, bound: str) -> None:
    model, measured = model_measured(name), read_measured()[name]
    assert model.traffic is not None
    assert model.time is not None
    # Rows of 16 bytes: each line is asked for twice, and is in the L2 the second time.
    assert model.traffic.dram_bytes_read == pytest.approx(measured["dram_bytes_read"], rel=0.03)
    assert model.traffic.l2_sectors_read_from_sm == pytest.approx(measured["l2_sectors_read_from_sm"], rel=0.02)
    assert model.time.bound == bound
    assert 0.73 < model.time.estimate_ns / measured["time_ns"] < 1.13


def test_a_ring_is_where_loads_land() -> None:
    model = model_measured("tiles_row128_two")
    ring = find_ring(model.bound, model.execution.bulk, model.occupancy)
    assert ring == Ring(window_bytes=16384, stages=2, passes=15.5, blocks_per_sm=1, sm_count=132)
    assert (ring.stage_bytes, ring.in_flight_bytes_per_sm) == (8192, 16384)


def stream(stages: int, steps: int = 16) -> KernelModel:
    """So many stages of 2 KiB on each SM, from a buffer that is read once."""
    total = 132 * steps * 2048
    text = f"ring<<<132, 160, {stages * 2048}>>>(u8[{total}], u32[{132 * 128}], {steps}, 2048, {stages})"
    done = run(SOURCE, text)
    return model_kernel(done.bound, done.execution)


@pytest.mark.parametrize(("stages", "steps", "found"), [(11, 48, True), (12, 48, False), (3, 14, False), (3, 16, True)])
def test_a_ring_is_shallow_that_holds_less_than_fills_dram(stages: int, steps: int, *, found: bool) -> None:
    """22.7 KB are needed on an H200; launches of less than 4 MiB, 14 steps, are not judged."""
    findings = [each for each in check_model(stream(stages, steps)) if each.code == "SW408"]
    assert bool(findings) is found
    for each in findings:
        assert each.evidence is not None
        assert (each.evidence.real, each.evidence.ideal) == (stages * 2048, 22673)


def test_latency_that_a_ring_cannot_hide_is_a_cause() -> None:
    (finding,) = (each for each in check_model(model_measured("tiles_row128_two")) if each.code == "SW408")
    assert finding.cost_ns is not None
    # With eight stages instead of two the same tiles took 13.2 microseconds, not 18.2.
    assert 3_000 < finding.cost_ns < 7_000


@pytest.mark.parametrize("name", ["load_same", "load_range_same", "spread_same", "load_plain"])
def test_tiles_that_several_sms_ask_for_together(name: str) -> None:
    """Requests for one line travel together, but for copies to several blocks at once."""
    path = FOLDER / "tensor_copies.json"
    (case,) = [case for case in json.loads(path.read_text())["cases"] if case["name"] == name]
    (launch,) = [each for each in read_launch_file(path).cases if each.case == name]
    kernels = read_cubin((FOLDER / "tensor_copies.sm_90.cubin").read_bytes(), "tensor_copies").kernels
    bound = bind(next(each for each in kernels if each.name == launch.kernel), launch, load_device("h200"))
    model = model_kernel(bound, execute(bound, ExecutionOptions()), follow_caches=True)
    assert model.traffic is not None
    assert model.traffic.l2_sectors_read_from_sm == case["measured"]["totals"]["l2_sectors_read_from_sm"]
