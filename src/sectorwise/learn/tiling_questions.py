"""Turns a seed into questions on tiles, waves and what an SM holds, with the answers of `tile` and `occupancy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.advise.tile_shapes import make_product, make_tile
from sectorwise.advise.tiles import judge_tile
from sectorwise.device import load_device
from sectorwise.learn.answers import PERCENT
from sectorwise.learn.question import Mistake, Part, Question
from sectorwise.model.latency import describe_memory
from sectorwise.model.occupancy import occupancy
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from random import Random

_DEVICES = ("h100-sxm", "a100-80-sxm", "h200-sxm")


def ask_intensity(random: Random) -> Question:
    """A tile's intensity, and the tile that the ridge needs."""
    bm, bn, device = random.choice((64, 128)), random.choice((128, 256)), load_device(random.choice(_DEVICES))
    cost = judge_tile(4096, 4096, 4096, (bm, bn, 32, 3), device=device.id).winner
    square = judge_tile(4096, 4096, 4096, (128, 128, 32, 3), device=device.id).winner
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
        (
            Part(
                f"Tiles of 128 x 128 at {peak:.4g} TFLOP/s: how many TB/s do they ask of the L2?",
                peak / square.boundary("l2").intensity,
                f"{square.boundary('l2').intensity:.4g} FLOP/byte. Compute-bound? Say at which boundary: at this one "
                f"the ridge is {square.boundary('l2').ridge:.3g}.",
            ),
        ),
    )


def ask_sixty_percent(random: Random) -> Question:
    """Causes of 60 %."""
    device = load_device("h100-sxm")
    blocks = device.sm_count * random.choice((1, 2, 3)) + random.choice((4, 8, 16, 33))
    waves = count_waves(blocks, 1, device.sm_count)
    held = occupancy(256, random.choice((64, 96, 128)), device=device)
    width = random.choice((2, 4, 8, 16))
    flying_bytes = held.warps_per_sm * 32 * width
    needed_bytes = describe_memory(device).needed_bytes(0.95) / device.sm_count
    return Question(
        "sixty-percent",
        "A kernel reaches 60 % of what it should. Why?",
        f"{device.name}: {device.sm_count} SMs, {blocks} blocks of equal length, one an SM at a time.",
        (
            Part(
                "How full is the last wave, in percent?",
                waves.last_wave_pct,
                f"{waves.blocks_last_wave} of {device.sm_count} SMs have a block.",
                unit=PERCENT,
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
        (
            Part(
                f"A third cause: each lane of those warps waits for one {width}-byte load. How many KB (1,000 B) has "
                "an SM on its way?",
                flying_bytes / 1000,
                f"{held.warps_per_sm} warps x 32 lanes x {width} B. 95 % of full speed needs "
                f"{needed_bytes / 1000:.3g} KB: this is {'enough' if flying_bytes >= needed_bytes else 'too little'}.",
                (Mistake(width * held.warps_per_sm / 1000, "A warp has 32 lanes."),),
                "KB",
            ),
        ),
    )


def ask_doubling(random: Random) -> Question:
    """Why a doubled tile loses."""
    side, depth, stages = random.choice((64, 128)), random.choice((32, 64)), random.choice((2, 3))
    product = make_product(4096, 4096, 4096, "fp16", "h100-sxm")
    small = judge_tile(4096, 4096, 4096, (side, side, depth, stages), device="h100-sxm").winner
    threads = make_tile(product, (side, side, depth, stages)).threads
    double = 4 * side * side // threads
    held = occupancy(threads, 32, 2 * small.shared_bytes, device=product.device)
    return Question(
        "doubling",
        "Why can a doubled tile lose?",
        f"A block of {threads} threads computes {side} x {side} of C in half precision, {stages} stages of depth "
        f"{depth}.",
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
                "How many KB (1,000 B) are the slices before?",
                small.shared_bytes / 1000,
                f"{stages} stages of 2 x {side} x {depth} halves: {small.shared_bytes:,} B.",
                (Mistake(small.shared_bytes / (1000 * stages), f"There are {stages} stages of them."),),
                "KB",
            ),
        ),
        (
            "says occupancy falls",
            "names spills past 255 registers, occupancy and waves, with numbers",
            "asks first whether it was above the ridge already: then nothing was to be won",
        ),
        (
            Part(
                f"How many blocks with the doubled slices does the shared memory of an SM hold? {product.device.name}.",
                held.limit_shared_max_carveout or 0,
                f"{2 * small.shared_bytes:,} B each and 1,024 B more, of 233,472 B. Which boundary was the limit? If "
                "it was the L2, the doubled tile may still win at one block an SM.",
            ),
        ),
    )
