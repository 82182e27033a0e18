"""Turns a kernel's parameters into launches that may get past its bounds check: sizes and shapes that are usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.launch.config import BufferArgument, BytesArgument, Contents, LaunchConfig, ScalarArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.launch.signature import read_parameter_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.binary.ir import Kernel
    from sectorwise.launch.config import Argument

BUFFER_BYTES = 4 << 20
_POINTER_BYTES = 8
_SHAPES = ((256, 1, 1), (16, 16, 1), (32, 8, 1), (128, 1, 1), (32, 32, 1), (32, 1, 1), (8, 8, 4))
_SCALARS = (256, 32, 4, 1024)


def guess_launches(kernel: Kernel, known: tuple[str, ...] | None) -> Iterator[tuple[tuple[int, int], LaunchConfig]]:
    """Launches to try, the likeliest first, each with what its arguments are: those of the same are alike.

    `known` are the parameters' types, where they are known.
    """
    most = kernel.resources.max_threads_per_block or 1024
    wide = [
        place for place, each in enumerate(kernel.parameters) if known is None and each.size_bytes == _POINTER_BYTES
    ]
    for scalar, numbers in ((scalar, numbers) for scalar in _SCALARS for numbers in ((0, 2) if wide else (0,))):
        count = len(kernel.parameters)
        # The last parameters of unknown type may be long numbers instead of pointers.
        arguments = tuple(
            _guess_argument(kernel, known, place, scalar, may_point=place < count - numbers) for place in range(count)
        )
        for block in _SHAPES:
            threads = block[0] * block[1] * block[2]
            if threads > most:
                continue
            grid = (4, 2, 1) if block[1] > 1 else (8, 1, 1)
            for shared_bytes in (0, 32 << 10):
                yield (scalar, numbers), LaunchConfig(kernel.name, grid, block, shared_bytes, arguments)


def _guess_argument(
    kernel: Kernel, known: tuple[str, ...] | None, place: int, scalar: int, *, may_point: bool
) -> Argument:
    size_bytes = kernel.parameters[place].size_bytes
    kind = read_parameter_type(known[place]) if known is not None and len(known) == len(kernel.parameters) else None
    if kind is not None and kind.is_pointer:
        dtype = kind.dtype or "u8"
        contents = Contents("uniform", seed=place, below=64) if dtype[0] in "iu" else Contents("uniform", seed=place)
        return BufferArgument(dtype, BUFFER_BYTES // ELEMENT_TYPES[dtype].size_bytes, contents)
    if (
        kind is not None
        and kind.dtype is not None
        and not kind.is_vector
        and ELEMENT_TYPES[kind.dtype].size_bytes == size_bytes
    ):
        return ScalarArgument(1.0 if kind.dtype[0] in "fb" else scalar % 128 if size_bytes == 1 else scalar, kind.dtype)
    if kind is None and size_bytes == _POINTER_BYTES and not may_point:
        return ScalarArgument(scalar, "i64")
    if kind is None and size_bytes == _POINTER_BYTES:
        return BufferArgument("f32", BUFFER_BYTES // 4, Contents("uniform", seed=place))
    if size_bytes == 4:
        return ScalarArgument(scalar, "i32")
    return BytesArgument((scalar.to_bytes(4, "little") * (size_bytes // 4 + 1))[:size_bytes])
