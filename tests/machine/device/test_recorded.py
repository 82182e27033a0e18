from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Execution, ExecutionOptions
from sectorwise.machine.numpy_engine import execute
from tests.machine.device.compiling import compile_probes
from tests.machine.device.inputs import KINDS, LANES, make_inputs
from tests.machine.device.record import BLOCK, RECORDED, digest, digest_columns, find_probes

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.binary.ir import Kernel

DEVICES = {"sm_75": "t4", "sm_80": "a100-80-sxm", "sm_90": "h200", "sm_100": "b200", "sm_120": "rtx5090"}

# The same source means something else to these compilers: how a NaN's sign is dropped, or a minimum of bfloat16 built.
OTHERWISE = {("sm_100", "fsel"), ("sm_120", "fsel"), ("sm_75", "bminmax")}


@dataclass(frozen=True)
class Record:
    """What the GPU made of the probes."""

    inputs: dict[str, str]
    results: dict[str, list[str]]


@cache
def recorded() -> Record:
    document: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return Record(document["inputs"], document["results"])


@cache
def kernels(target: str) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in read_cubin(compile_probes(target), f"probes for {target}").kernels}


def run_probe(target: str, name: str, kind: str, folder: Path) -> Execution:
    path = folder / f"{kind}.npy"
    np.save(path, make_inputs(kind).ravel())
    words = 4 * LANES
    launch = parse_launch(f"{name}<<<{LANES // BLOCK}, {BLOCK}>>>(u32[{words}]=@{path}, u32[{words}])")
    return execute(bind(kernels(target)[name], launch, load_device(DEVICES[target])), ExecutionOptions())


def test_inputs_are_those_that_were_recorded() -> None:
    assert {kind: digest(make_inputs(kind)) for kind in KINDS} == recorded().inputs


def test_every_probe_is_recorded() -> None:
    assert set(recorded().results) == set(find_probes())


@pytest.mark.parametrize("target", DEVICES)
def test_results_equal_those_of_an_h200(target: str, tmp_path: Path) -> None:
    """Other targets compile the same sources to other instructions: their results are the same."""
    different = {}
    for name, kind in find_probes().items():
        if name not in kernels(target) or (target, name) in OTHERWISE:
            continue
        execution = run_probe(target, name, kind, tmp_path)
        assert execution.limitations == (), name
        columns = digest_columns(execution.read_buffer(1).view(np.uint32).reshape(-1, 4))
        if columns != recorded().results[name]:
            different[name] = [a == b for a, b in zip(columns, recorded().results[name], strict=True)]
    assert different == {}
