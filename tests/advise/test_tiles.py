"""Tiles: what they need, which fit, and that the order predicted is the order measured on an H200."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pytest

import sectorwise as sw
from sectorwise.advise.tile import count_dram_bytes, judge
from sectorwise.advise.tile_shapes import count_registers, make_product, make_tile
from sectorwise.advise.tile_time import weigh_slice
from sectorwise.advise.tiles import judge_tile
from sectorwise.advise.tiles import plan_tiles as search_tiles
from sectorwise.advise.untiled import ALONG_ROWS, DOWN_COLUMNS
from sectorwise.errors import ArgumentError
from sectorwise.model.roofline import draw_roofline
from tests.cli.commands import run
from tests.measured.rows import read_rows

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from sectorwise.advise.tile import TileCost

plan_tiles = cache(search_tiles)

USUAL = {(128, 128, 64), (128, 256, 64), (256, 128, 64)}


def measure(family: str, name: str) -> dict[str, int]:
    (row,) = (row for row in read_rows(family) if row.name == name)
    return row.totals


def read_textbook_rows(family: str = "claims") -> dict[str, dict[str, int]]:
    path = Path(__file__).parents[1] / "measured" / "textbook" / f"{family}.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    return {case["name"]: case["measured"]["totals"] for case in document["cases"]}


def judge_square(n: int, side: int, warp: tuple[int, int]) -> TileCost:
    """A tile of one sum a thread and one buffer, as in the measured kernels."""
    product = make_product(n, n, n, "fp32", "h200")
    return judge(product, make_tile(product, (side, side, side, 1), warp=warp, thread=(1, 1), group_rows=1))


@pytest.mark.parametrize("n", [4096, 8192])
def test_the_first_three_for_half_precision_have_a_usual_tile(n: int) -> None:
    first = plan_tiles(n, n, n, device="h100-sxm").candidates[:3]
    assert any((each.tile.bm, each.tile.bn, each.tile.bk) in USUAL and each.tile.stages in {3, 4} for each in first)


def test_tiles_of_16_and_32_rank_as_measured() -> None:
    small, large = judge_square(256, 16, (2, 16)), judge_square(256, 32, (1, 32))
    measured = measure("gemm", "k_mm_tile16")["time_ns"], measure("gemm", "k_mm_tile32")["time_ns"]
    assert small.time_ns is not None
    assert large.time_ns is not None
    assert (small.time_ns < large.time_ns) == (measured[0] < measured[1])
    assert (small.time_ns, large.time_ns) == pytest.approx(measured, rel=0.15)
    assert (small.blocks, large.blocks) == (256, 64)  # of 132 SMs 68 stay idle


def test_a_tile_of_16_takes_the_time_that_was_measured() -> None:
    assert judge_square(2048, 16, (2, 16)).time_ns == pytest.approx(
        measure("gemms", "t_mm_tile16")["time_ns"], rel=0.06
    )


def test_block_orders_move_what_was_measured() -> None:
    product = make_product(4096, 4096, 4096, "fp32", "h200")
    rows = make_tile(product, (64, 64, 16, 1), thread=(4, 4), warp=(8, 64), group_rows=1)
    totals = measure("gemm_schedule", "k_mm64_rowmajor_4096")
    assert count_dram_bytes(product, rows) == pytest.approx(
        totals["dram_bytes_read"] + totals["dram_bytes_write"], rel=0.1
    )
    small = make_product(2048, 2048, 2048, "fp32", "h200")
    inputs = count_dram_bytes(small, rows) - 4 * 2048**2
    assert inputs == pytest.approx(measure("gemm_schedule", "k_mm64_colstripe_2048")["dram_bytes_read"], rel=0.05)
    grouped = make_tile(product, (64, 64, 16, 1), thread=(4, 4), warp=(8, 64), group_rows=8)
    totals = read_textbook_rows()["c_mm64_groups_of_8_4096"]
    assert count_dram_bytes(product, grouped) == pytest.approx(
        totals["dram_bytes_read"] + totals["dram_bytes_write"], rel=0.2
    )


def test_larger_tiles_of_larger_lanes_are_faster_as_measured() -> None:
    product = make_product(4096, 4096, 4096, "fp32", "h200")
    small = judge(product, make_tile(product, (64, 64, 16, 1), thread=(4, 4), warp=(8, 64), group_rows=8))
    large = judge(product, make_tile(product, (128, 128, 8, 1), thread=(8, 8), warp=(16, 128), group_rows=1))
    rows = read_textbook_rows()
    assert small.time_ns is not None
    assert large.time_ns is not None
    assert rows["c_mm128_4096"]["time_ns"] < rows["c_mm64_groups_of_8_4096"]["time_ns"]
    assert large.time_ns < small.time_ns
    assert small.time_ns == pytest.approx(rows["c_mm64_groups_of_8_4096"]["time_ns"], rel=0.08)
    assert large.time_ns == pytest.approx(rows["c_mm128_4096"]["time_ns"], rel=0.08)
    assert large.dram_bytes < small.dram_bytes


def test_orders_of_blocks_and_wider_lanes_take_the_time_that_was_measured() -> None:
    product = make_product(4096, 4096, 4096, "fp32", "h200")
    wide = make_tile(product, (128, 128, 16, 1), thread=(8, 16), warp=(32, 128), group_rows=1)
    small = partial(make_tile, product, (64, 64, 16, 1), thread=(4, 4), warp=(8, 64))
    measured = {
        "rows": measure("gemm_schedule", "k_mm64_rowmajor_4096")["time_ns"],
        "groups": read_textbook_rows()["c_mm64_groups_of_8_4096"]["time_ns"],
        "wide": read_textbook_rows("statements")["s_mm128_8x16"]["time_ns"],
    }
    tiles = {"rows": small(group_rows=1), "groups": small(group_rows=8), "wide": wide}
    for name, tile in tiles.items():
        assert judge(product, tile).time_ns == pytest.approx(measured[name], rel=0.12), name
    # 16 x 16 sums a thread leave no registers: the kernel spilled, and took four times as long as the wide one.
    assert judge(product, make_tile(product, (256, 256, 16, 1), thread=(16, 16), warp=(32, 256))).spills
    assert read_textbook_rows("statements")["s_mm256"]["time_ns"] > 4 * measured["wide"]


def test_a_slice_costs_the_passes_that_were_counted() -> None:
    product = make_product(4096, 4096, 4096, "fp32", "h200")
    totals = read_textbook_rows()
    for name, tile in (
        ("c_mm64_groups_of_8_4096", make_tile(product, (64, 64, 16, 1), thread=(4, 4), warp=(8, 64))),
        ("c_mm128_4096", make_tile(product, (128, 128, 8, 1), thread=(8, 8), warp=(16, 128))),
    ):
        blocks, slices = (4096 // tile.bm) ** 2, 4096 // tile.bk
        passes = weigh_slice(product, tile).passes_ns * product.device.boost_mhz / 1000
        # The counters have the stores of C, and replays, too.
        assert passes * blocks * slices == pytest.approx(totals[name]["l1_data_wavefronts"], rel=0.02)
    small = make_product(2048, 2048, 2048, "fp32", "h200")
    tile = make_tile(small, (16, 16, 16, 1), warp=(2, 16), thread=(1, 1))
    passes = weigh_slice(small, tile).passes_ns * small.device.boost_mhz / 1000
    assert passes * 128**3 == pytest.approx(measure("gemms", "t_mm_tile16")["l1_data_wavefronts"], rel=0.05)


@pytest.mark.parametrize(("sums", "registers"), [((1, 1), 32), ((4, 4), 56), ((8, 8), 127)])
def test_registers_are_about_those_of_the_measured_kernels(sums: tuple[int, int], registers: int) -> None:
    product = make_product(4096, 4096, 4096, "fp32", "h200")
    block = (16 * sums[0], 16 * sums[1])
    wanted = count_registers(product, block, 256, sums)
    assert sw.occupancy(256, wanted).blocks_per_sm == sw.occupancy(256, registers).blocks_per_sm


def test_products_without_tiles_rank_below_and_take_the_time_that_was_measured() -> None:
    rows = {
        (ALONG_ROWS, 2048): measure("gemms", "t_mm_naive"),
        (DOWN_COLUMNS, 1024): measure("gemms", "t_mm_swapped"),
        (DOWN_COLUMNS, 256): measure("gemm", "k_mm_swapped"),
    }
    for (name, n), totals in rows.items():
        (cost,) = (each for each in plan_tiles(n, n, n, "fp32").untiled if each.name == name)
        assert cost.time_ns == pytest.approx(totals["time_ns"], rel=0.16)
        requests = totals["global_load_requests"] + totals["global_store_requests"]
        assert cost.requests == requests
        sectors = totals["global_load_sectors"] + totals["global_store_sectors"]
        assert cost.sectors == pytest.approx(sectors, rel=0.003)  # rows of 66,506 sectors were stored, not 65,536
    plan = plan_tiles(2048, 2048, 2048, "fp32")
    naive, swapped = plan.untiled
    tile = judge_square(2048, 16, (2, 16))
    assert tile.time_ns is not None
    assert plan.winner.time_ns is not None
    assert plan.winner.time_ns < tile.time_ns < naive.time_ns < swapped.time_ns
    assert measure("gemms", "t_mm_tile16")["time_ns"] < measure("gemms", "t_mm_naive")["time_ns"]
    assert "times the time, held up by l1" in " ".join(str(plan).split())


def test_stream_k_shares_out_what_waves_leave() -> None:
    product = make_product(2048, 2048, 4096, "fp16", "h100-sxm")
    whole = judge(product, make_tile(product, (128, 128, 64, 3)))
    stream = judge(product, make_tile(product, (128, 128, 64, 3), streams=True))
    assert (whole.blocks, stream.blocks) == (256, 132 * stream.blocks_per_sm)
    assert stream.last_wave_pct == 100
    assert stream.name == "128x128x64x3 sk"
    few = make_product(128, 256, 64, "fp16", "h100-sxm")
    assert judge(few, make_tile(few, (128, 128, 64, 3), streams=True)).blocks == 2  # a slice each
    names = [each.name for each in plan_tiles(4096, 4096, 4096, device="h100-sxm").candidates]
    assert "128x256x64x3 sk" in names
    assert "128x256x64x3" in names


def test_weights_of_four_bits_are_decoded_to_the_halves_of_a() -> None:
    cost = judge_tile(4096, 4096, 4096, (128, 128, 64, 2), "int4").winner
    assert cost.shared_bytes == 2 * 64 * (128 * 2 + 128 // 2)
    assert cost.boundary("l2").intensity == pytest.approx(2 * 128 * 128 / (128 * 2 + 128 / 2))
    assert "decoded to the halves of A" in " ".join(str(plan_tiles(4096, 4096, 4096, "int4")).split())


def test_double_precision_runs_on_its_lanes() -> None:
    plan = plan_tiles(2048, 2048, 2048, "fp64")
    peak = 2 * 64 * 132 * 1.98  # GFLOP/s: 64 lanes an SM
    assert 0.4 < 1000 * plan.winner.tflops / peak <= 1
    assert plan.winner.accumulator_bytes == plan.winner.tile.bm * plan.winner.tile.bn * 8
    few = plan_tiles(2048, 2048, 2048, "fp64", device="rtx4090")
    assert few.winner.tflops < 1.3
    ideal_ns = 2 * 2048**3 / (2 * 2 * 128 * 2.52)
    assert all(cost.time_ns >= ideal_ns for cost in few.untiled)


def test_intensities_and_ridges() -> None:
    cost = judge_tile(8192, 8192, 8192, (128, 128, 64, 2), device="h100-sxm").winner
    assert cost.shared_bytes == 2 * 32 * 1024
    assert cost.boundary("l2").intensity == pytest.approx(128 / 2)
    assert cost.boundary("dram").ridge == pytest.approx(989.4e3 / 3240)
    uneven = judge_tile(8192, 8192, 8192, (128, 256, 64, 3), device="h100-sxm").winner
    assert uneven.boundary("l2").intensity == pytest.approx(2 / (1 / 128 + 1 / 256) / 2)
    assert (uneven.accumulator_bytes, uneven.shared_bytes) == (128 * 1024, 3 * (128 + 256) * 64 * 2)


def test_the_ridge_tile_does_not_fit_and_the_accumulator_is_why() -> None:
    with pytest.raises(ArgumentError, match="an accumulator of 1,392,400 B, an SM's registers hold 262,144") as caught:
        judge_tile(8192, 8192, 8192, (590, 590, 64, 1), device="h100-sxm")
    assert "its slices take 151,040 B" in str(caught.value)
    text = " ".join(str(plan_tiles(8192, 8192, 8192, device="h100-sxm")).split())
    assert "is T = 591" in text
    assert "does not fit" in text


def test_the_next_larger_loses_for_a_reason() -> None:
    larger = {cost.name: why for cost, why in plan_tiles(4096, 4096, 4096, device="h100-sxm").larger}
    assert "registers" in larger["256x256x64x3 c2"]
    few = plan_tiles(512, 512, 8192)
    assert few.winner.tile.split > 1
    assert few.winner.blocks > 512 * 512 // (few.winner.tile.bm * few.winner.tile.bn)


def test_waves_and_occupancy_are_those_of_the_calculators() -> None:
    cost = judge_tile(4096, 4096, 4096, (128, 128, 64, 3), device="h100-sxm").winner
    held = sw.occupancy(cost.tile.threads, cost.registers, cost.shared_bytes, device="h100-sxm")
    assert (cost.blocks_per_sm, cost.limiter) == (held.blocks_per_sm, held.limiter)
    assert cost.blocks == 32 * 32
    assert cost.waves == 1024 / (132 * held.blocks_per_sm)


def test_lanes_plan_single_precision() -> None:
    plan = plan_tiles(4096, 4096, 4096, "fp32")
    assert plan.winner.tile.thread == (8, 8)
    assert plan.winner.tile.bm * plan.winner.tile.bn >= 128 * 64
    assert plan.winner.tflops < 66.9


def test_clusters_read_what_they_share_once() -> None:
    alone, pair = (
        judge_tile(4096, 4096, 4096, (128, 256, 64, 3), device="h100-sxm", cluster=cluster).winner for cluster in (1, 2)
    )
    # Two blocks of 128 x 256 ask the L2 for what a tile of 256 x 256 asks for: 85 operations a byte, and 128.
    assert alone.boundary("l2").intensity == pytest.approx(2 / (1 / 128 + 1 / 256) / 2)
    assert pair.boundary("l2").intensity == pytest.approx(128)
    assert alone.boundary("l2").intensity < pair.boundary("l2").ridge < pair.boundary("l2").intensity
    assert (pair.name, pair.bound, alone.bound) == ("128x256x64x3 c2", "compute", "l2")
    assert (pair.shared_bytes, pair.registers, pair.blocks) == (alone.shared_bytes, alone.registers, alone.blocks)
    assert alone.time_ns is not None
    assert pair.time_ns is not None
    assert pair.time_ns < 0.85 * alone.time_ns


def test_clusters_are_explained_by_their_size() -> None:
    four = str(judge_tile(4096, 4096, 4096, (128, 128, 64, 3), cluster=4))
    assert "c4: clusters of 4 blocks, one below the other" in four
    assert "c2:" not in four
    assert "c2: clusters of two blocks" in str(judge_tile(4096, 4096, 4096, (128, 128, 64, 3), cluster=2))


def test_the_planner_takes_clusters_where_the_device_has_them() -> None:
    plan = plan_tiles(4096, 4096, 4096, device="h100-sxm")
    assert plan.winner.name == "128x256x64x3 c2"
    assert "fetch B together" in str(plan)
    assert all(each.tile.cluster == 1 for each in plan_tiles(4096, 4096, 4096, device="a100").candidates)
    assert all(each.tile.cluster == 1 for each in plan_tiles(2048, 2048, 2048, "fp32").candidates)
    # One row of tiles is no whole cluster.
    assert all(each.tile.cluster == 1 or each.tile.bm < 128 for each in plan_tiles(128, 4096, 4096).candidates)


BF16_OPERATIONS_A_CYCLE = 4096
"""Of an SM of an H200: the datasheet's 989.4 TFLOP/s are those of 132 SMs at 1,830 MHz."""


