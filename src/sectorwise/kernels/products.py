"""Turns calls with arrays of a GPU into products of weights with vectors, and of matrices.

Sums are in float32; the result has the type of `x`. On tensor cores weights are read once for 16 inputs. A launch is
put on the current stream of the array's framework, or on `stream`; with `out` nothing is allocated, and a call may be
captured into a CUDA graph once its kernel has run before. `matmul` alone may hand sums on from block to block, through
17 MiB that a stream, or a graph, keeps from its first such launch on. `tests/kernels` holds the kernels to what is said
of them. A call that is made again with the same arrays is launched without being planned again.

A product may be resident before what is ahead on the stream has ended, and waits for that. `weights_ready` says that
nothing ahead on the stream writes weights or scales: then it reads weights before it waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sectorwise.errors import ArgumentError
from sectorwise.kernels.arrays import check_output, check_together, contiguous_strides, read_array, rename_type
from sectorwise.kernels.batches import broadcast_shapes, list_batches
from sectorwise.kernels.frameworks import allocate
from sectorwise.kernels.gemv_plans import describe_product, plan_packing, plan_product
from sectorwise.kernels.int4_plans import GROUP, TILE
from sectorwise.kernels.launching import choose_device, count_multiprocessors, launch, read_capability
from sectorwise.kernels.matmul_plans import plan_matmul
from sectorwise.kernels.plan import divide_up
from sectorwise.kernels.repeats import find_call_stream, name_call, remember, repeat

if TYPE_CHECKING:
    from sectorwise.kernels.arrays import DeviceArray
    from sectorwise.kernels.repeats import Call

_FLOATS: Final = ("bf16", "f16", "f32")
_HALVES: Final = ("bf16", "f16")


def gemv(
    x: object, weights: object, out: object | None = None, *, stream: int | None = None, weights_ready: bool = False
) -> Any:  # noqa: ANN401 - an array of the framework
    """The product x W^T, for x [K] or [batch, K] and W [N, K], both bfloat16, float16 or float32; any strides.

    Plan: on compute capability 9.0 and above, 512 to 4,096 elements of bfloat16 or float16 deep, and deeper ones whose
    part of x finds room in the registers of 16 warps: as `gemv_int8`. Else by rows, batch 1 and 2 (float32: any, four
    inputs at a time): a block of up to 256 threads has a row, each two loads of 16 bytes of it in flight, 16 sectors a
    request of 16 ideal, 64 KiB an SM. From batch 3 on, tensor cores: a block has 16 rows, its warps slices of the
    depth, which pass shared memory by asynchronous copies of two rows of 256 contiguous bytes a request, 16 sectors of
    16 ideal, 64 KiB an SM.
    W by columns ([K, N] as stored): lanes lie along N in pairs up to eights, so that there is a block for each SM. Rows
    at no multiple of 16 bytes are read element by element, other strides by a warp a row.

    Raises:
        ArgumentError: a type, shape or device does not fit; `out` overlaps an input.
        DeviceRunError: there is no GPU, or it refused the launch.
    """
    call = name_call("gemv", (x, weights), out, stream, ready=weights_ready)
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    given, held = _read_x(x, _FLOATS), read_array("weights", weights)
    _check_weights(given, held, given.dtype)
    return _multiply(call, given, held, None, ready=weights_ready)


def gemv_int8(
    x: object,
    weights: object,
    scales: object,
    out: object | None = None,
    *,
    stream: int | None = None,
    weights_ready: bool = False,
) -> Any:  # noqa: ANN401 - as `gemv`
    """The product x W^T * scales, for W [N, K] of int8, x [K] or [batch, K] of bfloat16 or float16.

    Scales are float32, [N] or [1].

    Plan, from compute capability 9.0 on, 1,024 to 8,192 elements deep: a block stays on each SM and goes through tiles
    of 16 rows with another that has the other half of the depth. Each of its warps has a fixed part of the depth, whose
    x is read once and stays in registers, and a ring of boxes of 16 rows by 128 bytes that it fills itself by a tensor
    map: 64 KiB an SM on their way, all sectors whole, and again as much for the launch behind, for which there is room:
    it comes to L2 first, and from there when the launch ahead has read x.
    The sums of the warps meet in shared memory while they are at the next tiles. Where all x of a warp are exact in
    float16 times a power of two, as nearly always, weights become pairs of float16, in two and a half instructions a
    pair or less; else pairs of bfloat16, in four and a half or less.
    Otherwise: as `gemv` on tensor cores, with 16 weights a lane and load. Rows of W at no multiple of 16 bytes go by a
    warp a row.

    Raises:
        ArgumentError, DeviceRunError: as `gemv`.
    """
    call = name_call("gemv_int8", (x, weights, scales), out, stream, ready=weights_ready)
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    return _multiply_scaled(call, x, weights, scales, ("i8",), ready=weights_ready)


def gemv_fp8(
    x: object,
    weights: object,
    scales: object,
    out: object | None = None,
    *,
    stream: int | None = None,
    weights_ready: bool = False,
) -> Any:  # noqa: ANN401 - as `gemv`
    """As `gemv_int8` for weights in float8_e4m3fn, or uint8 with their bits; compute capability 8.9 or above.

    Raises:
        ArgumentError, DeviceRunError: as `gemv`.
    """
    call = name_call("gemv_fp8", (x, weights, scales), out, stream, ready=weights_ready)
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    return _multiply_scaled(call, x, weights, scales, ("e4m3", "u8"), ready=weights_ready)


def gemv_int4(
    x: object,
    packed: object,
    scales: object,
    out: object | None = None,
    *,
    stream: int | None = None,
    weights_ready: bool = False,
) -> Any:  # noqa: ANN401 - as `gemv`
    """The product x W^T, for weights of `pack_int4`, uint8 [ceil(N / 16), ceil(K / 128), 16, 64].

    Scales are of x's type, [ceil(K / 128), N], one for each 128 weights of a row.

    Plan, from compute capability 9.0 on, one or two inputs: a block an SM that stays. Each of its 8 or 16 warps has a
    part of the depth, keeps its part of x in registers and goes through all of the block's tiles of 16 rows. Copies of
    4 KiB that lie together, carried by no thread, have 128 KiB an SM on their way; where a block asks for all of its
    weights at once, 96 KiB at most, a block of the next launch has place beside it. x becomes integers of 30 bits
    beside the largest element of a warp's part, split into four signed bytes, which are four columns of a product of
    bytes: three instructions unpack eight weights, sums of 128 are exact, and are added in float32. An infinity in x
    gives NaN.

    Else, and where N or the scales' step is odd: as `gemv` on tensor cores; 16 bytes of a lane are 32 weights. With
    bfloat16, weights are unpacked as 136 more than they are, and 136 times x is taken away from the sums, which stay in
    float32: exact products, rounded as all sums are.

    Raises:
        ArgumentError, DeviceRunError: as `gemv`.
    """
    call = name_call("gemv_int4", (x, packed, scales), out, stream, ready=weights_ready)
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    given, held, factors = _read_x(x, _HALVES), read_array("packed", packed), read_array("scales", scales)
    groups = divide_up(given.shape[-1], GROUP)
    if factors.dtype != given.dtype or len(factors.shape) != 2 or factors.shape[0] != groups:
        raise ArgumentError(
            f"scales: expected {given.dtype} of shape ({groups}, N), as x has {given.shape[-1]} elements, "
            f"got {factors.dtype} of shape {factors.shape}"
        )
    if factors.shape[1] > 1 and factors.strides[1] != 1:
        raise ArgumentError(f"scales: expected scales of neighbouring rows side by side, got strides {factors.strides}")
    wanted = _shape_packed(factors.shape[1], given.shape[-1])
    if held.dtype != "u8" or held.shape != wanted:
        raise ArgumentError(
            f"packed: expected u8 of shape {wanted}, as pack_int4 makes of ({factors.shape[1]}, {given.shape[-1]}), "
            f"got {held.dtype} of shape {held.shape}"
        )
    if not _lies_together(held):
        raise ArgumentError(f"packed: expected bytes that lie together, got strides {held.strides}")
    return _multiply(call, given, rename_type(held, "u4"), factors, ready=weights_ready)


def pack_int4(weights: object, out: object | None = None, *, stream: int | None = None) -> Any:  # noqa: ANN401
    """Weights [N, K] of int8 in -8 to 7 as uint8 [ceil(N / 16), ceil(K / 128), 16, 64], which `gemv_int4` reads.

    16 rows and 128 of the depth are 1,024 bytes that lie together. With k % 128 = 32 p + 8 t + e, weight (n, k), plus
    8, is in byte [n // 16, k // 128, n % 16, 16 t + 4 p + e // 4 + 2 (e % 2)], in its upper half where e // 2 is odd.
    What is below -8 or above 7 is clipped; beyond N and K are zeros.

    Raises:
        ArgumentError, DeviceRunError: as `gemv`.
    """
    call = name_call("pack_int4", (weights,), out, stream)
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    held = read_array("weights", weights)
    if held.dtype != "i8" or len(held.shape) != 2:
        raise ArgumentError(f"weights: expected i8 of shape (N, K), got {held.dtype} of shape {held.shape}")
    rows, depth = held.shape
    shape = _shape_packed(rows, depth)
    result = allocate(weights, shape, "u8") if out is None else out
    target = read_array("out", result)
    check_together((held, target))
    check_output(target, shape, "u8", (held,))
    _check_packed(target)
    plan = plan_packing(rows, depth, (held.strides[0], held.strides[1]))
    if plan is not None:
        addresses = {"from": held.operand.address, "to": target.operand.address}
        remember(call, result, "u8", (launch(plan, addresses, choose_device((held, target)), find_call_stream(call)),))
    return result


def matmul(a: object, b: object, out: object | None = None, *, stream: int | None = None) -> Any:  # noqa: ANN401
    """The product of matrices A [..., m, k] and B [..., k, n], both bfloat16 or both float16, which may lie by columns.

    Leading axes are stretched to each other as NumPy has it; products of a batch are one launch, where one step leads
    from matrix to matrix.

    Plan, compute capability 9.0: wgmma fed by TMA. Two blocks, each with 128 x 256 of the result at a time, fetch B
    together: a byte from L2 is used in 128 operations, where the ridge is 113; four stages of 64 of the depth, 192 KiB
    in flight an SM; the next tile is fetched while the last one is stored. Tiles that fill no round of SMs are shared
    along the depth by all, where that is worth handing sums on through the L2. Fewer rows or columns: tiles of the
    product or of the turned product, 64 or 128 x 16 to 256, blocks that share A or B, or the depth. Which, is what
    takes least by the steps, bytes and rounds of each (`warpgroup_tiles`). Else, and where a line begins at no multiple
    of 16 bytes: 128 x 128 a block (64 x 128 where such are fewer than SMs), three stages by asynchronous copies of 16
    bytes, 16 sectors a request of 16 ideal; ldmatrix from pieces at swizzled columns, 4 wavefronts of 4 ideal;
    mma.sync, 64 operations a byte. Eight tiles below each other share what is read. What has no whole pieces of 16
    bytes goes through a plain tile of 16 x 16.

    Raises:
        ArgumentError, DeviceRunError: as `gemv`.
    """
    call = name_call("matmul", (a, b), out, stream)
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    left, right = read_array("a", a), read_array("b", b)
    if left.dtype not in _HALVES or len(left.shape) < 2:
        raise ArgumentError(f"a: expected bf16 or f16 of shape (..., m, k), got {left.dtype} of shape {left.shape}")
    if right.dtype != left.dtype or len(right.shape) < 2 or right.shape[-2] != left.shape[-1]:
        raise ArgumentError(
            f"b: expected {left.dtype} of shape (..., {left.shape[-1]}, n), as a has {left.shape[-1]} columns, "
            f"got {right.dtype} of shape {right.shape}"
        )
    lead = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if lead is None:
        raise ArgumentError(f"b: expected leading axes that fit {left.shape[:-2]}, a's, got {right.shape[:-2]}")
    shape = (*lead, left.shape[-2], right.shape[-1])
    result = allocate(a, shape, left.dtype) if out is None else out
    target = read_array("out", result)
    check_together((left, right, target))
    check_output(target, shape, left.dtype, (left, right))
    if 0 in shape:
        return result
    device, handle = choose_device((left, right, target)), find_call_stream(call)
    launches = []
    for batch in list_batches(left, right, target):
        plan = plan_matmul(batch, count_multiprocessors(device), read_capability(device))
        addresses = {
            name: array.operand.address for name, array in zip("abc", (batch.a, batch.b, batch.c), strict=True)
        }
        launches.append(launch(plan, addresses, device, handle))
    remember(call, result, left.dtype, tuple(launches))
    return result


def _shape_packed(rows: int, depth: int) -> tuple[int, ...]:
    """What `pack_int4` makes of weights of that shape."""
    return divide_up(rows, TILE), divide_up(depth, GROUP), TILE, GROUP // 2


def _lies_together(packed: DeviceArray) -> bool:
    """Whether bytes lie one after the other; of an axis of one element the stride says nothing."""
    return 0 in packed.shape or all(
        extent == 1 or stride == dense
        for extent, stride, dense in zip(packed.shape, packed.strides, contiguous_strides(packed.shape, 1), strict=True)
    )


def _check_packed(target: DeviceArray) -> None:
    if target.operand.address % 4 or not _lies_together(target):
        raise ArgumentError(
            f"out: expected bytes that lie together, from a multiple of 4 on, got strides {target.strides}"
        )


def _read_x(x: object, kinds: tuple[str, ...]) -> DeviceArray:
    given = read_array("x", x)
    if given.dtype not in kinds or len(given.shape) not in {1, 2}:
        raise ArgumentError(
            f"x: expected {', '.join(kinds)} of shape (K,) or (batch, K), got {given.dtype} of shape {given.shape}"
        )
    return given


def _check_weights(x: DeviceArray, weights: DeviceArray, *kinds: str) -> None:
    depth = x.shape[-1]
    if weights.dtype not in kinds or len(weights.shape) != 2 or weights.shape[1] != depth:
        raise ArgumentError(
            f"weights: expected {' or '.join(kinds)} of shape (N, {depth}), as x has {depth} elements, "
            f"got {weights.dtype} of shape {weights.shape}"
        )


def _multiply_scaled(
    call: Call, x: object, weights: object, scales: object, kinds: tuple[str, ...], *, ready: bool
) -> Any:  # noqa: ANN401 - an array of the framework
    given, held, factors = _read_x(x, _HALVES), read_array("weights", weights), read_array("scales", scales)
    _check_weights(given, held, *kinds)
    rows = held.shape[0]
    if factors.dtype != "f32" or factors.shape not in {(rows,), (1,)}:
        raise ArgumentError(
            f"scales: expected f32 of shape ({rows},) or (1,), got {factors.dtype} of shape {factors.shape}"
        )
    return _multiply(call, given, rename_type(held, kinds[0]), factors, ready=ready)


def _multiply(call: Call, given: DeviceArray, weights: DeviceArray, scales: DeviceArray | None, *, ready: bool) -> Any:  # noqa: ANN401 - an array of the framework
    rows = weights.shape[0] if scales is None or weights.dtype != "u4" else scales.shape[1]
    shape = (*given.shape[:-1], rows)
    result = allocate(call.like, shape, given.dtype) if call.out is None else call.out
    target = read_array("out", result)
    inputs = (given, weights) if scales is None else (given, weights, scales)
    check_together((*inputs, target))
    check_output(target, shape, given.dtype, inputs)
    if 0 in shape:
        return result
    device = choose_device((*inputs, target))
    product = describe_product(given, weights, target, scales, ready=ready)
    plan = plan_product(product, count_multiprocessors(device), read_capability(device))
    if plan is not None:
        addresses = {"x": given.operand.address, "weights": weights.operand.address, "y": target.operand.address}
        if scales is not None:
            addresses["scales"] = scales.operand.address
        remember(call, result, given.dtype, (launch(plan, addresses, device, find_call_stream(call)),))
    return result
