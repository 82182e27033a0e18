"""Turns a seed into questions on mappings of threads, tiles and waves, with the answers of `advise` and `tile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.advise.access import access
from sectorwise.advise.dtypes import find_dtype
from sectorwise.advise.gemv import find_saturation, make_weight
from sectorwise.advise.tile_shapes import make_product, make_tile
from sectorwise.advise.tiles import judge_tile
from sectorwise.device import load_device
from sectorwise.learn.question import Mistake, Part, Question
from sectorwise.model.occupancy import occupancy
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from random import Random

_DEVICES = ("h100-sxm", "a100-80-sxm", "h200-sxm")


def ask_intensity(random: Random) -> Question:
    """A tile's intensity, and the tile that the ridge needs."""
    bm, bn, device = random.choice((64, 128)), random.choice((128, 256)), load_device(random.choice(_DEVICES))
    cost = judge_tile(4096, 4096, 4096, (bm, bn, 32, 3), device=device.id).winner
    peak = device.peaks.fp16_tflops or 0.0
    ridge = 1000 * peak / device.memory_bandwidth_gbs
    return Question(
        "intensity",
        "A tile's intensity, and the tile that the ridge needs",
        f"C = A B in half precision on {device.name}: {peak:.4g} TFLOP/s, {device.memory_bandwidth_gbs:,.0f} GB/s.",
        (
            Part(
                f"A block computes {bm} x {bn} of C. How many FLOP for each byte that it loads?",
                cost.boundary("l2").intensity,
                "2 / (1/BM + 1/BN) / 2 bytes.",
                (
                    Mistake(cost.boundary("l2").intensity * 2, "An element is 2 bytes."),
                    Mistake(cost.boundary("l2").intensity / 2, "A multiply-add is two operations."),
                ),
            ),
            Part("What is the ridge at DRAM, FLOP/byte?", ridge, "Peak over bandwidth."),
            Part(
                "Which square tile T would reach it without any sharing?",
                2 * ridge,
                "T / 2 bytes = ridge. Its accumulator fits no SM; blocks that share the L2 reach it together.",
                (Mistake(ridge, "An element is 2 bytes: T is twice the ridge."),),
            ),
        ),
        (
            "says larger tiles reuse more",
            "derives 2 / (1/BM + 1/BN) / size and compares it with the ridge of DRAM",
            "says which boundary is meant: the L2 has a ridge of its own, shared memory too",
        ),
        ("Is T = 128 compute-bound? Its 64 FLOP/byte are below the ridge of DRAM, and of an H100's L2 too.",),
    )


def ask_sixty_percent(random: Random) -> Question:
    """Causes of 60 %."""
    device = load_device("h100-sxm")
    blocks = device.sm_count * random.choice((1, 2, 3)) + random.choice((4, 8, 16, 33))
    waves = count_waves(blocks, 1, device.sm_count)
    held = occupancy(256, random.choice((64, 96, 128)), device=device)
    return Question(
        "sixty-percent",
        "A kernel reaches 60 % of what it should. Why?",
        f"{device.sm_count} SMs, {blocks} blocks of equal length, one an SM at a time.",
        (
            Part(
                "How full is the last wave, in percent?",
                waves.last_wave_pct,
                f"{waves.blocks_last_wave} of {device.sm_count} SMs have a block.",
            ),
            Part(
                "How many times the time of perfectly even work does it take?",
                waves.slowdown_if_latency_bound,
                f"{waves.rounds} rounds for {waves.waves:.3g} waves of work.",
                (Mistake(1, "The last wave takes as long as a full one."),),
            ),
            Part(
                f"Another cause: 256 threads, {held.registers_per_thread} registers each. Warps an SM holds?",
                held.warps_per_sm,
                f"{held.blocks_per_sm} blocks, limited by {held.limiter}.",
            ),
        ),
        (
            "names one cause and stops",
            "names three: the last wave, too few bytes in flight, bandwidth spent on unused sectors; and how to tell",
            "puts a number to each from the launch, and says what a profile would show for each",
        ),
        ("Third cause: bytes in flight. Warps times bytes a load must reach latency times bandwidth.",),
    )


