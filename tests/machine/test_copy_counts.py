"""What the copies of one instruction add up to: how many, their bytes, how sure they are, and who sees them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.counting.request import Access, Operation, Space
from sectorwise.machine.copy_forms import CopyForm, CopyOperation, Place, Shape
from sectorwise.machine.copy_sums import CopyCounter, note_landings, unite_places
from sectorwise.machine.execution import Certainty, ExecutionOptions
from tests.machine.launching import run

if TYPE_CHECKING:
    from sectorwise.machine.execution import BulkCopies

SOURCE = (Path(__file__).parents[1] / "measured" / "tiles" / "tensor_copies.cu").read_text()
RINGS = (Path(__file__).parents[1] / "measured" / "tiles" / "rings.cu").read_text()
DOUBT = r"""
extern "C" __global__ void maybe(int* to, float x) {
  __shared__ __align__(128) int held[128];
  held[threadIdx.x] = threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (threadIdx.x == 0 && (x > 0 ? x > 1 : __expf(-x) > 3)) {
    unsigned place = (unsigned)__cvta_generic_to_shared(held);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(to), "r"(place) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
extern "C" __global__ void lost(const int* table, const char* in) {
  if (threadIdx.x == 0) {
    unsigned now = (unsigned)clock64();
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 64;" ::"l"(in + (now & 1023) * 16) : "memory");
  }
}
"""


def only(copies: tuple[BulkCopies, ...]) -> BulkCopies:
    (found,) = copies
    return found


def load_at(corner: tuple[int, int], box: tuple[int, int] = (32, 8)) -> BulkCopies:
    """A tile of a matrix of 64 x 64 words."""
    tile = 4 * box[0] * box[1]
    text = f"load_2<<<2, 128, {tile + 1024}>>>(tensor_map(u32[64, 64]=arange, box={box}), {tile}"
    text += f", {corner[0]}, {corner[1]}, 0, 0, 0, 0, 0, u32[{tile // 2}])"
    return only(run(SOURCE, text).execution.bulk)


@pytest.mark.parametrize("corner", [(0, 0), (40, 60), (-16, -3), (64, 64), (-64, 0), (56, 0)])
def test_bytes_outside_of_a_tensor(corner: tuple[int, int]) -> None:
    copies = load_at(corner)
    places = [(corner[0] + x, corner[1] + y) for x in range(32) for y in range(8)]
    outside = sum(not (0 <= x < 64 and 0 <= y < 64) for x, y in places)
    assert (copies.copies, copies.targets, copies.asked_bytes) == (2, 2, 2048)
    assert copies.outside_bytes == 2 * 4 * outside
    # What lies outside is filled, and asked of nobody.
    assert copies.written_bytes == 2048
    assert copies.sectors_l2 == 2 * (256 - outside) // 8
    assert copies.row_bytes == 128
    assert copies.certainty is Certainty.EXACT


def test_forms_and_what_each_moves() -> None:
    tile = "tensor_map(u32[64, 64], box=(4, 8)), 128, 0, 0, 0, 0, 0, 0, 0"
    store = only(run(SOURCE, f"store_2<<<3, 128, 2048>>>({tile})").execution.bulk)
    assert store.form == CopyForm(CopyOperation.STORE, Place.SHARED, Place.GLOBAL, Shape.TILE)
    # Rows of 16 bytes: a sector each, half of it.
    assert (store.copies, store.sectors, store.sectors_ideal, store.sectors_l2) == (3, 24, 12, 24)
    assert (store.written_bytes, store.row_bytes, store.landings) == (384, 16, ())
    added = only(run(SOURCE, "add_range<<<2, 128, 512>>>(u32[1024], 512, 512)").execution.bulk)
    assert added.form == CopyForm(CopyOperation.REDUCTION, Place.SHARED, Place.GLOBAL, Shape.RANGE)
    assert (added.copies, added.sectors, added.sectors_l2, added.written_bytes) == (2, 32, 32, 1024)
    fetched = only(run(SOURCE, "prefetch_range<<<2, 128>>>(u8[4096], 48, 1040)").execution.bulk)
    assert fetched.form == CopyForm(CopyOperation.PREFETCH, Place.GLOBAL, Place.L2, Shape.RANGE)
    assert (fetched.copies, fetched.targets, fetched.sectors, fetched.written_bytes) == (2, 0, 0, 0)
    # The second begins in the middle of a sector: 48 bytes from 1,040 on are three halves in two sectors.
    assert (fetched.asked_bytes, fetched.sectors_l2) == (96, 4)


def test_prefetched_tiles() -> None:
    text = "prefetch_2<<<4, 128>>>(tensor_map(u32[64, 64], box=(8, 16)), 512, 0, 0, 0, 0, 0, 8, 0)"
    copies = only(run(SOURCE, text).execution.bulk)
    assert copies.form == CopyForm(CopyOperation.PREFETCH, Place.GLOBAL, Place.L2, Shape.TILE)
    assert (copies.copies, copies.targets, copies.asked_bytes, copies.sectors, copies.sectors_l2) == (4, 0, 2048, 0, 64)


def test_a_tile_for_two_blocks_is_read_once() -> None:
    tile = "tensor_map(u32[64, 64]=arange, box=(32, 8)), 1024, 0, 3, 0, 0, 0, 16, 0, u32[1024]"
    copies = only(run(SOURCE, f"spread_2<<<4, 128, 2048>>>({tile})").execution.bulk)
    assert copies.form.multicast
    assert (copies.copies, copies.targets, copies.asked_bytes, copies.written_bytes) == (2, 4, 2048, 4096)
    assert (copies.sectors, copies.sectors_ideal, copies.sectors_l2) == (128, 128, 64)


def test_what_goes_to_a_peer_moves_no_sector() -> None:
    done = run(RINGS, "exchange<<<4, 128, 2176>>>(u32[1024], 1024)")
    copies = only(done.execution.bulk)
    assert copies.form == CopyForm(CopyOperation.EXCHANGE, Place.SHARED, Place.SHARED, Shape.RANGE)
    assert (copies.copies, copies.written_bytes, copies.sectors, copies.sectors_l2) == (4, 4096, 0, 0)
    given = np.array([block * 1024 + word for block in (1, 0, 3, 2) for word in range(256)], np.uint32)
    np.testing.assert_array_equal(done.output(0, np.uint32), given)
    assert done.execution.limitations == ()


@pytest.mark.parametrize(
    ("x", "copies", "certainty"), [(1.5, 2, "exact"), (0.5, 0, None), (-1.5, 2, "assumed"), (-0.5, 0, None)]
)
def test_copies_behind_a_branch_on_an_estimate_are_assumed(x: float, copies: int, certainty: str | None) -> None:
    found = run(DOUBT, f"maybe<<<2, 128>>>(i32[128], {x})").execution.bulk
    assert [(each.copies, each.certainty) for each in found] == ([(copies, certainty)] if copies else [])


def test_a_copy_from_an_unknown_place_has_no_numbers() -> None:
    done = run(DOUBT, "lost<<<2, 32>>>(i32[32], u8[1<<15])")
    copies = only(done.execution.bulk)
    assert copies.executed == 2
    assert copies.unknown_because is not None
    assert "what is fetched is not known" in copies.unknown_because
    assert any("what is fetched is not known" in each.because for each in done.execution.limitations)


class Watcher:
    """Keeps the sectors of bulk copies."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def on_request(
        self,
        instruction: int,
        access: Access,
        warps: npt.NDArray[np.int64],
        addresses: npt.NDArray[np.int64],
        active: npt.NDArray[np.bool_],
    ) -> None:
        if access.opcode.startswith(("UTMA", "UBLK")):
            assert (access.space, access.operation, access.width_bytes) == (Space.GLOBAL, Operation.LOAD, 32)
            assert instruction >= 0
            rows, lanes = np.nonzero(active)
            self.seen += zip(warps[rows].tolist(), addresses[rows, lanes].tolist(), strict=True)


def test_observers_see_each_sector_of_a_tile_once() -> None:
    watcher = Watcher()
    text = "load_2<<<2, 128, 2048>>>(tensor_map(u32[64, 64], box=(32, 16)), 2048, 48, 60, 0, 0, 0, -32, 0, u32[1024])"
    done = run(SOURCE, text, options=ExecutionOptions(observers=(watcher,)))
    base = done.bound.allocations[0].base
    # The tile of the first block leaves the tensor on two sides, that of the second on one.
    wanted = [
        (4 * block, base + 4 * (64 * row + column))
        for block, first in ((0, 48), (1, 16))
        for row in range(60, 64)
        for column in range(first, min(first + 32, 64), 8)
    ]
    assert sorted(watcher.seen) == sorted(wanted)


def test_places_that_a_ring_fills() -> None:
    bulk = run(RINGS, "ring<<<2, 160, 3072>>>(u8[16384], u32[256], 8, 1024, 3)").execution.bulk
    places = sorted({place for each in bulk for place in each.landings})
    assert sum(each.copies for each in bulk) == 16
    assert [last - first for first, last in places] == [1024, 1024, 1024]
    assert places[-1][1] - places[0][0] == 3072
    assert len({barrier for each in bulk for barrier in each.barriers}) == 3


def test_no_place_where_copies_land_is_forgotten() -> None:
    counter = CopyCounter()
    kib = 1 << 10
    for start in range(0, 96 * kib, 16):
        note_landings(counter, [start, start + 128 * kib, start + 8], 16, [start % 64])
    assert unite_places(counter.landings) == [(0, 96 * kib + 8), (128 * kib, 224 * kib)]
    assert len(counter.landings) < 1 << 14
    assert counter.barriers == {0, 16, 32, 48}
    note_landings(counter, [250 * kib], 0, [8])
    assert counter.barriers == {0, 16, 32, 48}
