"""Turns a kernel that transposes a matrix, whatever its mapping, into one that stages tiles through shared memory."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.launch.config import BufferArgument, ScalarArgument
from sectorwise.remedies.signatures import find_kernel_text
from sectorwise.remedies.workshop import Change, Gain, Refusal, find_coded, make_remedy, prove
from sectorwise.rules.requests import SECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from sectorwise.findings import Finding, Remedy
    from sectorwise.launch.config import LaunchConfig
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.signatures import Parameter
    from sectorwise.remedies.workshop import Workshop

_CODE: Final = "SW101"
_TILE: Final = 32
_ROWS: Final = 8
_WORD_BYTES: Final = 4
_LOCALS: Final = frozenset({"tile", "x", "y", "j"})
_BODY: Final = """
    __shared__ {type} tile[32][{pitch}];  // a word more than 32 elements: columns walk over the banks
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < {columns} && y + j < {rows}) tile[threadIdx.y + j][threadIdx.x] = {source}[(y + j) * {columns} + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < {rows} && y + j < {columns}) {target}[(y + j) * {rows} + x] = tile[threadIdx.x][threadIdx.y + j];
"""


def find_staging(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """The remedy for SW101 of a launch whose second buffer is, afterwards, the first one transposed."""
    before = original.totals.l2_theoretical_sectors
    kernel = find_kernel_text(workshop.text, workshop.launch)
    shape = _find_transpose(original)
    if not before or kernel is None or shape is None or all(finding.code != _CODE for finding in findings):
        return {}
    pointers = [parameter for parameter in kernel.parameters if parameter.pointee is not None]
    if len(pointers) != 2:
        return {}
    rows, columns = shape
    width_bytes = original.bound.allocations[0].size_bytes // (rows * columns)
    names = [_name_number(workshop.launch, kernel.parameters, number) for number in shape]
    body = _rename_locals(_BODY, kernel.parameters).format(
        type=(pointers[1].pointee or "").replace("const ", ""),
        pitch=_TILE + max(1, _WORD_BYTES // width_bytes),
        rows=names[0],
        columns=names[1],
        source=pointers[0].name,
        target=pointers[1].name,
    )
    grid = (-(-columns // _TILE), -(-rows // _TILE), 1)
    change = Change(
        title=f"stage through a padded tile of shared memory, in {grid[0]} x {grid[1]} blocks of 32 x 8 threads",
        code=body.strip("\n"),
        text=workshop.text[: kernel.start] + body + workshop.text[kernel.end :],
        launch=replace(workshop.launch, grid=grid, block=(_TILE, _ROWS, 1), dynamic_shared_bytes=0),
    )
    outcome = prove(workshop, change, original)
    if isinstance(outcome, Refusal):
        return {}
    totals = outcome.model.totals
    if totals.l2_theoretical_sectors is None or totals.l2_theoretical_sectors >= before:
        return {}
    told = replace(change, title=f"{change.title}, which costs {totals.shared_wavefronts:,} wavefronts")
    remedy = make_remedy(workshop, original, told, Gain(SECTORS, before, totals.l2_theoretical_sectors))
    return dict.fromkeys(find_coded(findings, {_CODE}), (remedy,))


def _rename_locals(body: str, parameters: Sequence[Parameter]) -> str:
    """The body whose own variables are called otherwise than the parameters, as in `transpose(float* x, float* y)`."""
    for taken in {parameter.name for parameter in parameters} & _LOCALS:
        body = re.sub(rf"(?<![.{{\w]){taken}\b", f"{taken}_", body)
    return body


def _name_number(launch: LaunchConfig, parameters: Sequence[Parameter], number: int) -> str:
    """The parameter that a number came with, so that the code holds for other sizes; itself where several may be it."""
    named = [
        parameter.name
        for argument, parameter in zip(launch.arguments, parameters, strict=False)
        if isinstance(argument, ScalarArgument) and argument.value == number and isinstance(argument.value, int)
    ]
    return named[0] if len(named) == 1 else str(number)


def _find_transpose(model: KernelModel) -> tuple[int, int] | None:
    """Rows and columns of the first buffer, where the second is its transpose and no other shape would do."""
    buffers = [each for each in model.bound.launch.arguments if isinstance(each, BufferArgument)]
    allocations = model.bound.allocations[:2]  # arguments come first, then the variables of the module
    if len(buffers) != 2 or allocations[0].size_bytes != allocations[1].size_bytes:
        return None
    count = allocations[0].buffer.count
    width_bytes = allocations[0].size_bytes // count
    source, target = (_read(model, number, width_bytes) for number in (0, 1))
    if np.unique(np.ascontiguousarray(source).view(f"u{width_bytes}")).size < count // 2:
        return None
    for rows, columns in _list_shapes(model, count):
        turned = source.reshape(rows, columns, width_bytes).transpose(1, 0, 2).reshape(count, width_bytes)
        if np.array_equal(turned, target):
            return rows, columns
    return None


def _read(model: KernelModel, number: int, width_bytes: int) -> npt.NDArray[np.uint8]:
    """Elements as rows of bytes, [count, width]."""
    content = model.execution.read_buffer(number).view(np.uint8)
    return content[: content.size // width_bytes * width_bytes].reshape(-1, width_bytes)


def _list_shapes(model: KernelModel, count: int) -> Iterator[tuple[int, int]]:
    side = isqrt(count)
    if side * side == count:
        yield side, side
    for argument in model.bound.launch.arguments:
        if isinstance(argument, ScalarArgument) and isinstance(argument.value, int) and argument.value > 1:
            other = count // argument.value
            if other * argument.value == count:
                yield argument.value, other
                yield other, argument.value
