"""Arrays with leading axes are taken apart into batches whose products are, all together, NumPy's."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.kernels.arrays import DeviceArray
from sectorwise.kernels.axes import find_span
from sectorwise.kernels.batches import broadcast_shapes, list_batches
from sectorwise.kernels.plan import Operand
from tests.kernels.devices import address_of

Array = npt.NDArray[np.int16]


def draw(*shape: int) -> Array:
    """Small whole numbers."""
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(np.int16)


def take(array: DeviceArray, number: int, apart: int) -> Array:
    """A matrix of a batch, as it lies in this process's memory."""
    held = array.operand
    begin, end = find_span(held)
    memory = memoryview((ctypes.c_char * (end - begin)).from_address(begin + 2 * number * apart)).cast("B")
    return np.ndarray(held.shape, np.int16, memory, held.address - begin, held.strides_bytes)


def multiply(a: Array, b: Array, c: Array) -> list[tuple[int, tuple[int, ...]]]:
    """Multiply batch by batch into C; of each how many products it has, and of which shape A is."""
    arrays = [
        DeviceArray(name, Operand(address_of(each), each.shape, each.strides, 2), "i16", 0, read_only=False)
        for name, each in zip("abc", (a, b, c), strict=True)
    ]
    told = []
    for batch in list_batches(arrays[0], arrays[1], arrays[2]):
        told.append((batch.count, batch.a.shape))
        for number in range(batch.count):
            left, right, result = (
                take(array, number, apart)
                for array, apart in zip((batch.a, batch.b, batch.c), batch.apart, strict=True)
            )
            result[...] = left @ right
    return told


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (draw(5, 6), draw(6, 7), [(1, (5, 6))]),
        (draw(4, 5, 6), draw(4, 6, 7), [(4, (5, 6))]),
        (draw(2, 3, 5, 6), draw(2, 3, 6, 7), [(6, (5, 6))]),
        (draw(5, 6), draw(4, 6, 7), [(4, (5, 6))]),
        (draw(4, 5, 6), draw(6, 7), [(1, (20, 6))]),
        (draw(2, 3, 5, 6), draw(6, 7), [(1, (30, 6))]),
        (draw(4, 1, 6), draw(6, 7), [(1, (4, 6))]),
        (draw(4, 9, 6)[:, ::2], draw(6, 7), [(4, (5, 6))]),
        (draw(2, 1, 5, 6), draw(1, 3, 6, 7), [(3, (5, 6))] * 2),
        (draw(2, 3, 5, 6), draw(3, 6, 7), [(3, (5, 6))] * 2),
        (draw(3, 2, 4, 5).transpose(1, 0, 2, 3), draw(2, 3, 5, 4), [(3, (4, 5))] * 2),
        (draw(4, 10, 6)[::-1, ::2], draw(4, 6, 7)[:, :, ::-1], [(4, (5, 6))]),
        (draw(1, 1, 5, 6), draw(6, 7), [(1, (5, 6))]),
        (np.broadcast_to(draw(5, 6), (3, 5, 6)), draw(6, 7), [(3, (5, 6))]),
    ],
)
def test_batches_are_the_product(a: Array, b: Array, told: list[tuple[int, tuple[int, ...]]]) -> None:
    expected = a @ b
    result = np.full(expected.shape, 99, np.int16)
    assert multiply(a, b, result) == told
    np.testing.assert_array_equal(result, expected)


def test_long_batches_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sectorwise.kernels.batches._MOST", 4)
    a, b = draw(10, 3, 2), draw(10, 2, 3)
    result = np.zeros((10, 3, 3), np.int16)
    assert multiply(a, b, result) == [(4, (3, 2)), (4, (3, 2)), (2, (3, 2))]
    np.testing.assert_array_equal(result, a @ b)


def test_shapes_are_stretched_as_numpy_has_it() -> None:
    for one, other in (((), ()), ((3,), ()), ((2, 1), (3,)), ((4, 1, 5), (7, 1)), ((0,), (1,)), ((1,), (0, 1))):
        assert broadcast_shapes(one, other) == np.broadcast_shapes(one, other)
    assert broadcast_shapes((2, 3), (2,)) is None
