"""Statements about memory counters that are found in public: each is derived, or the reason why it cannot be is given.

`cases.json` has 45 of them, in our own words: what a kernel does, what was stated, what holds (`expect`), and where the
two differ, why (`verdict`, `note`). Here each `expect` is computed by the public functions.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise.analyze import analyze
from sectorwise.counting.calculator import sectors, wavefronts
from sectorwise.counting.coalescing import count_local_sectors
from sectorwise.counting.count import count_requests
from sectorwise.counting.request import Access, Operation, Requests, Space
from sectorwise.device import load_device, require_capability
from sectorwise.model.occupancy import occupancy
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))}

NOT_DERIVED = {
    "A02": "a ratio of times of contended atomics; only their passes are counted, and no time is modelled for them",
}
"""Why a case has no value here."""

TWO_ARRAYS = """
// sectorwise: launch arrays<<<1, 32>>>(f32[64], f32[32], i32[64])
extern "C" __global__ void arrays(const float* in, float* out, const int* at) {
    float a[32], b[32];
    for (int k = 0; k < 32; ++k) {
        a[k] = in[k] + threadIdx.x;
        b[k] = in[k + 32] * threadIdx.x;
    }
    out[threadIdx.x] = a[at[threadIdx.x] & 31] + b[at[threadIdx.x + 32] & 31];
}
"""

i = np.arange(32)
rows = np.arange(8)


def ideal(width: int) -> int:
    """Sectors that 32 lanes need when they lie side by side."""
    return int(sectors(i * width, width))


def matrix(addresses: Any) -> int:  # noqa: ANN401 - 8, 16 or 32 row addresses
    given = np.asarray(addresses)
    mask = np.arange(32) < len(given)
    padded = np.zeros(32, np.int64)
    padded[: len(given)] = given
    return int(wavefronts(padded, 16, "matrix_load", mask))


def swizzle(offset: Any, bits: int, base: int, shift: int) -> Any:  # noqa: ANN401 - integers or arrays of them
    """The public definition of Swizzle<B,M,S>: bits M+S.. are exclusive-or'ed onto bits M.."""
    return offset ^ ((offset & (((1 << bits) - 1) << (base + shift))) >> shift)


def conflict(at: Any, width: int = 4, operation: str = "load") -> int:  # noqa: ANN401 - 32 addresses
    return int(wavefronts(at, width, operation))


def limits(arch: str, threads: int, registers: int, shared: int) -> Any:  # noqa: ANN401 - an Occupancy
    device = {"8.0": "a100-80-sxm", "8.6": "a10", "8.9": "rtx4090", "9.0": "h200"}[arch]
    return occupancy(threads, registers, shared, device=device)


