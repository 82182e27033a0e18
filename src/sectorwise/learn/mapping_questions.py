"""Turns a seed into questions on mappings of threads to a weight, with the answers of `advise gemv`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.advise.access import access
from sectorwise.advise.dtypes import find_dtype
from sectorwise.advise.gemv import advise_gemv, find_saturation, make_weight
from sectorwise.device import load_device
from sectorwise.learn.answers import PERCENT
from sectorwise.learn.question import Mistake, Part, Question

if TYPE_CHECKING:
    from random import Random

_DEVICES = ("h100-sxm", "a100-80-sxm", "h200-sxm")


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
                "B",
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
                (
                    Mistake(4, "512 bytes are 16 sectors, and 16 is perfect here."),
                    Mistake(access(f"i*{width}", width).sectors, "That is for scalar loads: 16 bytes a lane here."),
                ),
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
        (_ask_other_order(width),),
        one.picture,
    )


def _ask_other_order(width: int) -> Part:
    return Part(
        "And if it were [in, out], a thread a column: sectors a request?",
        access(f"i*{width}", width).sectors,
        "Lanes side by side: that mapping coalesces, and needs no reduction.",
        (Mistake(32, "N is contiguous there, and lanes run along N."),),
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
                (Mistake(32, "That is elements; an fp32 is 4 bytes."),),
                "B",
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
        (
            Part(
                "How many bytes of x does a lane read for each byte of the weight?",
                32 * 4 / 16,
                "128 B of x beside 16 B of W: several rows a warp, or x in half precision, or mma, whose fragments are "
                "prepacked so that a lane's is one 16-byte load.",
                (Mistake(4, "A byte holds two weights, each with an x of 4 bytes."),),
            ),
        ),
        access("i*16", 16).picture,
    )


def ask_batch(random: Random) -> Question:
    """The same for a batch."""
    dtype, device = random.choice(("bf16", "fp16", "fp8")), load_device(random.choice(_DEVICES[::2]))
    weight = make_weight(4096, 4096, dtype, "NK", 8)
    saturates, few = find_saturation(weight, device) or 0, random.choice((1, 2, 3, 5, 6))
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
        (
            Part(
                f"mma.m16n8k16 with W as its A, the batch along its n. What percentage of its work does a batch "
                f"of {few} waste?",
                100 * (8 - few) / 8,
                f"{few} of 8 columns are used.",
                (Mistake(100 * few / 8, "That is the part that is used."),),
                PERCENT,
            ),
        ),
    )


def ask_columns(random: Random) -> Question:
    """The same for [K, N]."""
    n, k = random.choice((2048, 4096, 8192)), random.choice((1024, 4096, 11008))
    split = advise_gemv(n, k, layout="KN", crossovers=False)
    one = access("i*2", 2)
    return Question(
        "columns",
        "The same for [K, N]",
        f"W [{k:,}, {n:,}] in bf16, rows of N contiguous ([in, out]).",
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
                (Mistake(k, "That is K."),),
            ),
        ),
        (
            "says it coalesces, so it is fast",
            "sees that too few threads of 2-byte loads keep too little in flight",
            "splits K over warps, takes 16 bytes a lane, and adds the partial sums in shared memory",
        ),
        (
            Part(
                "16 bytes a lane, and K split over 32 warps: how many threads then?",
                split.find("a thread 8 columns, K/32").cost.threads,
                f"{n:,} / 8 columns a thread, 32 times as many for the split.",
                (Mistake(32 * n, "A lane of 16 bytes takes eight columns: an eighth of the lanes."),),
            ),
        ),
        one.picture,
    )


def ask_tiny(random: Random) -> Question:
    """The same for a tiny K."""
    row_bytes, dtype = random.choice((32, 64, 128, 256)), find_dtype(random.choice(("bf16", "fp8", "fp32")))
    k, lanes = 8 * row_bytes // dtype.bits, row_bytes // 16
    packed = access(f"(i/{lanes})*{row_bytes} + i%{lanes}*16", 16)
    return Question(
        "tiny-k",
        "The same for a tiny K",
        f"W [N, {k}] in {dtype.name}, rows of K contiguous, 16-byte loads.",
        (
            Part("A warp a row: how many lanes have something to load?", lanes, f"A row is {row_bytes} B."),
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
        (
            Part(
                "How many sectors does one such load of the warp touch?",
                packed.sectors,
                "Rows follow each other: 512 B side by side.",
                (Mistake(lanes // 2, "That is one row."),),
            ),
        ),
        packed.picture,
    )