def read_products(*, at_clock: bool) -> list[tuple[float, float]]:
    """Predicted and measured times of single products that an H200 computed tile by tile, some of them turned.

    The card lowers its clock while tensor cores are busy: predictions are for that clock, or for the highest.
    """
    path = Path(__file__).parents[2] / "benchmarks" / "kernels" / "matmul-h200.json"
    pairs = []
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        kernel = re.fullmatch(r"matmul_tma<bf16, (\d+), (\d+), (\d+), (\d+), .*, (true|false), \w+>", row["kernel"])
        if kernel is None or row["count"] > 1:
            continue
        down, across, stages, cluster = map(int, kernel.groups()[:4])
        m, n = (row["n"], row["m"]) if kernel[5] == "true" else (row["m"], row["n"])
        product = make_product(m, n, row["k"], "bf16", "h200")
        if at_clock:
            device = replace(product.device, boost_mhz=row["sm_mhz"])
            rate = device.sm_count * BF16_OPERATIONS_A_CYCLE * row["sm_mhz"] / 1000
            product = replace(product, device=device, roofline=draw_roofline(device), operations_per_ns=rate)
        cost = judge(product, replace(make_tile(product, (down, across, 64, stages)), cluster=cluster))
        assert cost.time_ns is not None
        pairs.append((cost.time_ns, 1000 * row["us"]))
    return pairs


