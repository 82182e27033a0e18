"""A plan gives the GPU the very bytes that were executed, whatever stands in the launch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise.analyze import analyze
from sectorwise.launch.config import BufferArgument, Contents, LaunchConfig
from sectorwise.launch.contents import materialise
from sectorwise.verify.launcher import fill
from sectorwise.verify.plan import PLAN_FILE, read_contents, write_plan

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.binding import BoundLaunch

SOURCE = """
struct Pair { int before; const float* in; float* out; int after; };
__constant__ float taps[4];
__device__ int shift;
__constant__ const float* table;
extern "C" __global__ void mixed(char small, Pair pair, const float* alias, double scale, half_t h) {
    pair.out[threadIdx.x] = pair.in[threadIdx.x + shift] * taps[threadIdx.x % 4] + alias[1] * (float)scale
        + table[threadIdx.x] + small + pair.before + pair.after + h;
}
""".replace("half_t h", "short h")

LAUNCH = (
    "mixed<<<1, 32>>>(i8(-3), {7, in=f32[64]=uniform(1), f32[32], -9}, ptr(in, 128), 0.5, i16(77))"
    " with taps=f32[4]=arange, shift=i32(5), table={f32[32]=perm(3)}"
)


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> BoundLaunch:
    path = tmp_path_factory.mktemp("plan") / "mixed.cu"
    path.write_text(SOURCE)
    (kernel,) = analyze(path, LAUNCH).kernels
    assert kernel.limitations == ()
    assert kernel.bound is not None
    return kernel.bound


def plan(bound: BoundLaunch, folder: Path) -> dict[str, Any]:
    write_plan(folder, [(b"the cubin", bound)], repeats=1, keep_outputs=True)
    (launch,) = json.loads((folder / PLAN_FILE).read_text())["launches"]
    assert isinstance(launch, dict)
    return launch


def test_each_launch_has_its_cubin_and_a_cubin_is_written_once(bound: BoundLaunch, tmp_path: Path) -> None:
    launches = [(b"one", bound), (b"other", bound), (b"one", bound)]
    path = write_plan(tmp_path, launches, repeats=1, keep_outputs=False)
    files = [launch["cubin"] for launch in json.loads(path.read_text())["launches"]]
    assert [(tmp_path / name).read_bytes() for name in files] == [b"one", b"other", b"one"]
    assert len(list(tmp_path.glob("*.cubin"))) == 2


def test_parameters_filled_with_the_same_addresses_are_the_bytes_that_were_executed(
    bound: BoundLaunch, tmp_path: Path
) -> None:
    launch = plan(bound, tmp_path)
    bases = [allocation.base for allocation in bound.allocations]
    for parameter, planned in zip(bound.kernel.parameters, launch["parameters"], strict=True):
        start = bound.kernel.parameter_base + parameter.offset_bytes
        assert fill(planned, bases) == bound.banks[0][start : start + parameter.size_bytes]


def test_addresses_move_and_nothing_else_does(bound: BoundLaunch, tmp_path: Path) -> None:
    launch = plan(bound, tmp_path)
    small, pair, alias, scale, short = [fill(each, [1 << 40, 2 << 40, 3 << 40]) for each in launch["parameters"]]
    assert np.frombuffer(small, np.int8).tolist() == [-3]
    assert np.frombuffer(pair[:4] + pair[24:28], np.int32).tolist() == [7, -9]
    assert np.frombuffer(pair[8:24], np.uint64).tolist() == [1 << 40, 2 << 40]
    assert np.frombuffer(alias, np.uint64).tolist() == [(1 << 40) + 128]
    assert np.frombuffer(scale, np.float64).tolist() == [0.5]
    assert np.frombuffer(short, np.int16).tolist() == [77]


def test_buffers_and_variables_hold_what_the_launch_says(bound: BoundLaunch, tmp_path: Path) -> None:
    launch = plan(bound, tmp_path)
    first, second, third = [materialise(read_contents(recipe)) for recipe in launch["buffers"]]
    assert np.array_equal(first, np.random.default_rng(1).random(64, np.float32))
    assert not second.any()
    assert np.array_equal(third, np.random.default_rng(3).permutation(32).astype(np.float32))
    variables = {each["symbol"]: fill(each, [1, 2, 3 << 40]) for each in launch["variables"]}
    assert np.frombuffer(variables["taps"], np.float32).tolist() == [0, 1, 2, 3]
    assert np.frombuffer(variables["shift"], np.int32).tolist() == [5]
    assert np.frombuffer(variables["table"], np.uint64).tolist() == [3 << 40]
    assert launch["kept_variables"] == ["shift"]


def test_arrays_given_from_python_travel_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "copy.cu"
    path.write_text('extern "C" __global__ void copy(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }')
    values = BufferArgument("i32", 32, Contents("array", array=np.arange(32, dtype=np.int32) * 3))
    launch_of_arrays = LaunchConfig("copy", (1, 1, 1), (32, 1, 1), 0, (values, BufferArgument("i32", 32, Contents())))
    (kernel,) = analyze(path, launch_of_arrays).kernels
    assert kernel.bound is not None
    launch = plan(kernel.bound, tmp_path)
    assert materialise(read_contents(launch["buffers"][0])).tolist() == list(range(0, 96, 3))
