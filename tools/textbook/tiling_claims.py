"""Turns statements on tiling and concurrency into claims with numbers."""

from __future__ import annotations

import json

from sectorwise.advise.tile import TileCost, find_excess
from sectorwise.advise.tile_shapes import make_product
from sectorwise.advise.tiles import judge_tile
from sectorwise.device import load_device
from sectorwise.errors import ArgumentError
from sectorwise.model.waves import count_waves
from tools.textbook.claim import FOLDERS, Claim, Number, executed, held, ratio, total
from tools.textbook.costs import needed_kb, transposes

H100 = load_device("h100-sxm")
RIDGE = 1000 * (H100.peaks.fp16_tflops or 0.0) / H100.memory_bandwidth_gbs


def tile(bm: int, bn: int, bk: int, stages: int, n: int = 8192) -> TileCost:
    """A tile of a half-precision product on an H100."""
    return judge_tile(n, n, n, (bm, bn, bk, stages), device="h100-sxm").winner


def transpose_ratio(name: str) -> float:
    """Its time over that of a copy."""
    return transposes().find(name).cost.time_ns / transposes().find("copy (for scale)").cost.time_ns


def refuses(warp: tuple[int, int], thread: tuple[int, int]) -> bool:
    """Whether warp and thread tile do not fit together."""
    try:
        judge_tile(4096, 4096, 4096, (128, 128, 8, 1), "fp32", warp=warp, thread=thread)
    except ArgumentError:
        return True
    return False


def staircase() -> dict[int, float]:
    """Time by blocks, of one an SM."""
    curves = json.loads((FOLDERS[0] / "curves.json").read_text(encoding="utf-8"))
    return {row["grid"]: row["ms"] for row in curves["waves_one_block_per_sm"]}


def camping() -> float:
    """The slowest read over the fastest, of 4 KiB chunks at strides up to 256 KiB."""
    curves = json.loads((FOLDERS[0] / "curves.json").read_text(encoding="utf-8"))
    rates = [row["GBps"] for row in curves["block_stride"]]
    return float(min(rates) / max(rates))


def tile_registers(bm: int, bn: int) -> float:
    """Registers of an SM that the sums of a tile take by themselves."""
    return float(bm * bn)


def tensor_tflops() -> float:
    """Half-precision products of 528 blocks, each 4 x 4,096 times m64n128k16, over their time."""
    return 2 * 64 * 128 * 16 * 4 * 4096 * 528 / total("s_tensor", "time_ns") / 1000


def read_gbs(row: str) -> float:
    """Bytes a ns at which 512 MiB were read."""
    return 2**29 / total(row, "time_ns")


def l2_tbs() -> float:
    """What the L2 gave while all SMs read what it holds."""
    return 32 * total("s_read_l2", "l2_sectors_read_from_sm") / total("s_read_l2", "time_ns") / 1000


def sums_a_thread(row: str, threads_a_tile: int) -> float:
    """Floats that a thread of a product of 4,096 x 4,096 stored; `threads_a_tile` work at 128 x 128 of them."""
    return total(row, "global_store_sectors") * 8 / (1024 * threads_a_tile)


def spills() -> float:
    """Requests for local memory that warps of the largest tile issued, in millions."""
    return (executed("s_mm256", "LDL") + executed("s_mm256", "STL")) / 1e6