def show_limits(held: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401 - an Occupancy
    """Some of the numbers that a profiler shows: the shared limit is that of the largest carve-out."""
    known = {
        "regs": held.limit_registers,
        "smem": held.limit_shared_max_carveout,
        "warps": held.limit_warps,
        "occ": round(held.theoretical_pct, 2),
    }
    return {name: known[name] for name in names}


def g06() -> dict[str, Any]:
    requests = 2**25 // 4 // 32 * 3
    each, best = int(sectors(64 * i, 16)), ideal(16)
    return {"sectors": each, "ideal": best, "total": requests * each, "excess": requests * (each - best)}


def g13() -> dict[str, Any]:
    return {"avg": 0.6 * ideal(16) + 0.4 * ideal(8)}


def g19() -> dict[str, Any]:
    even, odd = (int(sectors(144 * block + 16 + 4 * i)) for block in (0, 1))
    return {"b even": even, "b odd": odd}


def s07() -> dict[str, Any]:
    per_matrix = matrix(128 * rows)
    assert matrix(256 * rows) == per_matrix
    return {"per_matrix": per_matrix, "total": (per_matrix - 1) * 512 * 16 * 4096}


def s08() -> dict[str, Any]:
    each = conflict(256 * (i // 4) + 4 * (i % 4), operation="store")
    return {"wavefronts": each, "conflicts": 4096 * (each - 1)}


def s12() -> dict[str, Any]:
    """Four matrices of 8 rows each: row m of 8 halves at m + 128 k, read along k."""
    offsets = (8 * (np.arange(4)[:, None]) + 128 * rows).reshape(-1)
    return {
        "none": matrix(2 * offsets),
        "334": matrix(2 * swizzle(offsets, 3, 3, 4)),
        "333": matrix(2 * swizzle(offsets, 3, 3, 3)),
    }


def s17() -> dict[str, Any]:
    row, chunk = np.tile(rows, 4), np.repeat(np.arange(4), 8)
    return {"none": matrix(128 * row + 16 * chunk), "swz128": matrix(128 * row + 16 * (chunk ^ row))}


def o07() -> dict[str, Any]:
    held = limits("8.0", 256, 106, 49152)
    waves = count_waves(512, held.blocks_per_sm, 108)
    return {"blocks": held.blocks_per_sm, "waves": round(waves.waves, 2), "tail_blocks": waves.blocks_last_wave}


def o08() -> dict[str, Any]:
    allocated = limits("8.9", 256, 128, 40320 + 960).shared_allocated_bytes
    largest = max(registers for registers in range(1, 256) if limits("8.9", 256, registers, 0).limit_registers >= 2)
    return {"100K": 102400 // allocated, "64K": 65536 // allocated, "max_regs": largest}


def o02() -> dict[str, Any]:
    """41 and 43 registers hold as many blocks as 48 at every block size, and 49 do not."""
    sizes = range(32, 1025, 32)
    held = {n: [limits("8.0", threads, n, 0).limit_registers for threads in sizes] for n in (40, 41, 43, 48, 49)}
    assert held[41] == held[43] == held[48] != held[49]
    assert held[40] != held[41]
    return {"alloc": 48}


def o11() -> dict[str, Any]:
    capability = require_capability(load_device("a10"))
    return {"bytes": (256 * 32 + 64 * 32) * 4 * 4, "cap86": capability.shared_per_block_optin_bytes}


def o13() -> dict[str, Any]:
    devices = {"9.0": "h200", "8.6": "a10", "8.0": "a100-80-sxm"}
    return {
        arch: require_capability(load_device(device)).shared_per_block_optin_bytes for arch, device in devices.items()
    }


def g15() -> dict[str, Any]:
    grouped = (i // 4) * 128 + (i % 4) * 8
    return {"AoS": int(sectors(32 * i, 8)), "AoSoA4": int(sectors(grouped, 8)), "SoA": int(sectors(8 * i, 8))}


def s13() -> dict[str, Any]:
    """In any row, by both rules for copies: what made the conflicts of the statement was another of its nine edits."""
    source, whole = 16 * i[None], np.ones((1, 32), np.bool_)
    found = set()
    for row in rows:
        target = 512 * row + 16 * (i[None] ^ row)
        for modifiers in (("E", "BYPASS", "128"), ("E", "128")):
            access = Access(Space.GLOBAL, Operation.ASYNC_COPY, 16, "LDGSTS", modifiers)
            found.add(int(count_requests(Requests(access, source, whole, target)).wavefronts[0]))
    assert len(found) == 1
    return {"wavefronts": found.pop()}


def s14() -> dict[str, Any]:
    """Whatever the bytes are, lane i stays in bank i."""
    draws = np.random.default_rng(7).integers(0, 256, (200, 32))
    found = {int(count) for count in np.atleast_1d(wavefronts((draws & 3) + (draws // 4) * 128 + 4 * i, 1))}
    assert len(found) == 1
    return {"wavefronts": found.pop()}


def l01() -> dict[str, Any]:
    (found,) = count_local_sectors(np.full((1, 32), 8, np.int64), np.ones((1, 32), np.bool_), 4)
    return {"sectors": int(found)}


def l03() -> dict[str, Any]:
    """Two arrays of 32 floats, indexed at run time; nothing is spilled, and there is local traffic all the same."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.cu"
        path.write_text(TWO_ARRAYS, encoding="utf-8")
        (kernel,) = analyze(path).kernels
    assert kernel.totals.local_store_sectors
    assert {finding.code for finding in kernel.findings} >= {"SW302"}
    return {"stack": kernel.resources.local_bytes_per_thread}


COMPUTED: dict[str, Callable[[], dict[str, Any]]] = {
    "G01": lambda: {"sectors": sectors(4 * (i + 1)), "bytes_per_sector": 128 / int(sectors(4 * (i + 1)))},
    "G02": lambda: {"sectors": sectors(4 * (i ^ 1))},
    "G03": lambda: {"sectors": sectors(16 * i)},
    "G04": lambda: {"sectors": sectors(0 * i)},
    "G06": g06,
    "G07": lambda: {"sectors": sectors((i % 16) * 32 + (i // 16) * 16384, 16), "ideal": ideal(16)},
    "G09": lambda: {"sectors": sectors(576 * i), "total": 10_000 * 32 * 144 // 32 * int(sectors(576 * i))},
    "G10": lambda: {"sectors": sectors(192 * i, 2), "ideal": ideal(2), "excess": int(sectors(192 * i, 2)) - ideal(2)},
    "G11": lambda: {"sectors": sectors(2 * i, 2)},
    "G13": g13,
    "G15": g15,
    "G16": lambda: {"sectors": sectors(16 * i), "ideal": ideal(4)},
    "G18": lambda: {"good": sectors(4 * i), "bad": sectors(16384 * i)},
    "G19": g19,
    "G21": lambda: {"hit": 1 - int(sectors(4 * i)) / 32},
    "G23": lambda: {"sectors": sectors(16 * i, 2), "ideal": ideal(2)},
    "G24": lambda: {"sectors": sectors(np.where(i < 16, 8 * i, 4096 + 8 * (i - 16)), 8)},
    "G26": lambda: {"ideal": {str(width): ideal(width) for width in (1, 2, 4, 8, 16)}},
    "G27": lambda: {"sectors": sectors(4 * i)},
    "S01": lambda: {"wavefronts": conflict(128 * i, 16), "ideal": conflict(16 * i, 16)},
    "S02": lambda: {"wavefronts": conflict(16 * (i % 4), 16), "paired": conflict(16 * (i // 2 % 4), 16)},
    "S03": lambda: {"wavefronts": conflict(16 * i), "conflicts_total": 2 * (conflict(16 * i) - 1)},
    "S06": lambda: {
        "wavefronts": conflict(256 * i, 8, "store"),
        "ideal": conflict(8 * i, 8, "store"),
        "padded": conflict(264 * i, 8, "store"),
    },
    "S07": s07,
    "S08": s08,
    "S12": s12,
    "S13": s13,
    "S14": s14,
    "S15": lambda: {str(pad): matrix(2 * (64 + pad) * rows) for pad in (0, 8, 16)},
    "S17": s17,
    "S18": lambda: {"wavefronts": conflict(2 * i, 2, "store")},
    "S20": lambda: {"wavefronts": conflict(16 * i, 2)},
    "L01": l01,
    "L03": l03,
    "O02": o02,
    "O04": lambda: show_limits(limits("8.9", 256, 57, 16384), "regs", "smem", "warps", "occ"),
    "O05": lambda: show_limits(limits("8.0", 667, 80, 32160), "regs", "smem", "warps", "occ"),
    "O07": o07,
    "O08": o08,
    "O10": lambda: show_limits(limits("8.6", 128, 168, 49152), "regs", "smem", "occ"),
    "O11": o11,
    "O13": o13,
    "O14": lambda: {"regs": limits("8.0", 256, 48, 4140).limit_registers},
    "B02": lambda: {"a": 2 * 16 * 256 * 8, "b": 4 * 16 * 256 * 8},
}


def test_every_case_has_a_value_or_a_reason() -> None:
    assert len(CASES) == 45
    assert COMPUTED.keys() | NOT_DERIVED.keys() == CASES.keys()
    assert not COMPUTED.keys() & NOT_DERIVED.keys()


@pytest.mark.parametrize("case", list(COMPUTED))
def test_what_holds_is_derived(case: str) -> None:
    assert COMPUTED[case]() == CASES[case]["expect"]


def test_where_a_statement_is_not_right_the_reason_is_written_down() -> None:
    wrong = [case for case in CASES.values() if not case["verdict"].startswith("agree")]
    assert len(wrong) == 11
    assert [case["id"] for case in wrong if len(case["note"] + case["computed"] + case["stated"]) < 30] == []
