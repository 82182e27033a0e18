from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.frontends.signatures import find_parameter_types
from sectorwise.launch.files import read_launch_file

MEASURED = Path(__file__).parents[1] / "measured" / "h200"
FAMILIES = sorted(path.name.removesuffix(".sm_90.cubin") for path in MEASURED.glob("*.sm_90.cubin"))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_measured_launch_binds(family: str) -> None:
    """Parameters are compared with the rows by an encoding of their own, NumPy's."""
    path = MEASURED / f"{family}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    kernels = {
        kernel.name: kernel for kernel in read_cubin((MEASURED / f"{family}.sm_90.cubin").read_bytes(), family).kernels
    }
    types = find_parameter_types((MEASURED / f"{family}.cu").read_text(encoding="utf-8"))
    launches = read_launch_file(path).cases
    assert len(launches) == len(rows)
    for launch, row in zip(launches, rows, strict=True):
        assert launch.case == row["name"]
        kernel = kernels[row["kernel"]]
        bound = bind(kernel, launch, load_device("h200"), types[row["kernel"]])
        assert list(struct.unpack_from("<6I", bound.banks[0])) == [*row["block"], *row["grid"]]
        assert bound.shared_bytes == 1024 + kernel.resources.static_shared_bytes + row["shared"]
        free = iter(bound.allocations)
        for parameter, argument in zip(kernel.parameters, row["args"], strict=True):
            at = kernel.parameter_base + parameter.offset_bytes
            given = bound.banks[0][at : at + parameter.size_bytes]
            stored = np.dtype(argument["dtype"])
            if argument["kind"] == "buffer":
                allocation = next(free)
                assert given == struct.pack("<Q", allocation.base)
                assert allocation.size_bytes == argument["size"] * stored.itemsize
            else:
                assert given == np.array([argument["value"]], stored).tobytes()
