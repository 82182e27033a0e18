"""Products for wgmma and tensor maps: which plan for which arrays, what is compiled of it, and that each launch ends.

What wgmma computes is not executed without a GPU: the values were compared with float64 on an H200, see
`benchmarks/kernels/LOG.md`.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise.analyze import analyze
from sectorwise.kernels import launching
from sectorwise.kernels.arrays import DeviceArray
from sectorwise.kernels.batches import Batch
from sectorwise.kernels.matmul_plans import plan_matmul
from sectorwise.kernels.plan import SOURCES, KernelPlan, Operand, Pointer, TensorMap
from sectorwise.kernels.tensor_maps import MAP_BYTES
from sectorwise.kernels.warpgroup_plans import Lines, Matrices, find_lines, find_tile, plan_tile
from sectorwise.kernels.warpgroup_tiles import BAND, Sizes, Tile, choose_tile, list_tiles, share_work
from sectorwise.launch.config import BufferArgument
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.verify.driver import Driver
from tests.kernels.engine import bind_plan, compile_kernels, find_kernel

if TYPE_CHECKING:
    from pathlib import Path

H200 = (132, (9, 0))
MOST_SHARED_BYTES = 227 << 10
BOTH = (True, False)


def lay(name: str, rows: int, columns: int, *, by_rows: bool = True, kind: str = "bf16", at: int = 512) -> DeviceArray:
    """A contiguous matrix, by rows or by columns."""
    strides = (2 * columns, 2) if by_rows else (2, 2 * rows)
    return DeviceArray(name, Operand(at, (rows, columns), strides, 2), kind, 0, read_only=False)


def plan(
    m: int,
    n: int,
    k: int,
    *,
    orders: tuple[bool, bool, bool] = (True, True, True),
    multiprocessors: int = 132,
    tile: Tile | None = None,
    count: int = 1,
) -> KernelPlan:
    """The plan of a product on a GPU of compute capability 9.0, in a tile or in the one that is chosen."""
    a, b, c = (
        lay(name, *shape, by_rows=order)
        for name, shape, order in zip("abc", ((m, k), (k, n), (m, n)), orders, strict=True)
    )
    apart = (m * k, k * n, m * n) if count > 1 else (0, 0, 0)
    if tile is None:
        return plan_matmul(Batch(a, b, c, count, apart), multiprocessors, H200[1])
    laid = []
    for array, step in zip((a, b, c), apart, strict=True):
        lines = find_lines(array)
        assert lines is not None
        laid.append(Matrices(array, lines, step))
    return plan_tile(laid[0], laid[1], laid[2], sizes_of(m, n, k, orders, count), tile, multiprocessors)


def sizes_of(m: int, n: int, k: int, orders: tuple[bool, bool, bool] = (True, True, True), count: int = 1) -> Sizes:
    """Sizes of a product."""
    return Sizes(m, n, k, count, orders[:2])


def maps_of(found: KernelPlan) -> list[TensorMap]:
    """The tensor maps of a plan, in the order of its arguments."""
    return [argument for argument in found.arguments if isinstance(argument, TensorMap)]


def view(shape: tuple[int, int], strides: tuple[int, int], at: int = 512) -> DeviceArray:
    """A matrix with strides in elements."""
    return DeviceArray("a", Operand(at, shape, (2 * strides[0], 2 * strides[1]), 2), "bf16", 0, read_only=False)


@pytest.mark.parametrize(
    ("array", "lines"),
    [
        (view((5, 64), (64, 1)), Lines(by_rows=True, step=64)),
        (view((64, 5), (1, 64)), Lines(by_rows=False, step=64)),
        (view((5, 24), (32, 1)), Lines(by_rows=True, step=32)),
        (view((1, 24), (999, 1)), Lines(by_rows=True, step=24)),
        (view((24, 1), (1, 999)), Lines(by_rows=False, step=24)),
        (view((5, 13), (16, 1)), None),
        (view((13, 1), (8, 1)), None),
        (view((5, 13), (13, 1)), None),
        (view((5, 64), (64, 1), 520), None),
        (view((5, 64), (128, 2)), None),
        (view((5, 64), (0, 1)), None),
        (view((5, 64), (-64, 1)), None),
        (view((5, 64), (1 << 39, 1)), None),
    ],
)
def test_what_a_tensor_map_takes(array: DeviceArray, lines: Lines | None) -> None:
    assert find_lines(array) == lines


def test_boxes_of_each_order() -> None:
    by_rows = plan(4096, 8192, 1000, tile=Tile(128, 256, 2))
    assert maps_of(by_rows) == [
        TensorMap("a", "bf16", (1000, 4096, 1), (2000, 2000), (64, 128)),
        TensorMap("b", "bf16", (8192, 1000, 1), (16384, 16384), (64, 64)),
        TensorMap("c", "bf16", (8192, 4096, 1), (16384, 16384), (64, 64)),
    ]
    by_columns = plan(4096, 8192, 1000, orders=(False, False, True), tile=Tile(128, 256, 2))
    assert maps_of(by_columns)[:2] == [
        TensorMap("a", "bf16", (4096, 1000, 1), (8192, 8192), (64, 64)),
        TensorMap("b", "bf16", (1000, 8192, 1), (2000, 2000), (64, 128)),
    ]
    batch = plan(4096, 8192, 1000, tile=Tile(128, 256, 2), count=3)
    assert [(each.extents[2], each.steps_bytes[1]) for each in maps_of(batch)] == [
        (3, 2 * 4096 * 1000),
        (3, 2 * 8192 * 1000),
        (3, 2 * 4096 * 8192),
    ]


def test_blocks_that_share_no_whole_boxes_share_the_depth() -> None:
    wide = Tile(128, 192, 2)
    found = plan(768, 4096, 1000, tile=wide)
    assert found.kernel == "matmul_tma<bf16, 128, 192, 5, 2, false, true, true, false, true>"
    assert maps_of(found)[1].box == (64, 32)
    assert maps_of(plan(768, 4096, 1000, orders=(True, False, True), tile=wide))[1].box == (64, 96)


def test_boxes_of_a_turned_tile() -> None:
    found = plan(200, 8192, 1000, tile=Tile(128, 208, 2, turned=True, shared=True))
    assert found.kernel == "matmul_tma<bf16, 128, 208, 4, 2, false, false, false, true, false>"
    assert maps_of(found) == [
        TensorMap("b", "bf16", (8192, 1000, 1), (16384, 16384), (64, 64)),
        TensorMap("a", "bf16", (1000, 200, 1), (2000, 2000), (64, 104)),
        TensorMap("c", "bf16", (8192, 200, 1), (16384, 16384), (64, 16)),
    ]


def test_a_result_by_columns_is_computed_turned() -> None:
    assert maps_of(plan(4096, 8192, 1000, orders=(True, False, False)))[2].extents == (4096, 8192, 1)
    assert {each.operand for each in maps_of(plan(4096, 8192, 1000, orders=(True, False, False)))} == set("abc")


def test_what_tensor_maps_do_not_take_is_multiplied_otherwise() -> None:
    assert plan(4096, 4097, 4096).kernel == "matmul_any<bf16>"
    shapes = lay("a", 256, 64), lay("b", 64, 256, at=520), lay("out", 256, 256)
    found = plan_matmul(Batch(*shapes), *H200)
    assert (found.kernel, found.specific) == ("matmul_any<bf16>", False)
    apart = DeviceArray("c", Operand(512, (256, 256), (1024, 4), 2), "bf16", 0, read_only=False)
    found = plan_matmul(Batch(lay("a", 256, 64), lay("b", 64, 256), apart), *H200)
    assert found.kernel == "matmul_tensor<bf16, 64, true, true>"
    laid = lay("a", 256, 64), lay("b", 64, 256), lay("c", 256, 256)
    assert plan_matmul(Batch(*laid, 3, (0, -8, 65536)), *H200).kernel == "matmul_tensor<bf16, 64, true, true>"
    assert plan_matmul(Batch(*laid, 3, (1, 0, 65536)), *H200).kernel == "matmul_any<bf16>"


@pytest.mark.parametrize("multiprocessors", [2, 78, 114, 132])
def test_tiles_that_are_chosen_fit(multiprocessors: int) -> None:
    for m, n, k in itertools.product((1, 48, 200, 1024, 8192), (8, 264, 4096, 16384), (1, 64, 1000, 16384)):
        sizes = sizes_of(m, n, k)
        tile = choose_tile(sizes, multiprocessors)
        assert tile in set(list_tiles(sizes, multiprocessors))
        for one in BOTH:
            assert tile.shared_bytes(sizes, one=one) <= MOST_SHARED_BYTES
            assert tile.stages(sizes, one=one) >= max(3, -(-tile.across // 64))
        assert tile.cluster <= multiprocessors


def test_few_rows_are_fetched_by_clusters_of_four_where_all_find_room() -> None:
    assert choose_tile(sizes_of(48, 14336, 4096), 132) == Tile(128, 64, 4, turned=True)
    assert choose_tile(sizes_of(48, 16384, 4096), 132).cluster <= 2


def test_narrow_products_wider_than_64_share_their_depth_turned_where_all_run_at_a_time() -> None:
    assert choose_tile(sizes_of(96, 4096, 4096), 132) == Tile(64, 96, 2, turned=True, split=True)
    assert choose_tile(sizes_of(128, 4096, 4096), 132) == Tile(64, 128, 2, turned=True, split=True)
    assert not choose_tile(sizes_of(128, 8192, 4096), 132).split
    assert not any(tile.split and tile.across > 64 for tile in list_tiles(sizes_of(144, 4096, 4096), 132))


def test_work_is_shared_to_the_last_step() -> None:
    for m, n, k, multiprocessors in itertools.product((48, 4096), (264, 5000), (64, 1000, 14336), (2, 78, 132)):
        sizes = sizes_of(m, n, k, count=2)
        for tile in list_tiles(sizes, multiprocessors):
            work = share_work(tile, sizes, multiprocessors)
            if tile.split or tile.cluster > multiprocessors:
                continue
            tiles = work.tiles_down * work.tiles_across * 2
            assert work.whole * sizes.steps + work.clusters * work.share + work.more == tiles * sizes.steps
            assert work.more < work.clusters <= multiprocessors // tile.cluster
            assert work.whole % work.clusters == 0 or not tile.shared


def test_the_order_of_tiles_is_the_kernels(tmp_path: Path) -> None:
    source = tmp_path / "order.cu"
    source.write_text(
        '#include "matmul_tma.cu"\n'
        'extern "C" __global__ void order(int3* to, int tiles, int down, int across, int high) {\n'
        "  int number = blockIdx.x * 128 + threadIdx.x;\n"
        "  if (number < tiles) to[number] = find_tile(number, down, across, high);\n"
        "}\n",
        encoding="utf-8",
    )
    shapes = (1, 1), (3, 5), (8, 2), (19, 7), (16, 33)
    launches = [
        f"order<<<{-(-down * across // 64)}, 128>>>(i32[3 * tiles], tiles={2 * down * across}, "
        f"{down}, {across}, {BAND})"
        for down, across in shapes
    ]
    kernels = analyze(source, launches, include_folders=(SOURCES,), keep_outputs=True).kernels
    for (down, across), kernel in zip(shapes, kernels, strict=True):
        ours = [find_tile(number, down, across) for number in range(2 * down * across)]
        assert sorted(ours) == list(itertools.product(range(down), range(across), range(2)))
        assert kernel.outputs is not None
        assert [tuple(triple) for triple in kernel.outputs[0].values.reshape(-1, 3).tolist()] == ours


@pytest.mark.parametrize(
    ("sizes", "tile", "multiprocessors"),
    [
        (Sizes(304, 1096, 200, 1, (True, True)), Tile(128, 256, 2), 5),
        (Sizes(304, 1096, 200, 1, (False, False)), Tile(128, 256, 2, shared=True), 6),
        (Sizes(520, 1152, 64, 3, (True, True)), Tile(128, 192, 2, shared=True), 12),
        (Sizes(200, 1096, 264, 2, (True, False)), Tile(128, 208, 1, turned=True, shared=True), 5),
        (Sizes(136, 264, 520, 1, (True, True)), Tile(64, 16, 1, turned=True, shared=True), 78),
        (Sizes(200, 600, 136, 1, (True, False)), Tile(128, 112, 2, beside=True, turned=True), 12),
        (Sizes(40, 1000, 136, 1, (True, True)), Tile(128, 64, 4, turned=True), 132),
        (Sizes(48, 512, 520, 1, (True, True)), Tile(64, 64, 2, split=True), 132),
        (Sizes(48, 512, 520, 2, (True, True)), Tile(64, 16, 8, turned=True, split=True), 132),
    ],
)
def test_every_launch_ends_and_multiplies_every_tile(sizes: Sizes, tile: Tile, multiprocessors: int) -> None:
    found = plan(
        *(sizes.m, sizes.n, sizes.k),
        orders=(*sizes.by_rows, True),
        multiprocessors=multiprocessors,
        tile=tile,
        count=sizes.count,
    )
    kernel = find_kernel(found.source, found.kernel)
    memories = {each.operand: np.zeros(1 << 20, np.uint8) for each in found.arguments if isinstance(each, Pointer)}
    bound = bind_plan(found, memories, {})
    execution = execute(bound, ExecutionOptions())
    assert execution.faults == ()
    assert all("hangs" not in each.because for each in execution.limitations)
    assert execution.hangs == ()
    issued: dict[str, int] = {}
    for instruction, count in zip(kernel.instructions, execution.issued, strict=True):
        issued[instruction.opcode] = issued.get(instruction.opcode, 0) + int(count)
    rows, columns = (sizes.n, sizes.m) if tile.turned else (sizes.m, sizes.n)
    left, right = tile.shares
    tiles = sizes.count * -(-rows // (tile.down * right)) * -(-columns // (tile.across * left)) * left * right
    steps, warps = -(-sizes.k // 64), tile.down // 16
    assert issued["HGMMA"] == tiles * steps * warps * (64 // 16)
    a, b = (not sizes.by_rows[1], not sizes.by_rows[0]) if tile.turned else sizes.by_rows
    boxes = count_boxes(tile.down, left, along_depth=a) + count_boxes(tile.across, right, along_depth=not b)
    assert issued["UTMALDG"] == tiles * steps * boxes
    stores = 0 if tile.split else tiles * (tile.down // 64) * (tile.across // tile.result_lines)
    assert issued.get("UTMASTG", 0) == stores
    names = [each.name for each in bound.launch.arguments if isinstance(each, BufferArgument)]
    assert ("scratch 0" in names) is tile.shared
    if tile.shared:
        assert not execution.read_buffer(names.index("scratch 0")).any()


def count_boxes(extent: int, cluster: int, *, along_depth: bool) -> int:
    """Boxes that a block fetches of a stage of an operand, for itself and others."""
    share = extent // cluster
    if along_depth:
        return 1
    return share // 64 if share % 64 == 0 else extent // 64


def test_kernels_are_compiled_without_spills() -> None:
    tiles = (
        *(Tile(128, 256, 2), Tile(64, 256, 1)),
        *(
            Tile(128, 112, 2, beside=True, turned=True),
            Tile(64, 16, 8, turned=True, split=True),
        ),
    )
    names = {plan(4096, 4096, 4096, orders=(True, False, True), tile=tile).kernel: tile for tile in tiles}
    kernels = compile_kernels("matmul_tma.cu", tuple(names))
    for name, tile in names.items():
        assert kernels[name].resources.local_bytes_per_thread == 0
        products = {each.modifiers[:2] for each in kernels[name].instructions if each.opcode == "HGMMA"}
        assert products == {(f"64x{tile.across}x16", "F32")}


class EncodingLibrary:
    """A driver's library that takes what is to be encoded, and writes bytes that count up."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def cuTensorMapEncodeTiled(self, to: ctypes.c_void_p, kind: int, rank: int, *rest: Any) -> int:  # noqa: N802, ANN401
        """As cuda.h declares it."""
        address, extents, steps, box, every, *modes = rest
        assert to.value is not None
        assert to.value % 64 == 0
        ctypes.memmove(to.value, bytes(range(MAP_BYTES)), MAP_BYTES)
        self.told.append((kind, rank, address.value, [*extents], [*steps], [*box], [*every], modes))
        return 0


def test_tensor_maps_are_encoded_as_the_driver_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    library = EncodingLibrary()
    monkeypatch.setattr(launching, "open_library", lambda: Driver(library, ctypes.c_int(0)))  # type: ignore[arg-type]
    launching.encode_at.cache_clear()
    described = TensorMap("a", "f16", (1000, 4096, 3), (2000, 8192000), (64, 128))
    for address in (4096, 8192, 4096):
        assert launching.pack_argument(described, {"a": address}) == bytes(range(MAP_BYTES))
    launching.encode_at.cache_clear()
    expected = (6, 3, 4096, [1000, 4096, 3], [2000, 8192000], [64, 128, 1], [1, 1, 1], [0, 3, 2, 0])
    assert library.told == [expected, (*expected[:2], 8192, *expected[3:])]