def ask_row_major(random: Random) -> Question:
    """The mapping for a row-major weight."""
    k, dtype = random.choice((1024, 2048, 4096, 8192)), find_dtype(random.choice(("bf16", "fp8", "fp32")))
    width = dtype.bits // 8
    one = access(f"i*{k * width}", width)
    return Question(
        "row-major",
        "Who loads what of a row-major weight?",
        f"y = W x, W [N, {k:,}] of {dtype.name}, rows contiguous, as PyTorch's Linear stores it ([out, in]).",
        (
            Part(
                "One thread a row: how many bytes lie between neighbouring lanes?",
                k * width,
                "A whole row.",
                (Mistake(width, "That is one thread's order, not the warp's."), Mistake(k, "That is elements.")),
            ),
            Part(
                "How many sectors does a request of the weight touch?",
                one.sectors,
                "Each lane has a sector of its own.",
            ),
            Part(
                "A warp a row, lanes along K, 16 bytes each: sectors a request?",
                access("i*16", 16).sectors,
                "512 B side by side, all of them used.",
                (Mistake(4, "512 bytes are 16 sectors, and 16 is perfect here."),),
            ),
            Part(
                "How many shuffles does that mapping's reduction take?",
                5,
                "16, 8, 4, 2, 1: the forgotten reduction, small beside the row.",
                (
                    Mistake(31, "Halving takes five steps."),
                    Mistake(0, "Lanes hold partial sums: they must be added up."),
                ),
            ),
        ),
        (
            "gives each thread a row because it needs no reduction",
            "puts the lanes along K, names stride, sectors and the reduction",
            "adds 16-byte loads and bytes in flight; L1 hides the bad mapping's DRAM traffic, not its sectors",
        ),
        ("And if it were [in, out]? Then a thread a column coalesces, see columns.",),
        one.picture,
    )


