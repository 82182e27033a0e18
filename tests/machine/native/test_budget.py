from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.errors import MemoryBudgetError
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native import lazy
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.machine.execution import Execution

SOURCE = r"""
extern "C" __global__ void gather(float* out, const int* __restrict__ index, const float* __restrict__ in, int step) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  out[i] = in[index[i * step]];
}
"""
# Each thread reads an index of its own: nothing is proven of blocks, all of them run.
SPREAD = "gather<<<512, 128>>>(f32[65536], i32[4194304]=arange, f32[4194304], step=64)"


TELL_PEAK = """\
import re, sys
from pathlib import Path
from sectorwise.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1], file=sys.stderr)
"""
"""Runs the command line and says the most memory it took, in KiB; `getrusage` would count what it was forked from."""


def _execute(launch: str, options: ExecutionOptions) -> Execution:
    config = parse_launch(launch)
    return execute_native(bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200")), options)


def test_buffers_that_are_made_in_parts_hold_what_whole_ones_hold() -> None:
    config = parse_launch(SPREAD)
    assert list_differences(bind(compile_kernels(SOURCE)["gather"], config, load_device("h200"))) == []


@pytest.mark.parametrize("kind", ["zeros", "uniform(3)", "arange"])
def test_counts_are_the_same_with_any_budget(kind: str) -> None:
    launch = SPREAD.replace("i32[4194304]=arange", f"u8[8388608]={kind}")
    source = SOURCE.replace("const int* __restrict__ index", "const unsigned char* __restrict__ index")
    config = parse_launch(launch)
    bound = bind(compile_kernels(source)["gather"], config, load_device("h200"))
    found = [
        execute_native(bound, ExecutionOptions(budget_bytes=budget, memory_bytes=memory))
        for budget, memory in ((512 << 20, None), (1, None), (8 << 20, 9 << 20))
    ]
    for execution in found[1:]:
        assert execution.sites == found[0].sites
        assert np.array_equal(execution.issued, found[0].issued)


def test_a_launch_beyond_the_budget_says_what_it_would_need() -> None:
    needs = r"the 1,000,000 bytes allowed; all of this one takes 16,777,216, all that are filled 16,777,216"
    with pytest.raises(MemoryBudgetError, match=needs):
        _execute(SPREAD, ExecutionOptions(memory_bytes=1_000_000))


@pytest.mark.parametrize(
    ("launch", "sample_above", "hint"),
    [
        (SPREAD, None, "without --all-blocks"),
        (SPREAD, 1 << 29, r"ExecutionOptions\(sample_above=0\)"),
        (SPREAD.replace("arange", "perm(1)"), None, "as a whole: a sample of the blocks would need as much"),
    ],
)
def test_it_says_what_sampling_gives(launch: str, sample_above: int | None, hint: str) -> None:
    with pytest.raises(MemoryBudgetError, match=hint):
        _execute(launch, ExecutionOptions(memory_bytes=1_000_000, sample_above=sample_above))


def test_what_does_not_fit_into_the_machine_says_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def lack(_memory: object, _number: int) -> None:
        raise MemoryError

    monkeypatch.setattr(lazy, "global_storage", lack)
    with pytest.raises(MemoryBudgetError, match=r"262,144 bytes of perm are made as a whole.*noise, arange and zeros"):
        _execute("gather<<<512, 128>>>(f32[65536], i32[65536]=perm(1), f32[65536], step=1)", ExecutionOptions())
    with pytest.raises(MemoryBudgetError, match=r"262,144 bytes of zeros.* Pass less"):
        _execute(
            "gather<<<512, 128>>>(f32[65536], i32[65536], f32[65536], step=1)", ExecutionOptions(sample_above=None)
        )


def test_a_sample_of_blocks_needs_less_memory() -> None:
    launch = "gather<<<131072, 128>>>(f32[1<<24], i32[1<<24]=arange, f32[1<<24], step=1)"
    with pytest.raises(MemoryBudgetError):
        _execute(launch, ExecutionOptions(memory_bytes=40 << 20, sample_above=None))
    assert _execute(launch, ExecutionOptions(memory_bytes=40 << 20, sample_above=0)).sampling is not None


def test_only_what_is_read_of_a_buffer_is_made(tmp_path: Path) -> None:
    source = tmp_path / "gather.cu"
    source.write_text(SOURCE)
    launch = "gather<<<4096, 256>>>(f32[1<<20], i32[1<<32]=arange, f32[1<<33], step=1)"
    command = [sys.executable, "-c", TELL_PEAK, "check", str(source), "--launch", launch, "--memory", "64M"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "all 4,096 blocks executed" in done.stdout
    assert int(done.stderr.split()[-1]) < 600 << 10