@pytest.mark.parametrize("depth", [1, 33, 100, 300])
def test_blocks_that_share_the_depth_have_a_slice_each(depth: int) -> None:
    tiles = [cost.tile for cost in plan_tiles(64, 64, depth).candidates]
    assert all((tile.split - 1) * tile.bk < depth for tile in tiles)
    assert any(tile.split > 1 for tile in tiles) == (depth > 32)


def test_tiles_with_clusters_take_about_the_time_that_was_measured() -> None:
    pairs = read_products(at_clock=True)
    assert len(pairs) >= 30
    errors = [abs(predicted / measured - 1) for predicted, measured in pairs]
    assert median(errors) < 0.12
    assert max(errors) < 0.22


def test_tiles_with_clusters_are_in_the_order_that_was_measured() -> None:
    pairs = read_products(at_clock=False)
    ranks = [np.argsort(np.argsort(column)) for column in zip(*pairs, strict=True)]
    assert np.corrcoef(ranks[0], ranks[1])[0, 1] > 0.99


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: judge_tile(4096, 4096, 4096, (128, 128, 64, 3), device="a100", cluster=2), "compute capability 8.0"),
        (lambda: judge_tile(4096, 4096, 4096, (128, 128, 64, 3), cluster=3), "32 rows of tiles must be whole clusters"),
        (lambda: judge_tile(4096, 4096, 4096, (128, 128, 64, 3), cluster=16), "at most 8 blocks"),
        (lambda: judge_tile(4096, 4096, 4096, (128, 128, 64, 3), cluster=0), "cluster is 0"),
        (
            lambda: judge_tile(4096, 4096, 4096, (128, 128, 64, 3), thread=(8, 8)),
            "thread is 8x8, the tile of a lane: fp16 on h200-sxm is multiplied by tensor cores",
        ),
        (lambda: judge_tile(4096, 4096, 4096, (128, 64, 16, 1), "fp32", cluster=2), "fp32 on H200"),
        (lambda: plan_tiles(0, 8, 8), "M is 0"),
        (lambda: plan_tiles(64, 64, 64, "fp8", device="a100"), "has no peak rate for 'fp8'"),
        (lambda: plan_tiles(64, 64, 64, device="mi300x"), "only NVIDIA devices"),
        (lambda: judge_tile(64, 64, 64, (128, 128, 64, 9)), "294,912 B of slices, a block has 232,448"),
        (lambda: judge_tile(64, 64, 64, (128, 128, 0, 1)), "BK is 0"),
        (
            lambda: judge_tile(64, 64, 64, (128, 128, 8, 1), "fp32", warp=(64, 64), thread=(8, 8)),
            "128 elements a lane; 8x8 a lane makes a warp tile of 64x32 or 32x64",
        ),
        (lambda: judge_tile(64, 64, 64, (96, 100, 8, 1), "fp32", warp=(32, 64)), "no whole number of warp tiles"),
    ],
)
def test_bad_input_is_explained(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(sw.SectorwiseError, match=message):
        call()


@pytest.mark.parametrize("more", [(), ("--from", "128,128,64,3")])
def test_the_report(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, more: tuple[str, ...]) -> None:
    outcome = run(capsys, "tile", 4096, 4096, 4096, "--dtype", "fp16", "--device", "h100-sxm", *more)
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert outcome.out == snapshot


def test_the_document_and_the_errors_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "tile", 512, 512, 512, "--format", "json").out)
    assert document["schema"] == "sectorwise.tiles/1"
    assert document["plan"]["candidates"][0]["tile"]["bm"] > 0
    assert run(capsys, "tile", 512, 512, "x").code == 2
    assert run(capsys, "tile", 512, 512, 512, "--from", "128").code == 2
    assert run(capsys, "tile", 512, 512, 512, "--warp", "8,8").code == 2
    assert run(capsys, "tile", 512, 512, 512, "--cluster", "2").code == 2
    outcome = run(capsys, "tile", 4096, 4096, 4096, "--from", "128,256,64,3", "--cluster", "2")
    assert "128x256x64x3 c2" in outcome.out


