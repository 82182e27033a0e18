"""Turns nothing into launches of every form: Hypothesis strategies."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st

from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    Contents,
    LaunchConfig,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    TensorMapArgument,
)
from sectorwise.launch.dtypes import ELEMENT_TYPES

names = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True).filter(lambda name: name not in {"with", "e"})
dtypes = st.sampled_from(sorted(ELEMENT_TYPES))
seeds = st.integers(0, 2**40)
contents = st.one_of(
    st.sampled_from([Contents("zeros"), Contents("arange"), Contents("noise")]),
    st.builds(Contents, st.just("uniform"), seed=seeds),
    st.builds(Contents, st.just("file"), path=st.text(min_size=1).filter(lambda path: "\0" not in path)),
)


def scalar_of(dtype: str) -> st.SearchStrategy[ScalarArgument]:
    element = ELEMENT_TYPES[dtype]
    if element.is_float:
        width: Literal[16, 32] = 16 if dtype == "f16" else 32
        return st.builds(
            ScalarArgument, st.floats(width=width, allow_nan=False, max_value=1e4, min_value=-1e4), st.just(dtype)
        )
    return st.builds(ScalarArgument, st.integers(element.low, element.high), st.just(dtype))


@st.composite
def tensor_maps(draw: st.DrawFn) -> TensorMapArgument:
    """Maps that the driver takes, of a buffer that they just fit."""
    axes = draw(st.integers(1, 5))
    dtype = draw(dtypes)
    width = ELEMENT_TYPES[dtype].size_bytes
    swizzle = draw(st.sampled_from([0, 32, 64, 128]))
    row = draw(st.integers(1, (swizzle or 128) // 16)) * 16 // width
    shape = tuple(draw(st.lists(st.integers(1, 100), min_size=axes, max_size=axes)))
    interleave = draw(st.sampled_from([0, 16, 32] if axes > 2 else [0]))
    unit = max(16, interleave)
    strides, reach = [], shape[0] * width
    for size in shape[1:]:
        strides.append(-(-reach // unit) * unit + unit * draw(st.integers(0, 2)))
        reach = strides[-1] * size
    return TensorMapArgument(
        BufferArgument(dtype, -(-reach // width), draw(contents)),
        shape,
        tuple(strides),
        (row, *draw(st.lists(st.integers(1, 256), min_size=axes - 1, max_size=axes - 1))),
        tuple(draw(st.lists(st.integers(1, 8), min_size=axes, max_size=axes))),
        swizzle,
        interleave,
        draw(st.sampled_from([0, 64, 128, 256])),
        fill_nan=ELEMENT_TYPES[dtype].is_float and draw(st.booleans()),
    )


plain = st.builds(ScalarArgument, st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False)))
values = st.recursive(
    st.one_of(
        st.builds(BufferArgument, dtypes, st.integers(1, 2**40), contents),
        plain,
        dtypes.flatmap(scalar_of),
        st.builds(BytesArgument, st.binary(min_size=1, max_size=40)),
        st.builds(PointerArgument, names, st.integers(-(2**40), 2**40)),
        tensor_maps(),
    ),
    lambda inner: st.builds(StructArgument, st.lists(inner, min_size=1, max_size=4).map(tuple)),
    max_leaves=8,
)
dimensions = st.tuples(st.integers(1, 2**31), st.integers(1, 65_535), st.integers(1, 65_535))
launches = st.builds(
    LaunchConfig,
    st.sampled_from(["k", "ns::k<float, 32>", "transpose<32>"]),
    dimensions,
    dimensions,
    st.integers(0, 300_000),
    st.lists(values, max_size=5).map(tuple),
)
