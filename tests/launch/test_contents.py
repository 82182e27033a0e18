from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.errors import LaunchError
from sectorwise.launch.config import BufferArgument, Contents
from sectorwise.launch.contents import is_assumed, materialise, needs_whole
from sectorwise.launch.dtypes import ELEMENT_TYPES, LONG_NAMES

if TYPE_CHECKING:
    from pathlib import Path

LONG = {short: long for long, short in LONG_NAMES.items() if short != "bf16"}


def make(
    dtype: str, kind: str, count: int = 1000, *, seed: int | None = None, below: int | None = None
) -> BufferArgument:
    return BufferArgument(dtype, count, Contents(kind, seed=seed, below=below))


@pytest.mark.parametrize(("dtype", "long"), LONG.items())
def test_contents_are_those_that_the_measured_launches_were_filled_with(dtype: str, long: str) -> None:
    """The generators of the harness that made tests/measured."""
    stored = np.dtype(long)
    assert np.array_equal(materialise(make(dtype, "zeros")), np.zeros(1000, stored))
    assert np.array_equal(materialise(make(dtype, "arange")), np.arange(1000).astype(stored))
    permuted = np.random.default_rng(7).permutation(100).astype(stored)
    assert np.array_equal(materialise(make(dtype, "perm", 100, seed=7)), permuted)
    generator = np.random.default_rng(9)
    if stored.kind == "f":
        drawn = generator.random(1000, dtype=np.float32).astype(stored)
    else:
        drawn = generator.integers(0, min(2**31, np.iinfo(stored).max), 1000).astype(stored)
    made = materialise(make(dtype, "uniform", seed=9))
    assert made.dtype == stored
    assert np.array_equal(made, drawn)


def test_uniform_stays_below_its_bound() -> None:
    drawn = materialise(make("i32", "uniform", seed=1, below=10))
    assert np.array_equal(drawn, np.random.default_rng(1).integers(0, 10, 1000))
    assert set(drawn.tolist()) == set(range(10))
    assert materialise(make("u64", "uniform", seed=1, below=2**64)).max() > 2**63


@given(
    st.sampled_from(sorted(ELEMENT_TYPES)),
    st.sampled_from(["zeros", "arange", "perm", "uniform", "noise"]),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 2**32),
)
def test_a_part_is_the_part_of_the_whole(dtype: str, kind: str, first: int, second: int, seed: int) -> None:
    buffer = make(dtype, kind, 100, seed=seed if kind in {"perm", "uniform"} else None)
    start, stop = sorted((first, second))
    assert np.array_equal(materialise(buffer, start, stop), materialise(buffer)[start:stop])


def test_a_part_of_a_huge_buffer_costs_what_the_part_costs() -> None:
    for kind in ("zeros", "arange", "noise", "uniform"):
        buffer = make("f32", kind, 1 << 50, seed=3 if kind == "uniform" else None)
        assert not needs_whole(buffer)
        assert materialise(buffer, (1 << 50) - 8).size == 8
    assert needs_whole(make("i32", "perm", seed=1))
    assert needs_whole(make("i32", "uniform", seed=1))


def test_noise_is_assumed_and_of_the_kind_of_its_type() -> None:
    assert is_assumed(make("f32", "noise"))
    assert not is_assumed(make("f32", "uniform", seed=1))
    fractions = materialise(make("f32", "noise", 100_000))
    assert 0 <= fractions.min() < 0.001
    assert 0.999 < fractions.max() < 1
    assert abs(float(fractions.mean()) - 0.5) < 0.01
    for dtype in ("i8", "u16", "i32", "u64"):
        words = materialise(make(dtype, "noise", 100_000))
        assert words.min() >= 0
        assert words.max() > 0.99 * ELEMENT_TYPES[dtype].high


@given(st.floats(width=32))
def test_bfloat16_is_the_nearest_with_ties_to_even(value: float) -> None:
    buffer = BufferArgument("bf16", 1, Contents("uniform", seed=0))
    assert materialise(buffer).dtype == np.uint16
    from sectorwise.launch.encoding import encode_values

    bits = int(encode_values(np.array([value], np.float32), ELEMENT_TYPES["bf16"])[0])
    if np.isnan(value):
        assert bits & 0x7F80 == 0x7F80
        assert bits & 0x7F
        return
    neighbours = [bits + step for step in (-1, 0, 1) if (bits + step) & 0x8000 == bits & 0x8000 and bits + step >= 0]
    # Infinity counts as the number after the greatest one, 2**128.
    exact = {near: _widen(near) for near in neighbours if near & 0x7FFF <= 0x7F80}
    true = np.float64(value) if np.isfinite(value) else np.copysign(2.0**128, value)
    distance = {near: abs(wide - true) for near, wide in exact.items()}
    assert distance[bits] == min(distance.values())
    if sum(each == distance[bits] for each in distance.values()) > 1:
        assert bits % 2 == 0


def _widen(bits: int) -> float:
    wide = float(np.array([bits << 16], np.uint32).view(np.float32)[0])
    return wide if np.isfinite(wide) else float(np.copysign(2.0**128, wide))


def test_files_give_their_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12, dtype=">f4").reshape(3, 4))
    buffer = BufferArgument("f32", 12, Contents("file", path=str(path)))
    assert np.array_equal(materialise(buffer, 2, 5), np.array([2, 3, 4], np.float32))
    np.save(path, np.asfortranarray(np.arange(6, dtype=np.uint16).reshape(2, 3)))
    halves = materialise(BufferArgument("f16", 6, Contents("file", path=str(path))))
    assert halves.dtype == np.float16
    assert halves.view(np.uint16).tolist() == [0, 1, 2, 3, 4, 5]


def test_files_that_do_not_fit_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    buffer = BufferArgument("f32", 4, Contents("file", path=str(path)))
    with pytest.raises(LaunchError, match=r"cannot read .*a\.npy: No such file"):
        materialise(buffer)
    path.write_bytes(b"no array")
    with pytest.raises(LaunchError, match=r"a\.npy: it is no \.npy file"):
        materialise(buffer)
    np.save(path, np.zeros(5, np.float32))
    with pytest.raises(LaunchError, match=r"expected 4 elements, got 5 in .*a\.npy"):
        materialise(buffer)
    np.save(path, np.zeros(4, np.int32))
    with pytest.raises(LaunchError, match=r"expected elements of type f32, got int32 in .*a\.npy"):
        materialise(buffer)
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(LaunchError, match=r"it is no \.npy file"):
        materialise(buffer)
    with path.open("wb") as file:
        np.savez(file, np.zeros(4, np.float32))
    with pytest.raises(LaunchError, match=r"cannot read .*a\.npy: expected one array"):
        materialise(buffer)
    path.write_bytes(b"")
    with pytest.raises(LaunchError, match=r"it is no \.npy file"):
        materialise(buffer)


def test_an_array_from_python_is_held_as_it_is() -> None:
    values = np.arange(4, dtype=np.float32)
    buffer = BufferArgument("f32", 4, Contents("array", array=values))
    assert np.array_equal(materialise(buffer, 1, 3), values[1:3])
    assert buffer == BufferArgument("f32", 4, Contents("array", array=values))
    assert buffer != BufferArgument("f32", 4, Contents("array", array=values.copy()))
