"""Patterns that machine code counts where they stand: as the counting rules count them, whatever they are."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.binding import bind
from sectorwise.counting.banks import (
    count_ideal_wavefronts,
    count_load_wavefronts,
    count_load_wavefronts_hardware,
    count_store_wavefronts,
)
from sectorwise.counting.coalescing import count_ideal_sectors, count_sectors, count_tag_requests
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.native import plan, session
from sectorwise.machine.native.compiler import compile_module, find_host, load, restrict_host
from sectorwise.machine.native.layout import PATTERN, PATTERN_BYTES, SITE, SITE_BYTES
from sectorwise.machine.native.routines import find_routines
from sectorwise.machine.native.tally import record_log
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    from sectorwise.machine.native.compiler import Library

Addresses = npt.NDArray[np.int64]

FIELDS = ("sum_cost", "sum_ideal", "sum_lines", "sum_lanes", "sum_requests")
ROUTINES = ("forget", "passes")
LANES = np.arange(32)


def make_addresses(generator: np.random.Generator, width: int) -> Addresses:
    """Addresses of 32 lanes, aligned to `width`: in steps, in runs, all over a span of some size, or some of each."""
    start = int(generator.integers(1 << 30, 1 << 40)) * width
    step = int(generator.integers(-600, 600)) * width
    span = 1 << int(generator.integers(0, 30))
    scattered = generator.integers(0, span, 32) * width
    match generator.integers(4):
        case 0:
            return start + step * LANES
        case 1:
            return start + scattered
        case 2:
            return start + step * (LANES // 8) + width * (LANES % 8)
        case _:
            return start + np.where(generator.random(32) < 0.5, step * LANES, scattered)


def choose_mask(generator: np.random.Generator) -> int:
    """All lanes, one, or any."""
    return (0xFFFFFFFF, 1 << int(generator.integers(32)), int(generator.integers(1, 1 << 32)))[generator.integers(3)]


@dataclass(frozen=True, slots=True)
class Forgetting:
    """The routine that counts a pattern, on a site and a pattern of its own."""

    library: Library
    octets: npt.NDArray[np.uint8]

    def field(self, at: int, kind: str, count: int = 1) -> npt.NDArray[Any]:
        """A field of the site, or of the pattern behind it."""
        start = -self.octets.ctypes.data % 256 + at
        return self.octets[start : start + np.dtype(kind).itemsize * count].view(kind)

    def run(self, name: str) -> bool:
        """Whether the routine has counted the pattern."""
        ask = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self.library.address_of(name))
        site = self.field(0, "u1").ctypes.data
        return bool(ask(site, site + SITE_BYTES))


@pytest.fixture(scope="module", params=["this machine", "AVX2 alone"])
def forgetting(request: pytest.FixtureRequest) -> Forgetting:
    host = find_host()
    assert host is not None
    entries = "".join(
        f"define i32 @{name}(ptr %site, ptr %pattern) {{\n"
        f"  %done = call i32 @sectors.{name}(ptr %site, ptr %pattern)\n"
        "  ret i32 %done\n}\n"
        for name in ROUTINES
    )
    chosen = host if request.param == "this machine" else restrict_host(host)
    code = compile_module(find_routines({f"sectors.{name}": None for name in ROUTINES}) + entries, chosen, 0)
    return Forgetting(load(code, ROUTINES), np.zeros(SITE_BYTES + PATTERN_BYTES + 256, np.uint8))


def test_any_pattern_is_counted_as_the_rules_count_it(forgetting: Forgetting) -> None:
    generator = np.random.default_rng(11)
    counted = 0
    for _ in range(1500):
        width, hits, most = (int(generator.integers(*bounds)) for bounds in ((0, 5), (1, 5), (-1, 32)))
        width = 1 << width
        addresses, mask = make_addresses(generator, width), choose_mask(generator)
        active = (mask >> LANES & 1).astype(np.bool_)
        first = int(addresses[active.argmax()])
        sectors = int(count_sectors(addresses[None], active[None])[0])
        ideal = int(count_ideal_sectors(np.array([sectors]), active[None], width)[0])
        lines = int(count_tag_requests(addresses[None], active[None])[0])
        forgetting.field(0, "u1", SITE_BYTES + PATTERN_BYTES)[:] = 0
        forgetting.field(SITE["width"], "<u4")[:] = width
        forgetting.field(SITE["most_excess"], "<i8")[:] = most
        forgetting.field(SITE_BYTES + PATTERN["hits"], "<i8")[:] = hits
        forgetting.field(SITE_BYTES + PATTERN["mask"], "<u4")[:] = mask
        forgetting.field(SITE_BYTES + PATTERN["place"], "<u4")[:] = first & 127
        forgetting.field(SITE_BYTES + PATTERN["differences"], "<i8", 32)[:] = np.where(active, addresses - first, 0)

        done = forgetting.run("forget")

        assert done == (most >= 0 and sectors - ideal <= most)
        each = (sectors, ideal, lines, int(active.sum()), 1) if done else (0,) * 5
        assert [int(forgetting.field(SITE[name], "<i8")[0]) for name in FIELDS] == [hits * count for count in each]
        assert int(forgetting.field(SITE_BYTES + PATTERN["hits"], "<i8")[0]) == (0 if done else hits)
        counted += done
    assert counted > 500


def test_passes_of_shared_words_are_counted_as_the_rules_count_them(forgetting: Forgetting) -> None:
    generator = np.random.default_rng(12)
    counted = 0
    for _ in range(1500):
        width, most = 1 << int(generator.integers(0, 3)), int(generator.integers(-1, 32))
        step, span = int(generator.integers(-70, 70)), 1 << int(generator.integers(1, 14))
        scattered, steps = generator.integers(0, span, 32), np.arange(32) * step
        ways = (steps, scattered, np.where(generator.random(32) < 0.5, steps, scattered))
        addresses = (1 << 16) + ways[generator.integers(3)] * width
        mask = choose_mask(generator)
        active = (mask >> LANES & 1).astype(np.bool_)
        first = int(addresses[active.argmax()])
        wavefronts = count_load_wavefronts(addresses[None], active[None], width)
        assert wavefronts == count_store_wavefronts(addresses[None], active[None], width)
        assert wavefronts == count_load_wavefronts_hardware(addresses[None], active[None], width)
        passes, ideal = int(wavefronts[0]), int(count_ideal_wavefronts(wavefronts, active[None], width)[0])
        forgetting.field(0, "u1", SITE_BYTES + PATTERN_BYTES)[:] = 0
        forgetting.field(SITE["width"], "<u4")[:] = width
        forgetting.field(SITE["most_excess"], "<i8")[:] = most
        forgetting.field(SITE_BYTES + PATTERN["hits"], "<i8")[:] = 3
        forgetting.field(SITE_BYTES + PATTERN["mask"], "<u4")[:] = mask
        forgetting.field(SITE_BYTES + PATTERN["place"], "<u4")[:] = first & 127
        forgetting.field(SITE_BYTES + PATTERN["differences"], "<i4", 32)[:] = np.where(active, addresses - first, 0)

        done = forgetting.run("passes")

        assert done == (most >= 0 and passes - ideal <= most)
        each = (passes, ideal, 0, int(active.sum()), 1) if done else (0,) * 5
        assert [int(forgetting.field(SITE[name], "<i8")[0]) for name in FIELDS] == [3 * count for count in each]
        counted += done
    assert counted > 500


def test_lanes_further_apart_than_words_can_say_are_left_to_the_rules(forgetting: Forgetting) -> None:
    forgetting.field(0, "u1", SITE_BYTES + PATTERN_BYTES)[:] = 0
    forgetting.field(SITE["width"], "<u4")[:] = 4
    forgetting.field(SITE["most_excess"], "<i8")[:] = 31
    forgetting.field(SITE_BYTES + PATTERN["hits"], "<i8")[:] = 1
    forgetting.field(SITE_BYTES + PATTERN["mask"], "<u4")[:] = 3
    forgetting.field(SITE_BYTES + PATTERN["differences"], "<i8", 32)[1] = 1 << 40
    assert not forgetting.run("forget")
    assert int(forgetting.field(SITE_BYTES + PATTERN["hits"], "<i8")[0]) == 1


SOURCE = """
extern "C" __global__ void scatter(int* out, int* sums, int* wider, const int* index, const double2* wide,
                                   const unsigned char* bytes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = index[i];
  double2 d = wide[k];
  if (k & 3) out[k] = (int)d.x + bytes[(k * 5u) % n];
  if (k % 7 == blockIdx.x % 7) atomicAdd(sums + (k >> 3), 1);
  __shared__ int tile[1024]; __shared__ short halves[128];
  for (int j = threadIdx.x; j < 1024; j += 128) tile[j ^ (blockIdx.x & 31)] = j;
  halves[threadIdx.x ^ (blockIdx.x & 127)] = k;
  __syncthreads();
  if (tile[k * 7 & 1023] % 3) wider[i] = tile[k * 5 & 1023] + halves[k * 3 & 127];
}
"""
LAUNCH = (
    "scatter<<<288, 128>>>(i32[36864], i32[36864], i32[36864], i32[36864]=perm(3), f64[73728]=uniform(2), "
    "u8[36864]=noise, n=36864)"
)


def test_scattered_accesses_are_counted_alike_by_both_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[int] = []

    def count_rows(counters: Any, order: Any, sized: Any, rows: Any) -> None:  # noqa: ANN401 - passed on
        logged.append(len(rows))
        record_log(counters, order, sized, rows)

    # A log that is soon full: then sites have patterns to keep, and count the others where they stand.
    monkeypatch.setattr(plan, "count_threads", lambda _blocks: 1)
    monkeypatch.setattr(session, "LOG_ROWS", 64)
    monkeypatch.setattr(session, "record_log", count_rows)
    launch = parse_launch(LAUNCH)
    bound = bind(compile_kernels(SOURCE)[launch.kernel], launch, load_device("h200"))
    assert list_differences(bound) == []
    # Of some 19,000 requests more than half lie otherwise than all others.
    assert 0 < sum(logged) < 6000
