from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import sectorwise as sw
from sectorwise.cli.main import main
from sectorwise.errors import ArgumentError, LaunchError
from sectorwise.model.caches.held import hash_homes, is_sampled, put_back, take_stock
from sectorwise.model.caches.sets import CacheSet

if TYPE_CHECKING:
    from sectorwise.analysis.data import TrafficUse

MIB = 1 << 20

SOURCE = """\
extern "C" __global__ void fill(float4* out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = make_float4(1, 2, 3, 4);
}
extern "C" __global__ void scale(const float4* __restrict__ in, float4* __restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float4 v = in[i];
    out[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}
extern "C" __global__ void read_once(const float4* __restrict__ in, float* __restrict__ out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * 512 + threadIdx.x; i < n; i += gridDim.x * 512) {
        float4 v = __ldcg(in + i);
        sum += v.x + v.y + v.z + v.w;
    }
    out[blockIdx.x * 512 + threadIdx.x] = sum;
}
extern "C" __global__ void draw(const float* __restrict__ in, float* __restrict__ out) {
    out[blockIdx.x * 256 + threadIdx.x] = in[clock() & 1023];
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chains") / "kernels.cu"
    path.write_text(SOURCE)
    return path


def follow(source: Path, *launches: str) -> list[TrafficUse]:
    kernels = sw.analyze(source, launches, follow_caches=True, chain=True).kernels
    return [kernel.traffic for kernel in kernels if kernel.traffic is not None]


@pytest.mark.parametrize("mib", [16, 44, 56])
def test_reading_twice_in_two_launches_takes_of_dram_what_it_takes_in_one(source: Path, mib: int) -> None:
    """Measured: one launch whose grid reads so much twice (family l2_reuse); here a launch for each time."""
    rows = json.loads((Path(__file__).parents[1] / "measured" / "h200" / "l2_reuse.json").read_text())["cases"]
    (measured,) = [row["measured"]["totals"] for row in rows if row["name"] == f"k_l2_twice_{mib}"]
    words = mib * MIB // 4
    launch = f"read_once<<<528, 512>>>(words=f32[{words}]=noise, f32[270336], {words // 4})"
    first, second = follow(source, launch, launch)
    assert (first.cache, second.cache) == ("cold", "chain")
    assert first.dram_bytes_read == pytest.approx(mib * MIB, rel=0.01)
    both = first.dram_bytes_read + second.dram_bytes_read
    assert both == pytest.approx(measured["dram_bytes_read"], rel=0.2)


def test_a_launch_finds_what_the_one_before_it_stored_if_the_name_is_the_same(source: Path) -> None:
    fill = "fill<<<1024, 256>>>(x=f32[1<<20], n=262144)"
    _, named = follow(source, fill, "scale<<<1024, 256>>>(x=f32[1<<20], f32[1<<20], n=262144)")
    _, other = follow(source, fill, "scale<<<1024, 256>>>(y=f32[1<<20], f32[1<<20], n=262144)")
    _, second = follow(source, fill, "scale<<<1024, 256>>>(a=f32[1<<20], x=f32[1<<20], n=262144)")
    assert (named.dram_bytes_read, other.dram_bytes_read, second.dram_bytes_read) == (0, 4 * MIB, 4 * MIB)
    assert named.dram_bytes_write == other.dram_bytes_write == 0
    assert not [text for text in named.assumed if "name" in text]
    assert "no buffer has the name of one of an earlier launch: none is found in the L2" in other.assumed


def test_reading_from_the_start_pushes_out_the_end_of_what_was_stored(source: Path) -> None:
    """128 MiB are stored, and the last of them stay; reading them from the start pushes them out before their turn."""
    fill = "fill<<<32768, 256>>>(x=f32[1<<25], n=8388608)"
    _, begin = follow(source, fill, "read_once<<<528, 512>>>(x=f32[1<<25], f32[270336], n=8388608)")
    assert begin.dram_bytes_read == pytest.approx(128 * MIB, rel=0.02)
    # What the first launch left dirty goes to DRAM to make room.
    assert begin.dram_bytes_write == pytest.approx(60 * MIB, rel=0.2)


def test_one_name_is_one_buffer_and_warm_is_another_question(source: Path) -> None:
    with pytest.raises(LaunchError, match=r"buffer x has 4,096 bytes, and 4,194,304 in a launch before it"):
        follow(
            source,
            "fill<<<1024, 256>>>(x=f32[1<<20], n=262144)",
            "fill<<<1, 256>>>(x=f32[1024], n=256)",
        )
    with pytest.raises(ArgumentError, match="exclude each other"):
        sw.analyze(source, "fill<<<1, 256>>>(f32[1024], n=256)", follow_caches=True, warm=True, chain=True)


def test_a_chain_of_one_launch_is_that_launch(source: Path) -> None:
    launch = "scale<<<1024, 256>>>(f32[1<<20], f32[1<<20], n=262144)"
    (chained,) = follow(source, launch)
    (kernel,) = sw.analyze(source, launch, follow_caches=True).kernels
    assert chained == kernel.traffic


def test_of_a_launch_that_is_not_known_the_next_one_says_that_nothing_is_left(source: Path) -> None:
    launches = ("draw<<<4, 256>>>(x=f32[1024], f32[1024])", "fill<<<1, 256>>>(x=f32[1024], n=256)")
    unknown, after = sw.analyze(source, launches, follow_caches=True, chain=True).kernels
    assert unknown.traffic is None
    assert after.traffic is not None
    assert "what draw leaves in the L2 is not known, and taken to be nothing" in after.traffic.assumed


def test_the_report_says_of_which_launches_the_l2_is(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill, scale = "fill<<<4, 256>>>(x=f32[4096], n=1024)", "scale<<<4, 256>>>(x=f32[4096], f32[4096], n=1024)"
    check = ["check", str(source), "--launch", fill, "--launch", scale, "--cache", "chain"]
    main([*check, "--format", "json"])
    first, second = json.loads(capsys.readouterr().out)["kernels"]
    assert (first["traffic"]["cache"], second["traffic"]["cache"]) == ("cold", "chain")
    main(check)
    assert " ".join(capsys.readouterr().out.split()).count("L2 as earlier launches left it") == 1


@pytest.mark.parametrize("thinner", [1, 4])
def test_lines_put_back_are_those_that_were_held_the_youngest_of_them_where_there_is_room(thinner: int) -> None:
    generator = np.random.default_rng(1)
    halves = [[CacheSet(8, 0) for _ in range(64)] for _ in range(2)]
    for line in generator.permutation(2000).tolist():
        home = int(hash_homes(np.array([line]))[0])
        entry, _ = halves[home % 2][(home >> 8) % 64].add(line)
        entry.sectors, entry.dirty = 15, line % 16
    held = take_stock(halves, 1)
    again = [[CacheSet(8, 0) for _ in range(64 // thinner)] for _ in range(2)]
    put_back(again, held, thinner)
    for old, new in zip(halves, again, strict=True):
        expected = {
            line: (entry.sectors, entry.dirty)
            for each in old
            for line, entry in each.fresh.items()
            if is_sampled(np.array([line]), thinner)[0]
        }
        found = {line: (entry.sectors, entry.dirty) for each in new for line, entry in each.fresh.items()}
        assert found.items() <= expected.items()
        assert all(len(each.fresh) <= 8 for each in new)
        assert len(found) >= 0.8 * len(expected)
    if thinner == 1:
        assert [[list(each.fresh) for each in half] for half in again] == [
            [list(each.fresh) for each in half] for half in halves
        ]
        assert held.count_sectors() == 4 * sum(len(each.fresh) for half in halves for each in half)
