"""Turns calls with arrays of a GPU into copies, transposes, and records taken apart or put together.

What `sectorwise check` says of these kernels on an H200 stands with each function; `tests/kernels` holds it to that. A
launch is put on the current stream of the array's framework, or on `stream`, the handle of one. With `out` nothing is
allocated, and a call may be captured into a CUDA graph once its kernel has run before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sectorwise.errors import ArgumentError
from sectorwise.kernels.arrays import check_movable, check_output, check_together, read_array
from sectorwise.kernels.frameworks import allocate
from sectorwise.kernels.launching import choose_device, launch
from sectorwise.kernels.movement import plan_move
from sectorwise.kernels.repeats import find_call_stream, name_call, remember, repeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.kernels.plan import Operand
    from sectorwise.kernels.repeats import Call


def copy(a: object, out: object | None = None, *, stream: int | None = None) -> Any:  # noqa: ANN401 - an array like `a`
    """Copy an array of any shape, strides and alignment; returns `out`, or a contiguous array of `a`'s framework.

    Plan: where both lie alike, a lane moves a word of 16 bytes: 16 sectors a request of 16 ideal, 32 KiB in flight an
    SM at full occupancy, which is enough. Rows of views are moved in the widest
    words that their beginnings allow, all else element by element.

    Raises:
        ArgumentError: `out` has another shape or type, overlaps `a` or itself, or is on another device.
        DeviceRunError: there is no GPU, or it refused the launch.
    """
    return _move(name_call("copy", (a,), out, stream), lambda operand: operand)


def transpose(a: object, out: object | None = None, *, stream: int | None = None) -> Any:  # noqa: ANN401 - as `a`
    """Exchange the last two axes: `out[..., j, i] = a[..., i, j]`, elements of 1, 2, 4, 8 or 16 bytes.

    Plan: a thread turns V x V elements, V = 16 / size, in its registers, a block 16 x 16 such squares through shared
    memory. Every load and store is of 16 bytes a lane: 16 sectors a request of 16 ideal, 256 contiguous bytes a row on
    both sides; 4 wavefronts a request of 4 ideal, by an exclusive or of columns with rows. V loads are in flight a lane
    (float32: six blocks an SM with 96 KiB). Shapes or strides that are no multiples of 16 bytes go element by
    element through a padded tile; matrices with rows or columns of up to 128 bytes go as records do.

    Raises:
        ArgumentError: `a` has fewer than two axes; else as `copy`.
        DeviceRunError: as `copy`.
    """
    return _move(name_call("transpose", (a,), out, stream), _exchange)


def soa_from_aos(records: object, out: object | None = None, *, stream: int | None = None) -> Any:  # noqa: ANN401
    """Take records [..., N, F] apart into an array a field, [..., F, N].

    Plan: a block loads 64 records as they lie, 16 bytes a lane (48-byte records: three loads in flight a lane, 32
    blocks an SM with 96 KiB), keeps them in 3 KiB of shared memory, and a lane reads its own record in the widest
    words whose stride meets all banks; stores are 32 neighbouring elements of a field a warp.

    Raises:
        ArgumentError, DeviceRunError: as `transpose`, which it is.
    """
    return transpose(records, out, stream=stream)


def aos_from_soa(arrays: object, out: object | None = None, *, stream: int | None = None) -> Any:  # noqa: ANN401
    """Put arrays [..., F, N] together into records [..., N, F]; the mirror of `soa_from_aos`, with its plan.

    Raises:
        ArgumentError, DeviceRunError: as `transpose`, which it is.
    """
    return transpose(arrays, out, stream=stream)


def _exchange(operand: Operand) -> Operand:
    if len(operand.shape) < 2:
        raise ArgumentError(f"a: expected at least two axes to exchange, got shape {operand.shape}")
    *outer, rows, columns = operand.shape
    *steps, down, across = operand.strides_bytes
    return replace(operand, shape=(*outer, columns, rows), strides_bytes=(*steps, across, down))


def _move(call: Call, turn: Callable[[Operand], Operand]) -> Any:  # noqa: ANN401 - arrays of frameworks
    repeated = repeat(call)
    if repeated is not None:
        return repeated
    source = read_array("a", call.like)
    check_movable(source)
    turned = turn(source.operand)
    result = allocate(call.like, turned.shape, source.dtype) if call.out is None else call.out
    target = read_array("out", result)
    check_together((source, target))
    check_output(target, turned.shape, source.dtype, (source,))
    plan = plan_move(turned, target.operand)
    if plan is not None:
        addresses = {"from": turned.address, "to": target.operand.address}
        device = choose_device((source, target))
        remember(call, result, source.dtype, (launch(plan, addresses, device, find_call_stream(call)),))
    return result
