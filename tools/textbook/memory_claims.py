"""Turns statements on coalescing, records and shared memory into claims with numbers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import sectorwise as sw
from sectorwise.layout.swizzle import Swizzle
from tools.textbook.claim import Claim, Number, executed, ratio, request, total

if TYPE_CHECKING:
    from sectorwise.advise.access import AccessCost
    from sectorwise.advise.gemv import Mapping
    from sectorwise.advise.ranking import Ranking
    from sectorwise.advise.records import RecordLayout
    from sectorwise.advise.transpose import TransposeWay

PARTICLE = "x:f4,y:f4,z:f4,vx:f4,vy:f4,vz:f4,m:f4,q:f4,r:f4,s:f4,t:f4,u:f4"


@cache
def reach(where: str, width: int = 4, space: str = "global", operation: str = "load") -> AccessCost:
    """What one access costs."""
    return sw.access(where, width, space=space, operation=operation)


@cache
def mappings(n: int, k: int, layout: str = "NK", dtype: str = "bf16") -> Ranking[Mapping]:
    """Mappings of a matrix-vector product on an H200."""
    return sw.advise_gemv(n, k, dtype, layout, crossovers=False)


@cache
def layouts(touch: str, pattern: str = "stream") -> Ranking[RecordLayout]:
    """Layouts of the particle for one kernel."""
    return sw.advise_records(PARTICLE, touch, pattern=pattern)


@cache
def transposes() -> Ranking[TransposeWay]:
    """Ways of transposing 8192 x 8192 floats."""
    return sw.advise_transpose(8192, 8192)


def spread_over_chunks(offset: int) -> int:
    """16-byte groups that XOR of 4-byte columns with the row puts out of order, of the eight of row `offset`."""
    groups = ([word ^ offset for word in range(first, first + 4)] for first in range(0, 32, 4))
    return sum(group != sorted(group) for group in groups)


def matrices(row: str) -> float:
    """How often the matrix of 264 x 1,024 rows of 256 halves came from the L2."""
    return total(row, "l2_sectors_read_from_sm") * 32 / (264 * 1024 * 256 * 2)


def needed_kb() -> float:
    """What keeps 95 % of an H200's bandwidth busy, an SM."""
    from sectorwise.device import load_device
    from sectorwise.model.latency import describe_memory

    device = load_device("h200")
    return describe_memory(device).needed_bytes(0.95) / device.sm_count / 1000


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


