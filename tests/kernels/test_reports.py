"""What the tool says of the package's own kernels: no findings, and the numbers of their docstrings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.analyze import analyze
from sectorwise.kernels.arrays import DeviceArray, contiguous_strides
from sectorwise.kernels.batches import Batch
from sectorwise.kernels.gemv_plans import plan_product
from sectorwise.kernels.matmul_plans import plan_matmul
from sectorwise.kernels.movement import plan_move
from sectorwise.kernels.plan import SOURCES, Operand, Pointer, Scratch, TensorMap, pack
from sectorwise.kernels.product import Product
from sectorwise.kernels.tensor_maps import MAP_BYTES
from sectorwise.launch.config import Argument, BufferArgument, BytesArgument, Contents, LaunchConfig
from tests.kernels.engine import map_matrix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.kernels.plan import KernelPlan


def lay(shape: tuple[int, ...], item: int, address: int) -> Operand:
    """A contiguous array."""
    return Operand(address, shape, contiguous_strides(shape, item), item)


def turn(operand: Operand) -> Operand:
    """The array with its two axes exchanged."""
    return Operand(operand.address, operand.shape[::-1], operand.strides_bytes[::-1], operand.item_bytes)


def configure(plan: KernelPlan | None, sizes_bytes: Mapping[str, int]) -> LaunchConfig:
    """The launch of a plan, buffers filled with something."""
    assert plan is not None
    arguments: list[Argument] = []
    for argument in plan.arguments:
        if isinstance(argument, Pointer):
            size = sizes_bytes[argument.operand]
            arguments.append(BufferArgument("u8", size, Contents("noise"), argument.operand))
        elif isinstance(argument, TensorMap) and argument.operand in sizes_bytes:
            arguments.append(map_matrix(argument, np.zeros(sizes_bytes[argument.operand], np.uint8)))
        elif isinstance(argument, TensorMap):
            arguments.append(BytesArgument(bytes(MAP_BYTES)))
        else:
            assert not isinstance(argument, Scratch)
            arguments.append(BytesArgument(pack(argument)))
    return LaunchConfig(plan.kernel, plan.grid, plan.block, plan.dynamic_shared_bytes, tuple(arguments))


def check(source: str, launches: list[LaunchConfig]) -> list[KernelAnalysis]:
    """The analyses of launches on an H200; all is known, nothing is spilled."""
    found = analyze(SOURCES / source, launches).kernels
    assert all((kernel.limitations, kernel.faults, kernel.hangs) == ((), (), ()) for kernel in found)
    assert {kernel.resources.local_bytes_per_thread for kernel in found} == {0}
    return list(found)


def judge(kernel: KernelAnalysis) -> tuple[list[str], bool, bool]:
    """Codes of findings; whether all sectors and all wavefronts are ideal."""
    codes = [finding.code for finding in kernel.findings]
    sectors = all(site.sectors == site.sectors_ideal for site in kernel.sites)
    return codes, sectors, all(site.wavefronts == site.wavefronts_ideal for site in kernel.sites)


def bytes_in_flight(kernel: KernelAnalysis) -> int:
    """Bytes of all loads of global memory that an SM's warps have issued before their first wait."""
    warps = kernel.occupancy.blocks_per_sm * -(-kernel.launch.block[0] // 32)
    loads = [
        site.width_bytes or 0
        for site in kernel.sites
        if site.space == "global" and site.operation in {"load", "async_copy"} and site.executed
    ]
    return warps * 32 * sum(loads)


def turn_square(side: int, item: int) -> LaunchConfig:
    """The transpose of a square matrix."""
    plan = plan_move(turn(lay((side, side), item, 512)), lay((side, side), item, 1 << 40))
    return configure(plan, dict.fromkeys(("from", "to"), side * side * item))


def test_transposes_are_clean_at_the_sizes_of_their_goals() -> None:
    single, half, odd = check("transpose.cu", [turn_square(8192, 4), turn_square(8192, 2), turn_square(1023, 4)])
    for kernel in (single, half):
        assert judge(kernel) == ([], True, True)
        assert {(site.space, site.width_bytes) for site in kernel.sites} == {("global", 16), ("shared", 16)}
    assert (single.occupancy.blocks_per_sm, bytes_in_flight(single)) == (6, 96 << 10)
    assert (half.occupancy.blocks_per_sm, bytes_in_flight(half)) == (4, 128 << 10)
    assert judge(odd) == ([], False, True)
    loads = [site for site in odd.sites if (site.space, site.operation) == ("global", "load")]
    assert all(site.executed * 4 < (site.sectors or 0) <= site.executed * 5 for site in loads)


def test_copy_is_clean() -> None:
    size = 1 << 26
    plan = plan_move(lay((size,), 1, 512), lay((size,), 1, 1 << 40))
    (kernel,) = check("copy.cu", [configure(plan, {"from": size, "to": size})])
    assert judge(kernel) == ([], True, True)
    assert bytes_in_flight(kernel) == 32 << 10


def test_records_of_48_bytes_are_clean() -> None:
    count, fields, item = 1 << 20, 12, 4
    sizes = dict.fromkeys(("from", "to"), count * fields * item)
    apart = plan_move(turn(lay((count, fields), item, 512)), lay((fields, count), item, 1 << 40))
    together = plan_move(turn(lay((fields, count), item, 512)), lay((count, fields), item, 1 << 40))
    for kernel in check("records.cu", [configure(apart, sizes), configure(together, sizes)]):
        assert judge(kernel) == ([], True, True)
        assert (kernel.occupancy.blocks_per_sm, bytes_in_flight(kernel)) == (32, 96 << 10)


def multiply(rows: int, depth: int, batch: int, weights: str, capability: tuple[int, int] = (9, 0)) -> LaunchConfig:
    """A product of contiguous arrays, x in bfloat16, on a GPU of 132 SMs and that compute capability."""
    row_bytes = {"bf16": 2 * depth, "e4m3": depth, "i8": depth, "u4": -(-depth // 128) * 64}[weights]
    row = row_bytes // 2 if weights == "bf16" else row_bytes
    step = rows if weights == "u4" else 1
    strides = ((depth, 1), (row, 1), (rows, 1))
    product = Product("bf16", weights, batch, rows, depth, *strides, 512, 1 << 40, weights != "bf16", step)
    sizes = {
        "x": 2 * batch * depth,
        "weights": rows * row_bytes,
        "y": 2 * batch * rows,
        "scales": 4 * rows * -(-depth // 128),
    }
    return configure(plan_product(product, 132, capability), sizes)


def test_products_by_rows_are_clean() -> None:
    small, large = check("gemv.cu", [multiply(rows, 4096, 1, "bf16", (8, 0)) for rows in (1024, 14336)])
    for kernel in (small, large):
        assert judge(kernel) == ([], True, True)
    # All of it is asked for at once: two loads a lane of weights, and two of x, 1,024 blocks on 132 SMs.
    assert small.occupancy.blocks_per_sm == 8
    assert bytes_in_flight(small) == 2 * (64 << 10)


def test_products_on_tensor_cores_are_clean() -> None:
    plain, byte = check(
        "gemv_tensor.cu", [multiply(4096, 4096, 16, "bf16", (8, 0)), multiply(4096, 4096, 1, "e4m3", (8, 9))]
    )
    for kernel in (plain, byte):
        codes, _, wavefronts = judge(kernel)
        assert (codes, wavefronts) == ([], True)
        weights = [
            site for site in kernel.sites if site.operation == "async_copy" and site.sectors == 16 * site.executed
        ]
        assert len(weights) >= 8
        assert bytes_in_flight(kernel) >= 64 << 10


def test_products_by_blocks_that_stay_are_clean() -> None:
    one, two = check("gemv_ring.cu", [multiply(4224, 1024, 1, "e4m3"), multiply(1056, 2048, 16, "i8")])
    for kernel in (one, two):
        assert judge(kernel)[0] == []
        assert all(site.wavefronts == site.wavefronts_ideal for site in kernel.sites)
        assert sum(copy.sectors or 0 for copy in kernel.copies) == sum(
            copy.sectors_ideal or 0 for copy in kernel.copies
        )
        assert kernel.occupancy.limit_shared == 2
        assert kernel.occupancy.limit_registers >= 2


def test_products_of_four_bits_are_clean() -> None:
    (kernel,) = check("gemv_int4.cu", [multiply(4096, 4096, 1, "u4")])
    assert judge(kernel)[0] == []
    assert {site.operation for site in kernel.sites if site.wavefronts != site.wavefronts_ideal} == {"async_copy"}
    (scales,) = (site for site in kernel.sites if site.operation == "async_copy")
    assert scales.sectors == scales.sectors_ideal == 4096 * 32 // 16
    assert kernel.occupancy.blocks_per_sm == 2


def test_products_of_matrices_are_clean() -> None:
    operands = {"a": (2048, 1024), "b": (1024, 2048), "c": (2048, 2048)}
    a, b, c = (DeviceArray(name, lay(shape, 2, 512), "bf16", 0, read_only=False) for name, shape in operands.items())
    sizes = {name: 2 * shape[0] * shape[1] for name, shape in operands.items()}
    (kernel,) = check("matmul.cu", [configure(plan_matmul(Batch(a, b, c), 132, (8, 0)), sizes)])
    assert judge(kernel) == ([], True, True)
    assert kernel.occupancy.blocks_per_sm == 2