@pytest.mark.parametrize("dtype", ["fp16", "fp32", "int8", "int4", "fp64", "tf32", "fp8"])
@pytest.mark.parametrize("extents", [(1, 1, 1), (64, 8, 8), (100, 1000, 10_000), (1 << 20, 64, 64)])
def test_every_shape_has_a_tile(extents: tuple[int, int, int], dtype: str) -> None:
    plan = plan_tiles(*extents, dtype)
    assert plan.winner.time_ns is not None
    assert not plan.winner.spills
    assert max(map(len, str(plan).splitlines())) <= 80


def test_plans_become_records() -> None:
    records = plan_tiles(512, 512, 8192).to_records()
    assert records[0]["name"] == plan_tiles(512, 512, 8192).winner.name
    assert records[0]["tile.bm"] == plan_tiles(512, 512, 8192).winner.tile.bm


@pytest.mark.parametrize(("warp", "thread"), [((0, 0), None), (None, (0, 8))])
def test_parts_of_a_tile_have_a_size(warp: tuple[int, int] | None, thread: tuple[int, int] | None) -> None:
    with pytest.raises(ArgumentError, match=r"must be at least 1"):
        judge_tile(4096, 4096, 4096, (128, 128, 32, 3), dtype="fp32", warp=warp, thread=thread)
