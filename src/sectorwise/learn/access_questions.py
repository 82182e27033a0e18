"""Turns a seed into questions on lanes, sectors, banks and records, with the answers of `sectorwise access`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.advise.access import access, access_cpu
from sectorwise.learn.answers import PERCENT
from sectorwise.learn.question import Mistake, Part, Question

if TYPE_CHECKING:
    from random import Random


def ask_coalescing(random: Random) -> Question:
    """Coalescing, and lane order."""
    step, factor = random.choice((2, 4, 8, 16)), random.choice((5, 7, 11, 13))
    permuted, strided, vectors = access(f"(i*{factor}%32)*4"), access(f"i*{4 * step}"), access("i*16", 16)
    return Question(
        "coalescing",
        "What is coalescing?",
        "The lanes of a warp load 4-byte elements from an array that begins at a multiple of 128 bytes.",
        (
            Part(
                f"Lane i loads element ({factor} i) mod 32. How many 32-byte sectors?",
                permuted.sectors,
                "Only the set of bytes counts: 32 lanes x 4 B in one line are 4 sectors in any order.",
                (Mistake(32, "The order of lanes does not matter inside a line."),),
            ),
            Part(
                f"Lane i loads element {step} i. How many sectors?",
                strided.sectors,
                f"Lanes are {4 * step} B apart, a sector is 32 B: {strided.sectors} sectors.",
                (
                    Mistake(4 * step, "A warp has 32 lanes: it never touches more than 32 sectors with 4-byte loads."),
                    Mistake(4, "That is one thread's order; look at what the warp's lanes do at one instruction."),
                    Mistake(strided.lines, "Those are 128-byte lines; sectors are 32 B."),
                ),
            ),
            Part(
                "What percentage of the bytes in those sectors is used?",
                100 * strided.efficiency,
                f"{strided.useful_bytes} of {32 * strided.sectors} B.",
                unit=PERCENT,
            ),
        ),
        (
            "says neighbouring threads should read neighbouring addresses",
            "says the requests of a warp's lanes at one instruction are served in 32-byte sectors, counts them",
            "adds that order inside them is free, that stride 8 is already the floor, and what DRAM's 64 B add",
        ),
        (
            Part(
                "Each lane loads 16 bytes, side by side. How many sectors?",
                vectors.sectors,
                "512 B, packed: 16 is perfect here, four times the bytes in one request.",
                (Mistake(4, "That is the least for 4-byte loads."),),
            ),
        ),
        strided.picture,
    )


def ask_banks(random: Random) -> Question:
    """Banks, and a column of a tile."""
    offset, pitch = 4 * random.randrange(1000, 5000), random.choice((32, 33, 34, 36, 40, 48))
    column = access(f"i*{4 * pitch}", space="shared")
    return Question(
        "banks",
        "Banks of shared memory",
        f"A block has a tile of floats, tile[32][{pitch}], in shared memory.",
        (
            Part(
                f"In which bank is the word at byte {offset:,}?",
                offset // 4 % 32,
                "Bank = (byte / 4) mod 32.",
                (Mistake(offset % 32, "Divide by the 4 bytes of a bank first."),),
            ),
            Part(
                "A warp reads a column of the tile, lane i row i. How many wavefronts?",
                column.wavefronts,
                f"Rows are {pitch} words apart, {pitch % 32} modulo 32.",
                (
                    Mistake(1, "Lanes of one column share banks unless the pitch is odd."),
                    Mistake(32, "The pitch is no multiple of 32 words here."),
                ),
            ),
        ),
        (
            "knows that there are 32 banks",
            "computes the bank from the byte, and the conflict from the pitch modulo 32",
            "names the price of padding, and when a swizzle of 16-byte chunks is needed instead",
        ),
        (
            Part(
                "Each lane loads 16 bytes, side by side. How many wavefronts?",
                access("i*16", 16, space="shared").wavefronts,
                "512 B through 32 banks of 4 B: four passes are the ideal, and no conflict.",
                (Mistake(1, "A pass moves 128 B at most, and these are 512."),),
            ),
        ),
        column.picture,
    )


def ask_swizzles(random: Random) -> Question:
    """Why production matrix products swizzle."""
    pitch, row = random.choice((64, 128, 256)), random.choice((1, 3, 4, 6))
    chunks = [[word ^ row for word in range(first, first + 4)] for first in range(0, 32, 4)]
    rows = f"(i%8)*{pitch}+(i/8)*16"
    plain = access(rows, 16, space="shared", operation="matrix_load")
    padded = access(f"(i%8)*{pitch + 16}+(i/8)*16", 16, space="shared", operation="matrix_load")
    groups = 8 * 4 // max(1, plain.wavefronts // 4) // 4
    swizzled = access("Swizzle<3,4,3>((i%8)*128+(i/8)*16)", 16, space="shared", operation="matrix_load")
    return Question(
        "swizzles",
        "Why do production matrix products swizzle?",
        f"ldmatrix.x4 reads four 8x8 matrices of halves, each eight rows of 16 bytes. Rows of the tile are {pitch} "
        "bytes apart.",
        (
            Part(
                "How many wavefronts without padding?",
                plain.wavefronts,
                f"Eight rows {pitch} B apart fall into {groups} {'group' if groups == 1 else 'groups'} of banks.",
                (Mistake(1, "Each matrix is a pass of its own: four are the least."),),
            ),
            Part("And with 16 bytes of padding a row?", padded.wavefronts, "Each row starts four banks further on."),
            Part(
                "And with rows of 128 bytes under Swizzle<3,4,3>?",
                swizzled.wavefronts,
                "The row's number is XORed into the 16-byte chunk's: no memory more, and chunks stay whole.",
            ),
        ),
        (
            "says swizzling avoids bank conflicts",
            "says that padding would too, but costs memory and breaks what copies of whole tiles expect",
            "says that XOR acts on 16-byte chunks, so that vector loads and ldmatrix find their elements in order",
        ),
        (
            Part(
                f"Single floats at column c XOR r instead: in row {row}, how many of the eight 16-byte chunks have "
                "their words out of order?",
                sum(chunk != sorted(chunk) for chunk in chunks),
                f"XOR with {row} moves words by {row % 4} inside their chunk: where that is not 0, ldmatrix reads the "
                "wrong elements.",
                (Mistake(8 if row % 4 == 0 else 0, "The row's two low bits act inside a chunk, the others move it."),),
            ),
        ),
        plain.picture,
    )


def ask_records(random: Random) -> Question:
    """When an array of structs."""
    fields = random.choice((4, 6, 8, 12, 16))
    size = 4 * fields
    one = access(f"i*{size}")
    return Question(
        "records",
        "When an array of structs?",
        f"A record has {fields} floats, {size} bytes. One thread handles one record.",
        (
            Part(
                "A kernel reads one field. How many sectors a warp, as an array of structs?",
                one.sectors,
                f"Lanes are {size} B apart.",
                (
                    Mistake(one.lines, "Those are 128-byte lines."),
                    Mistake(4, "That would be an array of that field alone."),
                ),
            ),
            Part("And as an array for each field?", access("i*4").sectors, "32 neighbouring floats: 128 B."),
            Part(
                "Records at random places, every field read: sectors a record in arrays?",
                fields,
                "Each field lies in a sector of its own; a struct packs them into a few.",
                (Mistake(1, "Fields of one record lie in different arrays, far apart."),),
            ),
        ),
        (
            "says struct of arrays is faster on GPUs",
            "says it depends on which fields are touched: streaming all of them costs the same either way",
            "adds random records, where structs win, and blocks of structs of arrays of 32 or 64 bytes",
        ),
        (
            Part(
                "A CPU thread reads that field of 64 records, as an array of structs. How many lines of 64 bytes?",
                access_cpu(f"i*{size}", 4, count=64).lines,
                f"64 fields {size} B apart: the same argument with one lane and other lines.",
                (Mistake(4, "That would be an array of that field alone."),),
            ),
        ),
        one.picture,
    )


def ask_transpose(random: Random) -> Question:
    """Why a naive transpose is slow, and why its obvious fix is."""
    width, side = random.choice((2, 4, 8)), random.choice((1024, 2048, 4096, 8192))
    row, column = access(f"i*{width}", width), access(f"i*{side * width}", width)
    tile, padded = (access(f"i*{pitch * width}", width, space="shared") for pitch in (32, 33))
    return Question(
        "transpose",
        "Why is a naive transpose slow, and why is its obvious fix?",
        f"A matrix of {width}-byte elements, {side:,} x {side:,}. Each warp reads 32 neighbouring elements of a row.",
        (
            Part(
                "It writes them down a column. How many sectors does a store touch?",
                column.sectors,
                f"Lanes are {side * width:,} B apart: each has a sector of its own.",
                (Mistake(row.sectors, "That is the reading side."),),
            ),
            Part("How many would a row take?", row.sectors, f"32 x {width} B, packed."),
            Part(
                "Through tile[32][32] both sides are rows. How many wavefronts does a read of the tile's column take?",
                tile.wavefronts,
                f"Rows are {32 * width} B apart: the obvious fix has moved the conflict into shared memory.",
                (Mistake(1, "Without padding the column's words share banks."),),
            ),
        ),
        (
            "says writes are not coalesced",
            "counts sectors on both sides, and the bank conflicts of the plain tile",
            "pads or swizzles, checks 2- and 8-byte elements, and compares with a copy as the limit",
        ),
        (
            Part(
                "tile[32][33] instead. How many wavefronts does its column take now?",
                padded.wavefronts,
                f"Rows are {33 * width} B apart, 33 elements. The limit is a copy, and this is within a few percent.",
                (Mistake(tile.wavefronts, "One element more a row moves each row to other banks."),),
            ),
        ),
        column.picture,
    )
