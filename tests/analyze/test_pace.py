"""Every analysis says how its launch fills the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from sectorwise.counting.request import Space
from sectorwise.model.cliffs import Step
from sectorwise.model.concurrency import Bound
from sectorwise.model.roofline import Level

TRANSPOSE = Path(__file__).parents[2] / "examples" / "transpose.cu"

STREAM = """\
extern "C" __global__ void stream(const float4* __restrict__ in, float* out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 12345.0f) out[0] = sum;
}
extern "C" __global__ void alone(float* out) { out[threadIdx.x] = 1.0f; }
extern "C" __global__ void scatter(float* out, const float* in) { out[threadIdx.x * 32] = in[threadIdx.x * 32]; }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cu"
    path.write_text(STREAM)
    return path


def test_more_warps_keep_more_in_flight_and_get_more_bandwidth(source: Path) -> None:
    few, many = (
        analyze(source, f"stream<<<132, {threads}>>>(f32[{4 * n}], f32[1], n={n})", device="h200").kernels[0]
        for threads, n in ((32, 33792), (1024, 1 << 20))
    )
    assert few.concurrency is not None
    assert many.concurrency is not None
    assert (few.concurrency.warps_per_sm, many.concurrency.warps_per_sm) == (1, 32)
    assert few.concurrency.bound is Bound.LATENCY
    assert few.concurrency.load_gbs < 200
    assert few.concurrency.in_flight_bytes_per_sm < few.concurrency.needed_bytes_per_sm / 10
    assert many.concurrency.load_gbs > 20 * few.concurrency.load_gbs
    assert many.concurrency.assumed == ()


def test_a_launch_without_loads_has_no_bytes_in_flight(source: Path) -> None:
    (kernel,) = analyze(source, "alone<<<1, 32>>>(f32[32])", device="h200").kernels
    assert kernel.concurrency is None
    assert kernel.waves.idle_sms_last_wave == 131


def test_the_curve_of_another_device_is_said_to_be_borrowed(source: Path) -> None:
    (kernel,) = analyze(source, "stream<<<128, 256>>>(f32[131072], f32[1], n=32768)", device="rtx4090").kernels
    assert kernel.concurrency is not None
    assert kernel.concurrency.assumed == (
        "mean DRAM latency from a pointer chase on rtx4090",
        "spread of DRAM latencies and queueing under load from h200-sxm",
        "read ceiling 94 % of 1,008 GB/s, as on h200-sxm",
        "cost of a taken branch from h200-sxm",
    )
    assert kernel.occupancy.assumed == ("shared_config_bytes", "l1_bytes", "limit_shared")
    assert kernel.roofline.levels[0].assumed == "read ceiling 94 % of 1,008 GB/s, as on h200-sxm"


def test_every_level_has_its_ceiling_and_the_kernel_on_it() -> None:
    naive, conflicting, padded = analyze(TRANSPOSE, device="h200").kernels[:3]
    for kernel in (naive, conflicting, padded):
        levels = {level.level: level for level in kernel.roofline.levels}
        assert list(levels) == [Level.DRAM, Level.L2, Level.L1, Level.ISSUE]
        assert levels[Level.L2].amount == 32 * (kernel.totals.l2_theoretical_sectors or 0)
        assert levels[Level.ISSUE].amount == kernel.totals.instructions
        assert kernel.roofline.least_ns == max(level.least_ns or 0 for level in levels.values())
        assert kernel.roofline.bound == max(levels.values(), key=lambda level: level.least_ns or 0).level
    # 32-way conflicts make the data stage the bottleneck; padding gives it back.
    assert conflicting.roofline.bound == Level.L1
    assert padded.roofline.bound != Level.L1


def test_cliffs_stand_beside_the_limits() -> None:
    kernel = analyze(TRANSPOSE, device="h200").kernels[0]
    assert kernel.occupancy.cliffs.registers.gain is None
    assert kernel.occupancy.cliffs.registers.loss == Step(33, 40, 6, 48)


def test_140_blocks_on_132_sms_make_a_second_wave_at_six_percent(source: Path) -> None:
    """Statement T6 of the textbook: 227 KB of shared memory leave room for one block an SM."""
    (kernel,) = analyze(source, "alone<<<140, 32, 200000>>>(f32[32])", device="h200").kernels
    assert kernel.waves.rounds == 2
    assert kernel.waves.last_wave_pct == pytest.approx(100 * 8 / 132)
    assert kernel.waves.idle_sms_last_wave == 124
    assert kernel.waves.slowdown_if_latency_bound == pytest.approx(2 * 132 / 140)


def test_a_block_more_than_sms_does_not_double_what_is_in_flight(source: Path) -> None:
    even, odd = (
        analyze(source, f"stream<<<{blocks}, 64>>>(f32[{4 * blocks * 64}], f32[1], n={blocks * 64})").kernels[0]
        for blocks in (132, 133)
    )
    assert even.concurrency is not None
    assert odd.concurrency is not None
    assert odd.concurrency.warps_per_sm == 2 * even.concurrency.warps_per_sm
    assert odd.concurrency.load_gbs == pytest.approx(even.concurrency.load_gbs * 133 / 132, rel=0.01)
    assert odd.concurrency.in_flight_bytes_per_sm == pytest.approx(
        even.concurrency.in_flight_bytes_per_sm * 133 / 132, rel=0.01
    )


def test_arguments_of_printf_are_no_spilled_registers(tmp_path: Path) -> None:
    path = tmp_path / "says.cu"
    path.write_text('__global__ void says(float* v) { if (threadIdx.x == 0) printf("bad %d %f\\n", 1, v[0]); }\n')
    (kernel,) = analyze(path, "says<<<1, 32>>>(f32[32])").kernels
    assert any(site.space is Space.LOCAL for site in kernel.sites)
    assert [finding.code for finding in kernel.findings if finding.code.startswith("SW3")] == []
