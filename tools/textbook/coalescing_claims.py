"""Turns statements on coalescing into claims with numbers."""

from __future__ import annotations

import sectorwise as sw
from tools.textbook.claim import Claim, Number, executed, ratio, request, total
from tools.textbook.costs import mappings, needed_kb, reach


def matrices(row: str) -> float:
    """How often the matrix of 264 x 1,024 rows of 256 halves came from the L2."""
    return total(row, "l2_sectors_read_from_sm") * 32 / (264 * 1024 * 256 * 2)


COALESCING = (
    Claim(
        "C1",
        "A warp reading 32 consecutive 4-byte values touches 4 sectors, 128 bytes, 100 %.",
        "true",
        "4 sectors in one line.",
        "sectorwise access 'i*4'",
        (
            Number("sectors", lambda: reach("i*4").sectors, 4),
            Number("efficiency", lambda: reach("i*4").efficiency, 1.0),
        ),
        (Number("sectors", lambda: request("k_copy", "LDG", "sectors"), 4),),
    ),
    Claim(
        "C2",
        "Stride 2 touches 8 sectors, 50 %; stride 4 touches 16, 25 %.",
        "true",
        "As stated.",
        "sectorwise access 'i*8'",
        (Number("stride 2", lambda: reach("i*8").sectors, 8), Number("stride 4", lambda: reach("i*16").sectors, 16)),
        (
            Number("stride 2", lambda: request("k_ld_f32_stride2", "LDG", "sectors"), 8),
            Number("stride 4", lambda: request("k_ld_f32_stride4", "LDG", "sectors"), 16),
        ),
    ),
    Claim(
        "C3",
        "The floor of 32 sectors, 12.5 %, is reached at stride 32.",
        "false",
        "It is reached at stride 8 already, a sector a lane; from stride 16 on DRAM fetches 64 bytes for each lane, twice that of stride 8.",
        "sectorwise access 'i*32'",
        (
            Number("sectors at stride 8", lambda: reach("i*32").sectors, 32),
            Number("sectors at stride 4", lambda: reach("i*16").sectors, 16),
            Number("DRAM bytes a lane at stride 8", lambda: reach("i*32").dram_bytes / 32, 32),
            Number("DRAM bytes a lane at stride 16", lambda: reach("i*64").dram_bytes / 32, 64),
        ),
        (
            Number(
                "DRAM bytes a lane at stride 8", lambda: total("t_read_stride8", "dram_bytes_read") / 2**23, 32, 0.01
            ),
            Number(
                "DRAM bytes a lane at stride 32", lambda: total("t_read_stride32", "dram_bytes_read") / 2**21, 64, 0.01
            ),
        ),
    ),
    Claim(
        "C4",
        "Lane order does not matter: a permutation inside 128 bytes is perfect.",
        "true, inside 128 bytes",
        "4 sectors for any order inside a line; a permutation across 1 KiB touches 16 a request.",
        "sectorwise access '(i*13%32)*4'",
        (
            Number("inside 128 B", lambda: reach("(i*13%32)*4").sectors, 4),
            Number("in reverse", lambda: reach("(31-i)*4").sectors, 4),
        ),
        (
            Number("inside 128 B", lambda: request("k_ld_f32_perm_in_line", "LDG", "sectors"), 4),
            Number("across 1 KiB", lambda: request("k_ld_f32_perm_in_block", "LDG", "sectors"), 16, 0.25),
        ),
    ),
    Claim(
        "C5",
        "All lanes at one address: one sector.",
        "true",
        "As stated.",
        "sectorwise access '0*i'",
        (Number("sectors", lambda: reach("0*i").sectors, 1),),
        (Number("sectors", lambda: request("k_ld_f32_bcast", "LDG", "sectors"), 1),),
    ),
    Claim(
        "C6",
        "A 16-byte load covers 512 bytes a warp in 16 sectors.",
        "true",
        "As stated.",
        "sectorwise access 'i*16' --width 16",
        (Number("sectors", lambda: reach("i*16", 16).sectors, 16),),
        (Number("sectors", lambda: request("k_ld_f32x4", "LDG", "sectors"), 16),),
    ),
    Claim(
        "C7",
        "32 rows of a [4096, 4096] BF16 matrix, one lane each: lanes 8,192 bytes apart, 32 sectors for 64 useful bytes, 6.25 %; ideal 4 sectors.",
        "true but for the ideal",
        "The ideal of a 2-byte load is 2 sectors. Averaged with the load of x, a sector, it is 16.5 a request.",
        "sectorwise access 'i*8192' --width 2",
        (
            Number("sectors", lambda: reach("i*8192", 2).sectors, 32),
            Number("ideal", lambda: reach("i*8192", 2).sectors_ideal, 2),
            Number("efficiency", lambda: reach("i*8192", 2).efficiency, 0.0625),
            Number("lane stride", lambda: mappings(4096, 4096).find("a thread a row").lane_stride_bytes, 8192),
        ),
        (
            Number(
                "sectors a request",
                lambda: (
                    total("k_gemv_thread_per_row_4096", "global_load_sectors")
                    / total("k_gemv_thread_per_row_4096", "global_load_requests")
                ),
                16.5,
                0.001,
            ),
        ),
    ),
    Claim(
        "C8",
        "L1 can hide the DRAM cost of that mapping, not its sectors.",
        "true",
        "One matrix comes from DRAM, 33.6 MB, though the time is some thirty times that of a warp a row.",
        "sectorwise advise gemv --shape 4096,4096",
        (
            Number(
                "times slower",
                lambda: (
                    mappings(4096, 4096).find("a thread a row").cost.time_ns / mappings(4096, 4096).winner.cost.time_ns
                ),
                30,
                0.35,
            ),
        ),
        (
            Number("times slower", lambda: ratio("k_gemv_thread_per_row_4096", "c_gemv_warp_a_row_4096"), 29, 0.02),
            Number(
                "matrices from DRAM",
                lambda: total("k_gemv_thread_per_row_4096", "dram_bytes_read") / (2 * 4096**2),
                1,
                0.01,
            ),
        ),
    ),
    Claim(
        "C9",
        "... until many resident warps evict the sectors.",
        "depends",
        "2,048 threads an SM hold 64 KB of live sectors, a quarter of an H200's L1: compute it.",
        "sectorwise advise gemv --shape 4096,4096",
        (
            Number("live bytes", lambda: 2048 * 32, 65536),
            Number("part of L1", lambda: 65536 / sw.occupancy(1024, 32).l1_bytes, 0.25, 0.2),
        ),
        (
            Number("matrices from the L2 where L1 has 248 KB", lambda: matrices("s_thread_a_row_much_l1"), 1.16, 0.01),
            Number("where it has 28 KB", lambda: matrices("s_thread_a_row_little_l1"), 15.4, 0.01),
            Number("times slower", lambda: ratio("s_thread_a_row_little_l1", "s_thread_a_row_much_l1"), 1.98, 0.01),
        ),
    ),
    Claim(
        "C10",
        "Storing the weight [K, N] makes one thread a column coalesce, with no reduction.",
        "true, and still slow",
        "2 sectors a request, but few threads of 2-byte loads keep too little in flight: many times slower than a warp a row.",
        "sectorwise advise gemv --shape 4096,4096 --layout KN",
        (
            Number("sectors", lambda: mappings(4096, 4096, "KN").find("a thread a column").weight_sectors, 2),
            Number("threads", lambda: mappings(4096, 4096, "KN").find("a thread a column").cost.threads, 4096),
            Number(
                "times slower",
                lambda: (
                    mappings(4096, 4096, "KN").find("a thread a column").cost.time_ns
                    / mappings(4096, 4096).winner.cost.time_ns
                ),
                20,
                0.35,
            ),
        ),
        (
            Number("sectors", lambda: request("t_gemv_tpc_14336", "LDG.E.U16", "sectors"), 2),
            Number(
                "times slower than a warp a row",
                lambda: ratio("c_gemv_thread_a_column_4096", "c_gemv_warp_a_row_4096"),
                20,
                0.02,
            ),
            Number(
                "times slower than a warp a row of 2-byte loads, 14336 x 4096",
                lambda: ratio("t_gemv_tpc_14336", "t_gemv_scalar_14336"),
                7,
                0.05,
            ),
        ),
    ),
    Claim(
        "C11",
        "2-byte scalar loads along K coalesce but need eight times the instructions of 16-byte loads.",
        "true",
        "Loads of the weight, that is; the time differs little where the memory is busy anyway.",
        "sectorwise advise gemv --shape 14336,4096",
        (
            Number("times the loads", lambda: 16 / 2, 8),
            Number(
                "times the time",
                lambda: (
                    mappings(14336, 4096).find("a warp a row, 2-byte loads").cost.time_ns
                    / mappings(14336, 4096).find("a warp a row, 16-byte loads").cost.time_ns
                ),
                1.1,
                0.1,
            ),
        ),
        (Number("times the time", lambda: ratio("t_gemv_scalar_14336", "c_gemv_warp_a_row_14336"), 1.1, 0.01),),
    ),
    Claim(
        "C12",
        "INT4, two a byte: a 16-byte lane load carries 32 weights, a warp 1,024.",
        "true",
        "As stated.",
        "sectorwise advise gemv --shape 4096,4096 --dtype int4",
        (
            Number(
                "a warp",
                lambda: 32 * 8 * mappings(4096, 4096, "NK", "int4").find("a warp a row, 16-byte loads").load_bytes / 4,
                1024,
            ),
        ),
        (Number("a warp", lambda: 4096 * 4096 / executed("s_gemv_int4", "LDG.E.128"), 1024),),
    ),
    Claim(
        "C13",
        "Vector loads are often the largest single win in a coalesced kernel.",
        "true where little is in flight",
        "One 4-byte element a thread keeps 8 KB an SM in flight, a 16-byte one 32 KB; several 4-byte elements a thread do as well.",
        "sectorwise table devices",
        (
            Number("KB in flight needed, H200", needed_kb, 23, 0.1),
            Number("KB of 2,048 4-byte loads", lambda: 2048 * 4 / 1000, 8.192),
        ),
        (
            Number("us with 4 bytes", lambda: total("c_copy_f32", "time_ns") / 1000, 198, 0.01),
            Number("us with 16 bytes", lambda: total("t_copy_f32x4", "time_ns") / 1000, 124, 0.01),
            Number("us with four of 4 bytes", lambda: total("c_copy_f32_four", "time_ns") / 1000, 126, 0.01),
        ),
    ),
)