RECORDS = (
    Claim(
        "L1",
        "One 4-byte field of a 48-byte record: 12 to 16 sectors, about 25 %.",
        "false",
        "32 sectors, 12.5 %: at a pitch of 48 bytes each lane has a sector of its own; 12 is the number of lines.",
        "sectorwise access 'i*48'",
        (
            Number("sectors", lambda: reach("i*48").sectors, 32),
            Number("lines", lambda: reach("i*48").lines, 12),
            Number(
                "times slower than an array",
                lambda: (
                    layouts("x").find("array of structs").cost.time_ns
                    / layouts("x").find("struct of arrays").cost.time_ns
                ),
                4,
                0.25,
            ),
        ),
        (
            Number("sectors", lambda: request("k_aos48_one", "LDG", "sectors"), 32),
            Number("times slower than an array", lambda: ratio("c_aos48_one", "c_soa_one"), 3.92, 0.01),
        ),
    ),
    Claim(
        "L2",
        "A 48-byte record is one sector.",
        "false",
        "48 bytes need two sectors at least, and cover exactly two from an aligned base.",
        "sectorwise access 'i/3*48 + i%3*16' --width 16 --mask 'i<30'",
        (
            Number("sectors of ten records", lambda: sw.access("i/3*48 + i%3*16", 16, mask="i<30").sectors, 15),
            Number("sectors of one at byte 48", lambda: sw.access("48 + i*16", 16, mask="i<3").sectors, 2),
            Number("sectors of one at byte 0", lambda: sw.access("i*16", 16, mask="i<3").sectors, 2),
        ),
        (
            Number("sectors of ten records", lambda: request("s_records_ten", "LDG.E.128", "sectors"), 15),
            Number("sectors of one, at any place", lambda: request("s_records_one", "LDG.E.128", "sectors"), 2),
        ),
    ),
    Claim(
        "L3",
        "All fields of every record: array-of-structs wins.",
        "equal, where they are streamed",
        "Streaming takes the same time either way. Few records at random places: two sectors a record against one for each field.",
        "sectorwise advise records --record 'x:f4[12]' --touch '*' --access random",
        (
            Number(
                "streamed, structs over arrays",
                lambda: (
                    layouts("*").find("array of structs").cost.time_ns
                    / layouts("*").find("struct of arrays").cost.time_ns
                ),
                1,
                0.05,
            ),
            Number(
                "sectors a record, structs",
                lambda: layouts("*", "random").find("array of structs").distinct_sectors / 32,
                2,
                0.01,
            ),
            Number(
                "sectors a record, arrays",
                lambda: layouts("*", "random").find("struct of arrays").distinct_sectors / 32,
                12,
                0.01,
            ),
        ),
        (
            Number("streamed, structs over arrays", lambda: ratio("t_aos48_all", "t_soa_all"), 1.01, 0.01),
            Number("random, arrays over structs", lambda: ratio("c_soa_random", "c_aos48_random"), 7.1, 0.01),
        ),
    ),
    Claim(
        "L4",
        "An array of structs of arrays needs inner blocks of 32.",
        "false",
        "32 bytes are enough for sectors, 64 for DRAM; 32 elements keep a warp's line whole.",
        "sectorwise advise records --record 'x:f4[12]' --touch x0",
        (
            Number("sectors in blocks of 8", lambda: layouts("x").find("blocks of 8").sectors_per_warp, 4),
            Number("sectors in blocks of 4", lambda: layouts("x").find("blocks of 4").sectors_per_warp, 8),
            Number(
                "DRAM bytes a record in blocks of 16",
                lambda: layouts("x").find("blocks of 16").dram_bytes_per_record,
                4,
            ),
            Number(
                "DRAM bytes a record in blocks of 8", lambda: layouts("x").find("blocks of 8").dram_bytes_per_record, 8
            ),
        ),
        (Number("sectors of three fields, blocks of 32", lambda: request("k_aosoa32_three", "LDG", "sectors"), 4),),
    ),
    Claim(
        "L5",
        "The same argument holds on a CPU with 64-byte lines and one lane.",
        "true",
        "A 48-byte record covers one line or two; of one field 4 bytes of each 64 are used.",
        "sectorwise access 'i*48' --cpu 64",
        (
            Number("lines of 64 fields", lambda: sw.access_cpu("i*48", 4, count=64).lines, 48),
            Number("records over two lines, of 64", lambda: sw.access_cpu("i*48", 48, count=64).split_accesses, 32),
        ),
        unmeasured="nothing on a GPU: these are the lines of a CPU",
    ),
)