TILING = (
    Claim(
        "T1",
        "T x T output tiles cut traffic to about 2MNK/T elements, intensity T/sizeof.",
        "true for square tiles",
        "BM x BN gives 2 / (1/BM + 1/BN) / sizeof.",
        "sectorwise tile 8192 8192 8192 --from 128,256,64,3 --device h100-sxm",
        (
            Number("128 x 128", lambda: tile(128, 128, 64, 3).boundary("l2").intensity, 64),
            Number("128 x 256", lambda: tile(128, 256, 64, 3).boundary("l2").intensity, 85.333, 0.0001),
            Number("sectors of floats, T = 64, 4096^3", lambda: 2 * 4096**3 / 64 * 4 / 32, 268_435_456),
            Number("T = 128", lambda: 2 * 4096**3 / 128 * 4 / 32, 134_217_728),
        ),
        (
            Number(
                "sectors loaded, T = 64, 4096^3",
                lambda: total("c_mm64_groups_of_8_4096", "global_load_sectors"),
                268_435_456,
            ),
            Number("T = 128", lambda: total("c_mm128_4096", "global_load_sectors"), 134_217_728),
        ),
    ),
    Claim(
        "T2",
        "The H100 half-precision ridge near 295 FLOP/byte needs T of about 590.",
        "true",
        "Two bytes times 295, at the datasheet's bandwidth.",
        "sectorwise tile 8192 8192 8192 --device h100-sxm",
        (Number("ridge", lambda: RIDGE, 295, 0.005), Number("T", lambda: 2 * RIDGE, 590, 0.005)),
        (
            Number("TFLOP/s, H200", tensor_tflops, 975, 0.01),
            Number("its ridge", lambda: 1000 * tensor_tflops() / read_gbs("s_read_2048"), 226, 0.01),
        ),
    ),
    Claim(
        "T3",
        "A 590 x 590 half-precision tile pair is about 700 KB, and does not fit 228 KB.",
        "false",
        "One such tile is 696 KB, but shared memory holds slices: at a depth of 64 a pair is 151 KB and fits. What does not fit is the accumulator: 1.39 MB, registers hold 256 KB.",
        "sectorwise tile 8192 8192 8192 --from 590,590,64,1 --device h100-sxm",
        (
            Number("bytes of a tile", lambda: 590 * 590 * 2, 696200),
            Number("bytes of a pair of slices", lambda: 2 * 590 * 64 * 2, 151040),
            Number("bytes of the accumulator", lambda: 590 * 590 * 4, 1392400),
            Number(
                "limits that it exceeds",
                lambda: len(find_excess(make_product(8192, 8192, 8192, "fp16", "h100-sxm"), (590, 590, 64, 1))),
                1,
            ),
        ),
        (
            Number("bytes that a block staged", lambda: total("s_stage_590", "global_load_sectors") * 32 / 132, 151040),
            Number("such blocks an SM", lambda: held("s_stage_590", "limit_shared"), 1),
        ),
    ),
    Claim(
        "T4",
        "One 128 x 64 half-precision tile pair: 32 KB, double-buffered 64 KB.",
        "true",
        "As stated.",
        "sectorwise tile 8192 8192 8192 --from 128,128,64,2 --device h100-sxm",
        (
            Number("one", lambda: tile(128, 128, 64, 1).shared_bytes, 32768),
            Number("two", lambda: tile(128, 128, 64, 2).shared_bytes, 65536),
        ),
        (
            Number("one", lambda: total("s_stage_128", "global_load_sectors") * 32 / 132, 32768),
            Number("two", lambda: total("s_stage_128_twice", "global_load_sectors") * 32 / 132, 65536),
        ),
    ),
    Claim(
        "T5",
        "400 ns at 3.35 TB/s needs 1.34 MB in flight, about 80 sectors an SM.",
        "false",
        "1.34 MB is right: 10.2 KB an SM of 132, which is 317 sectors, or 79 lines. Idle latency is a lower bound: 95 % of an H200's ceiling took 24 to 32 KB.",
        "sectorwise table devices",
        (
            Number("MB", lambda: 400 * 3350 / 1e6, 1.34),
            Number("sectors an SM", lambda: 400 * 3350 / 132 / 32, 317, 0.001),
            Number("lines an SM", lambda: 400 * 3350 / 132 / 128, 79, 0.01),
            Number("KB an SM for 95 %, H200", needed_kb, 23, 0.1),
        ),
        (
            Number("% of the ceiling with 8 KB an SM", lambda: read_gbs("s_read_512") / 45.1, 54, 0.01),
            Number("with 16 KB", lambda: read_gbs("s_read_1024") / 45.1, 83, 0.01),
            Number("with 25 KB", lambda: read_gbs("s_read_1536") / 45.1, 93, 0.01),
            Number("with 33 KB", lambda: read_gbs("s_read_2048") / 45.1, 96, 0.01),
        ),
    ),
    Claim(
        "T6",
        "132 SMs and 140 blocks of one an SM: a second wave at 6 %.",
        "true",
        "And the whole kernel takes twice as long.",
        "sectorwise occupancy --threads 256 --registers 32 --shared 200K --blocks 140",
        (
            Number("last wave, %", lambda: count_waves(140, 1, 132).last_wave_pct, 6.06, 0.001),
            Number("times the time", lambda: count_waves(140, 1, 132).rounds, 2),
        ),
        (Number("133 blocks over 132", lambda: staircase()[133] / staircase()[132], 2, 0.05),),
    ),
    Claim(
        "T7",
        "A naive transpose is about ten times slower than a copy.",
        "somewhat less",
        "7.6 times at 8192 x 8192 floats; in a plain tile 2.6 times, padded or swizzled 1.13 times.",
        "sectorwise advise transpose --shape 8192,8192",
        (
            Number("naive", lambda: transpose_ratio("naive"), 7.6, 0.1),
            Number("tile[32][32]", lambda: transpose_ratio("tile[32][32]"), 2.6, 0.15),
            Number("tile[32][33]", lambda: transpose_ratio("tile[32][33]"), 1.13, 0.11),
        ),
        (
            Number("naive", lambda: ratio("t_tr_naive", "t_tr_copy"), 7.6, 0.01),
            Number("tile[32][32]", lambda: ratio("t_tr_tile", "t_tr_copy"), 2.6, 0.01),
            Number("tile[32][33]", lambda: ratio("t_tr_pad", "t_tr_copy"), 1.13, 0.01),
        ),
    ),
    Claim(
        "T8",
        "Partition camping may serialise on one channel.",
        "not found",
        "At no stride up to 256 KiB on an H200; larger ones lose up to 20 % to address translation. Where addresses are hashed do not report it.",
        "python -m tools.measure_textbook statements",
        (),
        (
            Number("slowest over fastest up to 256 KiB", camping, 0.95, 0.05),
            Number("us for 64 MiB in chunks 4 KiB apart", lambda: total("s_chunks_4k", "time_ns") / 1000, 18.2, 0.01),
            Number("64 KiB apart", lambda: total("s_chunks_64k", "time_ns") / 1000, 19.8, 0.01),
            Number("256 KiB apart", lambda: total("s_chunks_256k", "time_ns") / 1000, 21.3, 0.01),
        ),
    ),
    Claim(
        "T9",
        "Doubling a tile can slow a kernel: occupancy falls, registers spill past 255, waves quantise, or it was above the ridge already.",
        "true",
        "Which of them is said, with numbers.",
        "sectorwise tile 4096 4096 4096 --device h100-sxm",
        (Number("registers of 256x256", lambda: tile_registers(256, 256), 65536),),
        (
            Number("blocks an SM of 64 x 64 floats", lambda: held("s_mm64", "limit_registers"), 4),
            Number("of 128 x 128", lambda: held("s_mm128", "limit_registers"), 1),
            Number("times slower", lambda: ratio("s_mm128", "s_mm64"), 1.36, 0.01),
            Number("million requests for what spills in 256 x 256", spills, 1116, 0.001),
            Number("times slower again", lambda: ratio("s_mm256", "s_mm128"), 2.53, 0.01),
        ),
    ),
    Claim(
        "T10",
        "Doubling T roughly quadruples the shared memory of a block.",
        "false",
        "2 x T x BK x bytes doubles; the accumulator quadruples.",
        "sectorwise table tiling",
        (
            Number("shared memory", lambda: tile(128, 128, 64, 2).shared_bytes / tile(64, 64, 64, 2).shared_bytes, 2),
            Number(
                "accumulator",
                lambda: tile(128, 128, 64, 2).accumulator_bytes / tile(64, 64, 64, 2).accumulator_bytes,
                4,
            ),
        ),
        (
            Number(
                "shared memory, 64 to 128",
                lambda: held("s_mm128", "shared_static_bytes") / held("s_mm64", "shared_static_bytes"),
                2,
            ),
            Number("sums a thread", lambda: sums_a_thread("s_mm128", 256) / sums_a_thread("s_mm64", 256 * 4), 4),
        ),
    ),
    Claim(
        "T11",
        "A common blocking: 128 x 128 block, 64 x 64 warp, 8 x 8 thread.",
        "false",
        "A 64 x 64 warp tile is 128 elements a lane; 8 x 8 a lane makes a 64 x 32 warp tile. Either is fine, not both.",
        "sectorwise tile 4096 4096 4096 --dtype fp32 --from 128,128,8,1 --warp 64,64 --thread 8,8",
        (
            Number("elements a lane", lambda: 64 * 64 / 32, 128),
            Number("refused", lambda: refuses((64, 64), (8, 8)), 1),
            Number("64 x 32 refused", lambda: refuses((64, 32), (8, 8)), 0),
        ),
        (
            Number("elements a lane of 4 warps", lambda: sums_a_thread("s_mm128_8x16", 128), 128),
            Number("of 8 warps", lambda: sums_a_thread("s_mm128", 256), 64),
        ),
    ),
    Claim(
        "T12",
        "At T = 128 (64 FLOP/byte) a half-precision GEMM is compute-bound already.",
        "false",
        "Not at DRAM, whose ridge is near 295, and not at the L2, from which it would need 15.5 TB/s. Which boundary must be said.",
        "sectorwise tile 8192 8192 8192 --from 128,128,64,3 --device h100-sxm",
        (
            Number("TB/s from the L2", lambda: (H100.peaks.fp16_tflops or 0) / 64, 15.5, 0.005),
            Number(
                "over the L2's ridge",
                lambda: tile(128, 128, 64, 3).boundary("l2").intensity > tile(128, 128, 64, 3).boundary("l2").ridge,
                0,
            ),
        ),
        (
            Number("TB/s from the L2, H200", l2_tbs, 9.04, 0.01),
            Number("TB/s that its tensor cores would ask for", lambda: tensor_tflops() / 64, 15.2, 0.01),
        ),
    ),
    Claim(
        "T13",
        "528 blocks to 132 blocks on 132 SMs: from smooth to all or nothing.",
        "true",
        "Four waves' granularity becomes one; one slow block sets the time.",
        "sectorwise occupancy --threads 256 --registers 32 --shared 200K --blocks 528",
        (
            Number("waves of 528", lambda: count_waves(528, 1, 132).waves, 4),
            Number("of 132", lambda: count_waves(132, 1, 132).waves, 1),
        ),
        (
            Number(
                "times the time if one of 528 takes twice as long",
                lambda: ratio("s_chain_528_one_slow", "s_chain_528"),
                1.25,
                0.01,
            ),
            Number("if one of 132 does", lambda: ratio("s_chain_132_one_slow", "s_chain_132"), 2, 0.01),
        ),
    ),
)
