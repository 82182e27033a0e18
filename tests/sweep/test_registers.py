from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.errors import ArgumentError, UnknownKernelError
from sectorwise.model.occupancy import occupancy
from sectorwise.sweep.bounds import write_launch_bounds
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


def test_launch_bounds_are_written_compiled_and_counted(hungry: Path) -> None:
    free, two, many = try_register_limits(hungry, [None], LAUNCH, min_blocks=[2, 16])
    assert [(trial.limit, trial.min_blocks) for trial in (free, two, many)] == [(None, None), (None, 2), (None, 16)]
    assert (two.registers_per_thread, two.local_loads) == (free.registers_per_thread, 0)
    assert many.registers_per_thread <= 65_536 // (16 * 128)
    assert many.occupancy.blocks_per_sm == 16 > free.occupancy.blocks_per_sm
    assert min(many.local_loads, many.local_stores) > 0
    assert many.totals is not None
    assert (many.totals.l2_theoretical_sectors_local or 0) > 0
    assert many.totals.global_load_sectors == 40 * 8 * 4
    assert not many.ignored


def test_limits_that_the_compiler_does_not_keep_are_known(hungry: Path) -> None:
    hungry.write_text(HUNGRY.replace("void hungry", "void __launch_bounds__(128) hungry"))
    free, tight, crowded = try_register_limits_of_block(hungry, [None, 24], 128, kernel="hungry", min_blocks=[40])
    assert tight.registers_per_thread == free.registers_per_thread > 24  # bounds of the source come first
    assert (free.ignored, tight.ignored) == (False, True)
    assert crowded.ignored  # 40 blocks of 128 threads are more than an SM holds
    (only,) = try_register_limits_of_block(hungry, [], 128, kernel="hungry", min_blocks=[16])
    assert only.registers_per_thread <= 32


BOUNDED = """\
// __global__ void busy(int);
extern "C" __global__ void busy(float*);
extern "C" __global__ __launch_bounds__(size(2),
    3) void busy(float* p) { *p = 1; }
__device__ void busy_too() { }
void call() { busy(nullptr); }
"""


def test_bounds_replace_bounds_in_every_declaration_and_lines_keep_their_numbers() -> None:
    changed = write_launch_bounds(BOUNDED, "busy", 256, 4)
    assert changed is not None
    assert changed.splitlines() == [
        "// __global__ void busy(int);",
        'extern "C" __global__ void __launch_bounds__(256, 4) busy(float*);',
        f'extern "C" __global__ {" " * 26}',
        "       void __launch_bounds__(256, 4) busy(float* p) { *p = 1; }",
        "__device__ void busy_too() { }",
        "void call() { busy(nullptr); }",
    ]
    assert write_launch_bounds(BOUNDED, "busy_too", 256, 4) is None


def test_bounds_find_templates_and_first_kernels(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(
        "namespace ns { template <typename T, int N> __global__ void\nscale(T* p) { p[threadIdx.x] *= N; } }\n"
    )
    launch = "ns::scale<float, 2><<<1, 64>>>(f32[64])"
    free, bounded = try_register_limits(path, [None], launch, min_blocks=[8])
    assert free.totals == bounded.totals
    assert bounded.occupancy.threads_per_block == 64


def test_bad_input_is_named(hungry: Path) -> None:
    with pytest.raises(UnknownKernelError, match=r"name one of its kernels with --kernel: .*hungry"):
        try_register_limits_of_block(hungry, [None], 256)
    with pytest.raises(UnknownKernelError, match="no kernel 'hungri'"):
        try_register_limits_of_block(hungry, [None], 256, kernel="hungri")
    with pytest.raises(ArgumentError, match="8 registers a thread is below 16"):
        try_register_limits_of_block(hungry, [8], 256, kernel="hungry")
    with pytest.raises(ArgumentError, match="launch bounds of 0 blocks an SM are below 1"):
        try_register_limits_of_block(hungry, [], 256, kernel="hungry", min_blocks=[0])
    with pytest.raises(ArgumentError, match=r"no `__global__` declaration of 'made' is found"):
        try_register_limits_of_block(hungry, [], 256, kernel="made", min_blocks=[1])
    with pytest.raises(ArgumentError, match="give a CUDA source"):
        try_register_limits_of_block(hungry.with_suffix(".cubin"), [None], 256)