def ask_int4(random: Random) -> Question:
    """The same for INT4."""
    k = random.choice((2048, 4096, 8192, 11008))
    return Question(
        "int4",
        "The same weight in INT4",
        f"W [N, {k:,}] in INT4, two weights a byte, a warp a row, 16-byte loads.",
        (
            Part(
                "How many weights does one lane's load carry?",
                128 // 4,
                "128 bits of 4.",
                (Mistake(16, "Two weights are in a byte."),),
            ),
            Part("How many a warp's?", 32 * 128 // 4, "32 lanes.", (Mistake(512, "Two weights are in a byte."),)),
            Part(
                "How many bytes of fp32 x do the weights of one lane's load need?",
                32 * 4,
                "32 elements: eight loads of 16 B, from L1.",
            ),
            Part(
                "How many loads a lane for the whole row, rounded up?",
                -(-k // 1024),
                f"{k:,} weights, 1,024 a warp's load.",
            ),
        ),
        (
            "says it is a quarter of the bytes, so four times faster",
            "counts weights a load, and that x is read as often as before: x now costs more than W",
            "takes several rows a warp so that x stays in registers, packs offline for unpacking, or uses mma",
        ),
        ("What is prepacked offline? The order in which lanes unpack, so that a lane's fragment is one 16-byte load.",),
        access("i*16", 16).picture,
    )


def ask_batch(random: Random) -> Question:
    """The same for a batch."""
    dtype, device = random.choice(("bf16", "fp16", "fp8")), load_device(random.choice(_DEVICES[::2]))
    weight = make_weight(4096, 4096, dtype, "NK", 8)
    saturates = find_saturation(weight, device) or 0
    return Question(
        "batch",
        "The same for a batch of 8",
        f"Y = W X, W [4,096, 4,096] of {dtype}, 8 vectors, on {device.name}.",
        (
            Part(
                "How often must the weight be read from DRAM?",
                1,
                "Each weight in registers is multiplied with all 8 elements of the batch.",
                (Mistake(8, "Reuse each weight for all vectors while it is in a register."),),
            ),
            Part("How many FMAs for each weight?", 8, "One a vector."),
            Part(
                "From which batch (a power of two) do FMAs of lanes take longer than reading?",
                saturates,
                "From there on use mma: tensor cores do the same in a fraction of the time.",
            ),
        ),
        (
            "runs the kernel once for each vector",
            "reuses weights from registers, x from shared memory or L1",
            "finds where FMA saturates and moves to mma, whose 8 columns a batch of 8 just fills",
        ),
    )


def ask_columns(random: Random) -> Question:
    """The same for [K, N]."""
    n = random.choice((2048, 4096, 8192))
    one = access("i*2", 2)
    return Question(
        "columns",
        "The same for [K, N]",
        f"W [4,096, {n:,}] in bf16, rows of N contiguous ([in, out]).",
        (
            Part(
                "A thread a column: how many sectors does a request touch?",
                one.sectors,
                "64 B side by side.",
                (Mistake(32, "Lanes run along N here, and N is contiguous."),),
            ),
            Part(
                "How many shuffles does its reduction take?",
                0,
                "Each thread has its column's whole sum.",
                (Mistake(5, "No lane shares a sum."),),
            ),
            Part(
                f"How many threads are there for N = {n:,}?",
                n,
                "One a column: far fewer than the memory needs with 2-byte loads.",
                (Mistake(4096, "That is K."),),
            ),
        ),
        (
            "says it coalesces, so it is fast",
            "sees that too few threads of 2-byte loads keep too little in flight",
            "splits K over warps, takes 16 bytes a lane, and adds the partial sums in shared memory",
        ),
        picture=one.picture,
    )


def ask_tiny(random: Random) -> Question:
    """The same for a tiny K."""
    k = random.choice((32, 64, 128))
    lanes = k * 2 // 16
    return Question(
        "tiny-k",
        "The same for a tiny K",
        f"W [N, {k}] in bf16, rows of K contiguous, 16-byte loads.",
        (
            Part("A warp a row: how many lanes have something to load?", lanes, f"A row is {k * 2} B."),
            Part("How many rows should a warp take at once?", 32 // lanes, "Until every lane loads."),
            Part(
                "How many shuffles does the reduction of those rows take?",
                (lanes - 1).bit_length(),
                f"Within {lanes} lanes.",
                (Mistake(5, "Only the lanes of one row are added up."),),
            ),
        ),
        (
            "leaves lanes idle",
            "lets several rows share a warp, and shortens the reduction",
            "checks that the loads stay side by side: rows follow each other, so the warp reads 512 B",
        ),
        picture=access(f"(i/{lanes})*{k * 2} + i%{lanes}*16", 16).picture,
    )


def ask_doubling(random: Random) -> Question:
    """Why a doubled tile loses."""
    side = random.choice((64, 128))
    product = make_product(4096, 4096, 4096, "fp16", "h100-sxm")
    small = judge_tile(4096, 4096, 4096, (side, side, 64, 3), device="h100-sxm").winner
    threads = make_tile(product, (side, side, 64, 3)).threads
    double = 4 * side * side // threads
    return Question(
        "doubling",
        "Why can a doubled tile lose?",
        f"A block of {threads} threads computes {side} x {side} of C in half precision, three stages of depth 64.",
        (
            Part("How many fp32 accumulators has a thread?", side * side / threads, "The tile over the threads."),
            Part(
                "How many when both sides double and the threads stay?",
                double,
                "Four times as many; past about 210 they spill, with 255 registers a thread.",
                (Mistake(2 * side * side / threads, "Both sides double: four times."),),
            ),
            Part(
                "By which factor does the shared memory of the slices grow?",
                2,
                "2 x T x BK x bytes is linear in T.",
                (Mistake(4, "Slices are T x BK: linear in T. The accumulator is what quadruples."),),
            ),
            Part(
                "How many KB (1,000 B) are the slices before?", small.shared_bytes / 1000, f"{small.shared_bytes:,} B."
            ),
        ),
        (
            "says occupancy falls",
            "names spills past 255 registers, occupancy and waves, with numbers",
            "asks first whether it was above the ridge already: then nothing was to be won",
        ),
        ("Which boundary was the limit? If it was the L2, the doubled tile may still win at one block an SM.",),
    )
