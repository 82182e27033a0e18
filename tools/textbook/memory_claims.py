"""Turns statements on records and shared memory into claims with numbers."""

from __future__ import annotations

import sectorwise as sw
from sectorwise.layout.swizzle import Swizzle
from tools.textbook.claim import Claim, Number, ratio, request
from tools.textbook.costs import layouts, reach


def spread_over_chunks(offset: int) -> int:
    """16-byte groups that XOR of 4-byte columns with the row puts out of order, of the eight of row `offset`."""
    groups = ([word ^ offset for word in range(first, first + 4)] for first in range(0, 32, 4))
    return sum(group != sorted(group) for group in groups)


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
