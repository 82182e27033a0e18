from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.errors import ArgumentError, UnknownKernelError
from sectorwise.model.occupancy import occupancy
from sectorwise.sweep.registers import try_register_limits, try_register_limits_of_block

if TYPE_CHECKING:
    from pathlib import Path

HUNGRY = """\
extern "C" __global__ void hungry(const float* in, float* out, int rounds) {
    float kept[40];
#pragma unroll
    for (int i = 0; i < 40; ++i) kept[i] = in[i * 128 + threadIdx.x];
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < 40; ++i) kept[i] = kept[i] * kept[(i + 1) % 40] + 1.0f;
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 40; ++i) sum += kept[i];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void other(float* out) { out[threadIdx.x] = 1.0f; }
"""
LAUNCH = "hungry<<<2, 128>>>(f32[5120]=arange, f32[128], rounds=2)"


@pytest.fixture
def hungry(tmp_path: Path) -> Path:
    path = tmp_path / "hungry.cu"
    path.write_text(HUNGRY)
    return path


def test_a_limit_buys_occupancy_and_costs_spills(hungry: Path) -> None:
    free, tight = try_register_limits(hungry, [None, 24], LAUNCH)
    assert free.limit is None
    assert free.registers_per_thread > 40
    assert (free.local_bytes_per_thread, free.local_loads, free.local_stores) == (0, 0, 0)
    assert tight.registers_per_thread <= 24
    assert tight.local_bytes_per_thread > 0
    assert min(tight.local_loads, tight.local_stores) > 0
    assert tight.occupancy == occupancy(128, tight.registers_per_thread, 0, device="h200")
    assert tight.occupancy.blocks_per_sm > free.occupancy.blocks_per_sm
    assert free.totals is not None
    assert tight.totals is not None
    assert free.totals.l2_theoretical_sectors_local == 0
    assert (tight.totals.l2_theoretical_sectors_local or 0) > 0
    assert tight.totals.instructions > free.totals.instructions
    # Spilling changes nothing of what the kernel reads and writes in global memory: 40 loads and a store, 8 warps.
    for trial in (free, tight):
        assert trial.totals is not None
        assert trial.totals.global_load_sectors == 40 * 8 * 4
        assert trial.totals.global_store_sectors == 8 * 4


def test_without_a_launch_nothing_is_executed(hungry: Path) -> None:
    free, tight = try_register_limits_of_block(hungry, [None, 32], 256, kernel="hungry", dynamic_shared_bytes=50_000)
    assert free.totals is None
    assert tight.registers_per_thread <= 32
    assert tight.occupancy.shared_bytes_per_block == 50_000
    assert tight.kernel == "hungry"


def test_bad_input_is_named(hungry: Path) -> None:
    with pytest.raises(UnknownKernelError, match=r"name one of its kernels with --kernel: .*hungry"):
        try_register_limits_of_block(hungry, [None], 256)
    with pytest.raises(UnknownKernelError, match="no kernel 'hungri'"):
        try_register_limits_of_block(hungry, [None], 256, kernel="hungri")
    with pytest.raises(ArgumentError, match="8 registers a thread is below 16"):
        try_register_limits_of_block(hungry, [8], 256, kernel="hungry")
