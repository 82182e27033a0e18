"""Turns a kernel's seed into the buffers and scalars of its launch, the same for the engine and for a GPU."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from tools.fuzz.inputs import make_inputs

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]

COMMON_WORDS = 32
"""Words at the end of the scratch buffer that all threads of a launch update."""

SCRATCH_WORDS_PER_THREAD = 4
UNWRITTEN = 0xC0DEC0DE
"""What the output holds where no thread writes: lanes that left early."""


def make_buffers(seed: int, threads: int, slots: int) -> tuple[Words, Words, Words]:
    """What the kernel reads, what it writes, and what its atomics work on, before it runs."""
    scratch_words = threads * SCRATCH_WORDS_PER_THREAD + COMMON_WORDS
    scratch = make_inputs(seed + 1, threads + 2)[:scratch_words].copy()
    return make_inputs(seed, threads), np.full(slots * threads, UNWRITTEN, np.uint32), scratch


def pack_scalars(scalars: tuple[int, int, int, int, int]) -> tuple[bytes, ...]:
    """The bytes of the scalar arguments in order."""
    return tuple(struct.pack(code, value) for code, value in zip(["<I", "<I", "<I", "<Q", "<Q"], scalars, strict=True))
