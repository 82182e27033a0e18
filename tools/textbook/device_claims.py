"""Turns statements on devices into claims with numbers."""

from __future__ import annotations

import sectorwise as sw
from sectorwise.device import load_device, require_capability
from tools.textbook.claim import Claim, Number, executed, held, ratio, total
from tools.textbook.costs import layouts, mappings


def limits(name: str) -> tuple[int, int, int]:
    """KiB of shared memory an SM, KiB a block, threads an SM."""
    found = require_capability(load_device(name))
    return found.shared_per_sm_bytes // 1024, found.shared_per_block_optin_bytes // 1024, found.max_threads_per_sm


def sectors_a_record(row: str) -> float:
    """Sectors from the L2 for each of 2^20 records, less those of their numbers."""
    return total(row, "l2_sectors_read_from_sm") / 2**20 - 1 / 8


DEVICES = (
    Claim(
        "N1",
        "Shared memory is 228 KB (H100), 164 KB (A100).",
        "true of an SM",
        "A block gets at most 227 and 163 KB, and each block costs 1 KB more.",
        "sectorwise table devices",
        (
            Number("H100, an SM", lambda: limits("h100-sxm")[0], 228),
            Number("H100, a block", lambda: limits("h100-sxm")[1], 227),
            Number("A100, an SM", lambda: limits("a100-80-sxm")[0], 164),
            Number("A100, a block", lambda: limits("a100-80-sxm")[1], 163),
        ),
        (
            Number("H200, an SM", lambda: held("s_stage_227k", "shared_config_bytes") / 1024, 228),
            Number("a block of 227 KB takes", lambda: held("s_stage_227k", "shared_allocated_bytes") / 1024, 228),
            Number("blocks of 113 KB an SM", lambda: held("s_stage_113k", "limit_shared"), 2),
            Number("of 114 KB", lambda: held("s_stage_114k", "limit_shared"), 1),
        ),
    ),
    Claim(
        "N2",
        "2,048 threads an SM.",
        "true of 7.0, 8.0, 9.0 and 10.0",
        "1,536 on 8.6, 8.7, 8.9 and 12.x, 1,024 on 7.5.",
        "sectorwise table devices",
        (
            Number("H100", lambda: limits("h100-sxm")[2], 2048),
            Number("RTX 4090", lambda: limits("rtx4090")[2], 1536),
            Number("T4", lambda: limits("t4")[2], 1024),
        ),
        (Number("H200", lambda: held("s_records_ten", "limit_warps") * 256, 2048),),
    ),
    Claim(
        "N3",
        "The widest load is 16 bytes a lane.",
        "false from sm_100 on",
        "32 bytes there.",
        "sectorwise access 'i*32' --width 32",
        (Number("sectors of 32 bytes a lane", lambda: sw.access("i*32", 32).sectors, 32),),
        (Number("loads of a structure of 32 bytes, H200", lambda: executed("s_copy_32", "LDG") / (4096 * 8), 2),),
    ),
    Claim(
        "N4",
        "A warp reduction is five shuffles (16, 8, 4, 2, 1), against 8,192 bytes streamed a row.",
        "true",
        "As stated; each shuffle has an addition.",
        "sectorwise advise gemv --shape 4096,4096",
        (
            Number(
                "instructions",
                lambda: mappings(4096, 4096).find("a warp a row, 16-byte loads").reduction_instructions,
                10,
            ),
            Number("bytes a row", lambda: 4096 * 2, 8192),
        ),
        (
            Number(
                "instructions",
                lambda: (total("s_gemv_reduced", "instructions") - total("s_gemv_unreduced", "instructions")) / 4096,
                10,
            ),
            Number("times the time without", lambda: ratio("s_gemv_reduced", "s_gemv_unreduced"), 1.03, 0.01),
        ),
    ),
    Claim(
        "N5",
        "A single record of 48 bytes: one prefetch stream and one TLB entry as an array of structs, one for each field as separate arrays.",
        "true in kind",
        "Six 8-byte fields in six arrays are six of each.",
        "sectorwise advise records --record 'a:f8[6]' --touch '*'",
        (
            Number("streams of structs", lambda: sw.advise_records("a:f8[6]", "*").find("array of structs").streams, 1),
            Number("of arrays", lambda: sw.advise_records("a:f8[6]", "*").find("struct of arrays").streams, 6),
            Number("pages in arrays", lambda: sw.advise_records("a:f8[6]", "*").find("struct of arrays").pages, 6),
            Number("streams of twelve fields", lambda: layouts("*").find("struct of arrays").streams, 12),
        ),
        (
            Number("sectors a record at random places, structs", lambda: sectors_a_record("s_six_structs"), 2, 0.01),
            Number("six arrays", lambda: sectors_a_record("s_six_arrays"), 6, 0.01),
            Number("times slower", lambda: ratio("s_six_arrays", "s_six_structs"), 4.1, 0.01),
        ),
    ),
)
