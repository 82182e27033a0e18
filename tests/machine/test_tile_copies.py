"""Tiles that tensor maps name: what lies where in shared and in global memory, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.machine.execution import Certainty, FaultKind
from tests.machine.launching import Run, run

SOURCE = (Path(__file__).parents[1] / "measured" / "tiles" / "tensor_copies.cu").read_text()
FILLED = 0xA0000000
"""What `load_*` write to shared memory before the tile comes."""

Words = npt.NDArray[np.uint32]


def copy(kernel: str, tensor: str, tile_bytes: int, corner: tuple[int, ...], output: str = "") -> Run:
    places = ", ".join(str(each) for each in (*corner, 0, 0, 0, 0)[:5])
    return run(
        SOURCE, f"{kernel}<<<1, 128, {tile_bytes + 1024}>>>(tensor_map({tensor}), {tile_bytes}, {places}, 0, 0{output})"
    )


def load(tensor: str, tile_bytes: int, corner: tuple[int, ...]) -> Words:
    rank = len(corner)
    done = copy(f"load_{rank}", tensor, tile_bytes, corner, f", u32[{tile_bytes // 4}]")
    assert done.execution.faults == ()
    found: Words = done.output(1, np.uint32)
    return found


def cut(whole: npt.NDArray[np.generic], corner: tuple[int, ...], box: tuple[int, ...]) -> npt.NDArray[np.generic]:
    """A tile with zeros outside of the tensor; corner and box begin with the last axis."""
    axes = [np.arange(start, start + size) for start, size in zip(corner[::-1], box[::-1], strict=True)]
    places = np.meshgrid(*axes, indexing="ij")
    inside = [(at >= 0) & (at < size) for at, size in zip(places, whole.shape, strict=True)]
    found = whole[tuple(np.where(here, at, 0) for at, here in zip(places, inside, strict=True))]
    return np.where(np.all(inside, axis=0), found, 0).astype(whole.dtype)


@pytest.mark.parametrize("corner", [(0, 0), (32, 5), (-16, -3), (48, 60), (64, 64), (-64, 0)])
def test_a_tile_has_zeros_outside_of_the_tensor(corner: tuple[int, int]) -> None:
    whole = np.arange(64 * 64, dtype=np.uint32).reshape(64, 64)
    found = load("u32[64, 64]=arange, box=(32, 8)", 1024, corner)
    np.testing.assert_array_equal(found, cut(whole, corner, (32, 8)).ravel())


def test_a_row_may_end_within_sixteen_bytes() -> None:
    tensor = "u16[1280]=arange, shape=(77, 16), strides=160, box=(32, 4)"
    whole = np.arange(1280, dtype=np.uint16).reshape(16, 80)[:, :77]
    found = load(tensor, 256, (64, 2))
    np.testing.assert_array_equal(found.view(np.uint16), cut(whole, (64, 2), (32, 4)).ravel())


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_swizzle_exchanges_chunks_by_the_number_of_the_line(swizzle: int) -> None:
    whole = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    columns = swizzle // 2
    found = load(f"u16[64, 64]=arange, box=({columns}, 32), swizzle={swizzle}", 32 * swizzle, (0, 8))
    plain = cut(whole, (0, 8), (columns, 32)).tobytes()
    byte = np.arange(len(plain))
    wanted = np.zeros(len(plain), np.uint8)
    wanted[byte ^ (byte >> 7) % (swizzle // 16) * 16] = np.frombuffer(plain, np.uint8)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_tiles_of_every_rank(rank: int) -> None:
    shape, box, corner = (16, 6, 5, 4, 3)[:rank], (8, 2, 3, 2, 2)[:rank], (8, 3, 3, 1, 2)[:rank]
    whole = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape[::-1])
    sizes = ", ".join(map(str, shape[::-1]))
    tensor = f"u32[{sizes}]=arange, box=({', '.join(map(str, box))})"
    found = load(tensor, int(4 * np.prod(box)), corner)
    np.testing.assert_array_equal(found, cut(whole, corner, box).ravel())


def test_steps_take_every_other_row() -> None:
    found = load("u32[64, 64]=arange, box=(32, 16), steps=(1, 2)", 1024, (32, 4))
    wanted = np.arange(64 * 64).reshape(64, 64)[4:20:2, 32:64]
    np.testing.assert_array_equal(found, wanted.ravel())


@pytest.mark.parametrize("swizzle", [0, 128])
def test_a_store_is_a_load_turned_round(swizzle: int) -> None:
    done = copy("store_2", f"u32[40, 48], box=(32, 16), swizzle={swizzle}", 2048, (32, 30))
    assert done.execution.faults == ()
    given = np.arange(1, 513, dtype=np.uint32)
    if swizzle:
        chunk = np.arange(128)
        given = given.reshape(128, 4)[chunk ^ (chunk >> 3) % 8].ravel()
    wanted = np.zeros((40, 48), np.uint32)
    wanted[30:40, 32:48] = given.reshape(16, 32)[:10, :16]
    np.testing.assert_array_equal(done.output(0, np.uint32).reshape(40, 48), wanted)


def test_what_is_made_of_a_tile_is_sure() -> None:
    done = copy("load_2", "u32[64, 64]=arange, box=(32, 8)", 1024, (0, 0), ", u32[256]")
    assert {site.certainty for site in done.execution.sites} == {Certainty.EXACT}
    assert done.execution.limitations == ()
    (copies,) = done.execution.bulk
    assert done.bound.kernel.instructions[copies.instruction].opcode == "UTMALDG"
    assert (copies.copies, copies.targets, copies.sectors, copies.sectors_l2) == (1, 1, 32, 32)
    assert copies.certainty is Certainty.EXACT


def test_a_tile_between_two_units_of_sixteen_bytes_is_misaligned() -> None:
    """An H200 stops with an illegal instruction there."""
    done = copy("load_2", "u32[64, 64]=arange, box=(32, 8)", 1024, (1, 0), ", u32[256]")
    assert FaultKind.MISALIGNED in {fault.kind for fault in done.execution.faults}


def test_tiles_are_summed_up() -> None:
    done = copy("add_2", "u32[64, 64]=arange, box=(32, 8)", 1024, (16, 2))
    wanted = np.arange(64 * 64, dtype=np.uint32).reshape(64, 64)
    wanted[2:10, 16:48] += np.arange(1, 257, dtype=np.uint32).reshape(8, 32)
    np.testing.assert_array_equal(done.output(0, np.uint32).reshape(64, 64), wanted)
    assert done.execution.limitations == ()


def test_layouts_that_are_not_followed_are_unknown() -> None:
    done = copy("load_3", "u32[4, 8, 64]=arange, box=(8, 8, 4), interleave=32", 1024, (0, 0, 0), ", u32[256]")
    assert "UTMALDG: what a tensor map names is not known" in {each.because for each in done.execution.limitations}
    assert not any("hangs" in each.because for each in done.execution.limitations)
    assert done.execution.hangs == ()


def test_blocks_of_a_cluster_get_the_same_tile() -> None:
    text = (
        "spread_2<<<2, 128, 2048>>>(tensor_map(u32[64, 64]=arange, box=(32, 8)), 1024, 0, 3, 0, 0, 0, 32, 0, u32[512])"
    )
    done = run(SOURCE, text)
    wanted = np.arange(64 * 64).reshape(64, 64)[3:11, :32].ravel()
    np.testing.assert_array_equal(done.output(1, np.uint32), np.concatenate([wanted, wanted]))
