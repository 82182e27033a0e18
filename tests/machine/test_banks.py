from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.machine.banks import pack_bank, read_bank


@given(st.binary(min_size=1, max_size=40), st.lists(st.integers(-8, 60), min_size=1, max_size=32))
def test_words_at_any_byte(content: bytes, offsets: list[int]) -> None:
    words, outside = read_bank(pack_bank(content), np.array([offsets], np.int64))
    padded = content + bytes(16)
    end = -(-len(content) // 4) * 4
    for lane, offset in enumerate(offsets):
        if 0 <= offset < end:
            assert words[0, lane] == int.from_bytes(padded[offset : offset + 4], "little")
            assert outside is None or not outside[0, lane]
        else:
            assert outside is not None
            assert outside[0, lane]
            assert words[0, lane] == 0
