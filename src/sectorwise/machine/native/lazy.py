"""Turns buffers that kernels only read into memory of which each part is made when machine code first reads it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.errors import MemoryBudgetError
from sectorwise.launch.contents import materialise, needs_whole
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.machine.memory import global_storage
from sectorwise.machine.native.arena import make_sparse
from sectorwise.machine.native.layout import CHUNK_BITS

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import Allocation
    from sectorwise.machine.memory import GlobalMemory

CHUNK_BYTES = 1 << CHUNK_BITS
_FEWEST_CHUNKS = 8
_PADDING_BYTES = 64


class LazyBuffer(Struct, frozen=True):
    """Bytes of a buffer and, for each chunk of them, whether it is made (int32, not zero)."""

    octets: npt.NDArray[np.uint8]
    made: npt.NDArray[np.int32]


class Buffers(Struct):
    """The buffers of a launch, shared by the threads that hold the lock in turn.

    `lazy` says that the kernel only reads them, word by word. `most_bytes` is what they may take (None: any), `made`
    what they take. `may_sample` says that where no proof leads a sample of blocks runs, if all are much work.
    """

    memory: GlobalMemory
    lazy: bool
    most_bytes: int | None
    may_sample: bool
    lock: threading.Lock = field(default_factory=threading.Lock)
    parts: dict[int, LazyBuffer] = field(default_factory=dict)
    made: int = 0


def open_buffer(buffers: Buffers, number: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32] | None]:
    """The bytes of an allocation, and which chunks of them are made: None for all."""
    part = buffers.parts.get(number)
    if part is not None:
        return part.octets, part.made
    allocation = buffers.memory.allocations[number]
    chunks = -(-allocation.size_bytes // CHUNK_BYTES)
    content = allocation.buffer.contents
    if not buffers.lazy or chunks < _FEWEST_CHUNKS or content.kind == "zeros" or needs_whole(allocation.buffer):
        if buffers.memory.storages[number] is None and content.kind != "zeros":
            _spend(buffers, allocation, allocation.size_bytes, whole=True)
        try:
            return global_storage(buffers.memory, number).octets, None
        except MemoryError:
            raise MemoryBudgetError(_describe_lack(allocation)) from None
    part = LazyBuffer(make_sparse(allocation.size_bytes + _PADDING_BYTES), np.zeros(chunks, np.int32))
    buffers.parts[number] = part
    return part.octets, part.made


def _describe_lack(allocation: Allocation) -> str:
    """What a buffer would take that does not fit into this machine, and which would not."""
    buffer = allocation.buffer
    text = (
        f"{allocation.argument}: its {allocation.size_bytes:,} bytes of {buffer.contents.kind} are made as a whole,"
        " which takes more memory than this machine has; a sample of the blocks would need as much. "
    )
    if needs_whole(buffer):
        return f"{text}Contents that are made where they are read are noise, arange and zeros, and uniform of floats"
    return f"{text}Pass less: what blocks that are alike count does not hang on how many they are"


def make_chunk(buffers: Buffers, number: int, chunk: int) -> None:
    """Makes a chunk of a buffer that is made in parts."""
    part = buffers.parts[number]
    if part.made[chunk]:
        return
    allocation = buffers.memory.allocations[number]
    size = ELEMENT_TYPES[allocation.buffer.dtype].size_bytes
    start, stop = chunk * CHUNK_BYTES, min((chunk + 1) * CHUNK_BYTES, allocation.size_bytes)
    _spend(buffers, allocation, stop - start, whole=False)
    part.octets[start:stop] = materialise(allocation.buffer, start // size, stop // size).view(np.uint8)
    part.made[chunk] = 1


def _spend(buffers: Buffers, allocation: Allocation, size: int, *, whole: bool) -> None:
    buffers.made += size
    if buffers.most_bytes is not None and buffers.made > buffers.most_bytes:
        needed = sum(each.size_bytes for each in buffers.memory.allocations if each.buffer.contents.kind != "zeros")
        if whole:
            sampling = "It is made as a whole: a sample of the blocks would need as much"
        elif buffers.may_sample:
            sampling = "A sample of the blocks reads less: ExecutionOptions(sample_above=0) takes one"
        else:
            sampling = "A sample of the blocks reads less: it is taken without --all-blocks"
        raise MemoryBudgetError(
            f"{allocation.argument}: what the kernel reads of its buffers takes more than the {buffers.most_bytes:,}"
            f" bytes allowed; all of this one takes {allocation.size_bytes:,}, all that are filled {needed:,}. "
            f"Allow more with --memory, or pass less. {sampling}"
        )
