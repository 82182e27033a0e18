"""Turns what a kernel wrote into a digest of all of it, and one byte for each slot, which tells where runs differ."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]

DIGEST_BYTES = 8


def digest(words: Words, scratch: Words) -> str:
    """16 hexadecimal digits for the words [slots, threads] and the scratch buffer."""
    made = hashlib.blake2b(np.ascontiguousarray(words).tobytes(), digest_size=DIGEST_BYTES)
    made.update(np.ascontiguousarray(scratch).tobytes())
    return made.hexdigest()


def digest_slots(words: Words) -> bytes:
    """One byte for each slot."""
    return bytes(zlib.crc32(np.ascontiguousarray(slot).tobytes()) & 0xFF for slot in words)