SHARED = (
    Claim(
        "S1",
        "Bank = (byte address / 4) mod 32; byte 4224 is bank 0.",
        "true",
        "As stated.",
        "sectorwise access '4224+0*i' --space shared",
        (
            Number("bank", lambda: 4224 // 4 % 32, 0),
            Number("wavefronts of bytes 0 and 4224", lambda: reach("i%2*4224", 4, "shared").wavefronts, 2),
            Number("of bytes 0 and 4228", lambda: reach("i%2*4228", 4, "shared").wavefronts, 1),
        ),
        (
            Number("wavefronts of bytes 0 and 4224", lambda: request("s_words_0_and_4224", "LDS", "wavefronts"), 2),
            Number("of bytes 0 and 4228", lambda: request("s_words_0_and_4228", "LDS", "wavefronts"), 1),
        ),
    ),
    Claim(
        "S2",
        "A column of float tile[32][32] is a 32-way conflict.",
        "true",
        "32 wavefronts.",
        "sectorwise access 'i*128' --space shared",
        (Number("wavefronts", lambda: reach("i*128", 4, "shared").wavefronts, 32),),
        (Number("wavefronts", lambda: request("k_tr_tile", "LDS", "wavefronts"), 32),),
    ),
    Claim(
        "S3",
        "... and therefore 32 times slower.",
        "false",
        "32 times the wavefronts; a loop that is bound by them ran 22.4 times slower.",
        "sectorwise access 'i*128' --space shared",
        (
            Number(
                "times the wavefronts",
                lambda: reach("i*128", 4, "shared").wavefronts / reach("i*4", 4, "shared").wavefronts,
                32,
            ),
        ),
        (Number("times slower", lambda: ratio("t_bank32", "t_bank1"), 22.4, 0.01),),
    ),
    Claim(
        "S4",
        "Padding to [32][33] removes it and costs 3 %.",
        "true",
        "One wavefront; 33 words for 32.",
        "sectorwise access 'i*132' --space shared",
        (
            Number("wavefronts", lambda: reach("i*132", 4, "shared").wavefronts, 1),
            Number("more memory", lambda: 33 / 32 - 1, 0.03125),
        ),
        (Number("wavefronts", lambda: request("k_tr_pad", "LDS", "wavefronts"), 1),),
    ),
    Claim(
        "S5",
        "Storing (r, c) at column c XOR r removes it.",
        "true for 4-byte accesses",
        "One wavefront.",
        "sectorwise access 'i*128 + (i^5)*4' --space shared",
        (Number("wavefronts", lambda: reach("i*128 + (i^5)*4", 4, "shared").wavefronts, 1),),
        (Number("wavefronts", lambda: request("k_tr_xor", "LDS", "wavefronts"), 1),),
    ),
    Claim(
        "S6",
        "... and keeps 16-byte groups whole, so it suits LDS.128 and ldmatrix.",
        "false",
        "The four words of a group stay together but change their order by the row's low bits. XOR must act on chunks of 16 bytes: Swizzle<3,4,3>.",
        "sectorwise access 'Swizzle<3,4,3>((i%8)*128+(i/8)*16)' --width 16 --space shared --operation matrix_load",
        (
            Number("groups out of order in row 1", lambda: spread_over_chunks(1), 8),
            Number(
                "bytes that Swizzle<3,4,3> moves inside a group",
                lambda: sum(Swizzle(3, 4, 3)(at) % 16 != at % 16 for at in range(1024)),
                0,
            ),
            Number(
                "wavefronts of ldmatrix, swizzled",
                lambda: reach("Swizzle<3,4,3>((i%8)*128+(i/8)*16)", 16, "shared", "matrix_load").wavefronts,
                4,
            ),
            Number(
                "wavefronts of ldmatrix, plain",
                lambda: reach("(i%8)*128+(i/8)*16", 16, "shared", "matrix_load").wavefronts,
                32,
            ),
        ),
        (
            Number("wavefronts of ldmatrix, swizzled", lambda: request("k_ldm_swz128", "LDSM", "wavefronts"), 4),
            Number("wavefronts of ldmatrix, plain", lambda: request("k_ldm_pitch128", "LDSM", "wavefronts"), 32),
        ),
    ),
    Claim(
        "S7",
        "Padding breaks the 16-byte alignment that LDS.128 and ldmatrix need.",
        "true of one word",
        "Four words keep it: a pitch of 144 bytes is free of conflicts.",
        "sectorwise access '(i%8)*144+(i/8)*16' --width 16 --space shared",
        (
            Number("pitch 132 modulo 16", lambda: 132 % 16, 4),
            Number("wavefronts at a pitch of 144", lambda: reach("(i%8)*144+(i/8)*16", 16, "shared").wavefronts, 4),
        ),
        (
            Number(
                "wavefronts of ldmatrix at a pitch of 144", lambda: request("k_ldm_pitch144", "LDSM", "wavefronts"), 4
            ),
        ),
    ),
    Claim(
        "S8",
        "A 128-bit load has a 4-way conflict.",
        "false",
        "Four wavefronts are its ideal: 512 bytes.",
        "sectorwise access 'i*16' --width 16 --space shared",
        (
            Number("wavefronts", lambda: reach("i*16", 16, "shared").wavefronts, 4),
            Number("ideal", lambda: reach("i*16", 16, "shared").wavefronts_ideal, 4),
        ),
        (Number("wavefronts", lambda: request("k_sh_f4_stride3", "LDS", "wavefronts"), 4),),
    ),
)
