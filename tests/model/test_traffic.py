from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sectorwise as sw

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.analysis.data import KernelAnalysis, TimeUse, TrafficUse

SOURCE = """\
extern "C" __global__ void copy(const float4* __restrict__ in, float4* __restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void columns(const float* __restrict__ in, float* __restrict__ out) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[(blockIdx.x * 32 + y) * 32 + x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tile[x][(y + k) % 32];
    out[(blockIdx.x * 32 + y) * 32 + x] = sum;
}
extern "C" __global__ void one_counter(int* __restrict__ counter) { atomicAdd(counter + threadIdx.x % 2, threadIdx.x); }
extern "C" __global__ void long_blocks(float* __restrict__ out, int n) {
    float v = threadIdx.x;
    for (int i = 0; i < n; ++i) v = v * 1.5f + 1;
    out[blockIdx.x * 128 + threadIdx.x] = v;
}
extern "C" __global__ void smooth(const float* in, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += in[i + k] * (1.0f / (k + 1));
    out[i] = sum;
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traffic") / "kernels.cu"
    path.write_text(SOURCE)
    return path


def follow(source: Path, launch: str, *, warm: bool = False) -> tuple[KernelAnalysis, TrafficUse, TimeUse]:
    (kernel,) = sw.analyze(source, launch, follow_caches=True, warm=warm).kernels
    assert kernel.traffic is not None
    assert kernel.time is not None
    return kernel, kernel.traffic, kernel.time


def test_a_warm_l2_has_what_fits_and_not_what_does_not(source: Path) -> None:
    small = "copy<<<1024, 256>>>(f32[1<<20], f32[1<<20], n=262144)"
    large = "copy<<<65536, 256>>>(f32[1<<26]=noise, f32[1<<26], n=16777216)"
    _, cold, cold_time = follow(source, small)
    _, warm, warm_time = follow(source, small, warm=True)
    assert (cold.cache, warm.cache) == ("cold", "warm")
    assert (cold.dram_bytes_read, warm.dram_bytes_read) == (4 << 20, 0)
    assert (cold.dram_bytes_write, warm.dram_bytes_write) == (0, 0)
    assert warm_time.estimate_ns < cold_time.estimate_ns
    _, cold, _ = follow(source, large)
    _, warm, _ = follow(source, large, warm=True)
    assert cold.dram_bytes_read == warm.dram_bytes_read == 256 << 20
    # A cold L2 keeps the last of what is stored; launch after launch all of it is written.
    assert 200 << 20 < cold.dram_bytes_write < 256 << 20
    assert warm.dram_bytes_write == 256 << 20


def test_conflicts_are_what_a_kernel_full_of_them_loses_its_time_to(source: Path) -> None:
    kernel, _, time = follow(source, "columns<<<1056, (32, 32)>>>(f32[1056*1024]=noise, f32[1056*1024])")
    assert time.bound == "l1"
    assert time.causes[0].obstacle == "passes"
    assert time.causes[0].ns > 0.8 * time.estimate_ns
    (conflict,) = [each for each in kernel.findings if each.code == "SW201"]
    assert conflict.cost_ns is not None
    # Of 32 passes one is left.
    assert 0.7 * time.estimate_ns < conflict.cost_ns <= time.causes[0].ns


def test_atomics_on_one_address_are_the_time_and_its_cause(source: Path) -> None:
    _, _, time = follow(source, "one_counter<<<256, 256>>>(i32[2])")
    assert time.bound == "atomics"
    assert time.causes[0].obstacle == "atomics"


def test_a_nearly_empty_last_wave_costs_nearly_a_wave(source: Path) -> None:
    _, _, full = follow(source, "long_blocks<<<2112, 128>>>(f32[2112*128], n=400)")
    _, _, more = follow(source, "long_blocks<<<2113, 128>>>(f32[2113*128], n=400)")
    assert full.causes == () or full.causes[0].obstacle != "last_wave"
    (tail,) = [cause for cause in more.causes if cause.obstacle == "last_wave"]
    assert tail.ns == pytest.approx(more.estimate_ns - full.estimate_ns, rel=0.1)
    assert tail.ns > 0.1 * more.estimate_ns


def test_lines_share_the_time_of_the_warps(source: Path) -> None:
    _, _, time = follow(source, "copy<<<65536, 256>>>(f32[1<<26]=noise, f32[1<<26], n=16777216)")
    assert sum(line.ns for line in time.lines) == pytest.approx(time.parts_ns["warps"])
    place = time.lines[0].location
    assert place is not None
    assert place.line == 3
    assert time.ceiling_ns / time.estimate_ns > 0.8


def test_loads_come_no_faster_than_the_launch_as_a_whole_lets_them(source: Path) -> None:
    kernel, _, time = follow(source, "columns<<<1056, (32, 32)>>>(f32[1056*1024]=noise, f32[1056*1024])")
    assert time.bound == "l1"
    assert kernel.concurrency is not None
    loaded_gbs = 4 * 1056 * 1024 / (time.estimate_ns - time.parts_ns["launch"])
    assert kernel.concurrency.load_gbs == pytest.approx(loaded_gbs, rel=1e-6)
    assert kernel.concurrency.memory_busy == pytest.approx(kernel.concurrency.load_gbs / 4510, rel=0.5)
    assert kernel.concurrency.bound == "other"
    kernel, _, time = follow(source, "copy<<<65536, 256>>>(f32[1<<26]=noise, f32[1<<26], n=16777216)")
    assert kernel.concurrency is not None
    assert kernel.concurrency.load_gbs * (time.estimate_ns - time.parts_ns["launch"]) <= 1.0001 * (256 << 20)
    assert kernel.concurrency.bound in {"latency", "memory"}


def test_sectors_that_are_loaded_again_are_counted_once(source: Path) -> None:
    kernel, traffic, _ = follow(source, "smooth<<<264, 128>>>(f32[264*128+64], f32[264*128])")
    # The last thread's last element is number 264 * 128 - 1 + 63, and eight of them make a sector.
    assert (264 * 128 + 63) / 8 == 4231.875
    (redundant,) = [each for each in kernel.findings if each.code == "SW104"]
    assert redundant.evidence is not None
    assert redundant.evidence.ideal == 4232
    assert redundant.evidence.real == sum(site.sectors or 0 for site in kernel.sites if site.operation == "load")
    assert traffic.dram_bytes_read == pytest.approx(32 * 4232, rel=0.05)
