from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.launch.addresses import ALIGNMENT_BYTES, assign_addresses, find_buffers
from sectorwise.launch.config import Argument, BufferArgument, Contents, PointerArgument, ScalarArgument, StructArgument
from sectorwise.launch.notation import parse_launch
from sectorwise.launch.packing import Extent, MisfitError, measure_member, pack_argument

if TYPE_CHECKING:
    from ctypes import _SimpleCData

    CType = type[ctypes.Structure | _SimpleCData[Any]]

C_TYPES: dict[str, CType] = {
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "i16": ctypes.c_int16,
    "i8": ctypes.c_int8,
    "u64": ctypes.c_uint64,
    "u16": ctypes.c_uint16,
}
ADDRESS = 0x7F20_1234_5678


def address_of(argument: object, path: object) -> int:
    assert isinstance(argument, (BufferArgument, PointerArgument))
    assert isinstance(path, tuple)
    return ADDRESS


def pack(argument: str, size_bytes: int, declared: str | None = None) -> bytes:
    (given,) = parse_launch(f"k<<<1, 1>>>({argument})").arguments
    return pack_argument(given, size_bytes, address_of, (0,), declared)


@pytest.mark.parametrize(
    ("argument", "size_bytes", "packed"),
    [
        ("512", 4, struct.pack("<i", 512)),
        ("512", 8, struct.pack("<q", 512)),
        ("-1", 2, b"\xff\xff"),
        ("255", 1, b"\xff"),
        ("4294967295", 4, b"\xff" * 4),
        ("0.5", 4, struct.pack("<f", 0.5)),
        ("0.1", 8, struct.pack("<d", 0.1)),
        ("f16(0.1)", 2, struct.pack("<e", 0.1)),
        ("bf16(1)", 2, b"\x80\x3f"),
        ("bf16(1.00390625)", 2, b"\x80\x3f"),  # halfway between two: the even one
        ("inf", 4, struct.pack("<f", float("inf"))),
        ("i64(-2)", 8, struct.pack("<q", -2)),
        ("18446744073709551615", 8, b"\xff" * 8),
        ("f32[4]", 8, struct.pack("<Q", ADDRESS)),
        ("bytes(00ff3c)", 3, b"\x00\xff\x3c"),
        ("{i8(1), i32(2), i8(3)}", 12, b"\1\0\0\0\2\0\0\0\3\0\0\0"),
        ("{i8(1), {f32[4], i16(7)}}", 24, struct.pack("<b7xQh6x", 1, ADDRESS, 7)),
        ("{f32[4], 5}", 16, struct.pack("<Qi4x", ADDRESS, 5)),
        ("{0.5, 1 << 40}", 16, struct.pack("<f4xq", 0.5, 1 << 40)),
        ("{bytes(0102), i16(3)}", 4, b"\1\2\3\0"),
    ],
)
def test_values_have_the_bytes_that_c_gives_them(argument: str, size_bytes: int, packed: bytes) -> None:
    assert pack(argument, size_bytes) == packed


def test_the_declared_type_decides_what_a_plain_number_is() -> None:
    assert pack("1", 4, "f32") == struct.pack("<f", 1.0)
    assert pack("0.5", 2, "f16") == struct.pack("<e", 0.5)
    assert pack("9007199254740993", 8, "u64") == struct.pack("<Q", 9007199254740993)


@pytest.mark.parametrize(
    ("argument", "size_bytes", "message"),
    [
        ("300", 1, "300 does not fit u8 (0 to 255)"),
        ("-300", 1, "-300 does not fit i8 (-128 to 127)"),
        ("5", 12, "expected 12 bytes, as {...} or bytes(...), got the number 5"),
        ("0.5", 2, "expected 2 bytes, got 0.5; write f16(...) or bf16(...)"),
        ("i32(5)", 8, "expected 8 bytes, got i32, which has 4"),
        ("f32[4]", 4, "expected 4 bytes, got an address, which has 8"),
        ("bytes(00)", 4, "expected 4 bytes, got 1"),
        ("{f32[4], 5}", 24, "expected 24 bytes, got a struct of 16"),
        ("{i8(1)}", 4, "expected 4 bytes, got a struct of 1"),
    ],
)
def test_values_of_another_size_are_told(argument: str, size_bytes: int, message: str) -> None:
    with pytest.raises(MisfitError) as caught:
        pack(argument, size_bytes)
    assert str(caught.value) == message


members = st.recursive(
    st.sampled_from(sorted(C_TYPES)).map(lambda dtype: ScalarArgument(1, dtype)),
    lambda inner: st.lists(inner, min_size=1, max_size=5).map(lambda fields: StructArgument(tuple(fields))),
    max_leaves=12,
)


def as_ctype(argument: Argument) -> CType:
    if isinstance(argument, StructArgument):
        fields = [(f"f{index}", as_ctype(member)) for index, member in enumerate(argument.fields)]
        return type("S", (ctypes.Structure,), {"_fields_": fields})
    assert isinstance(argument, ScalarArgument)
    return C_TYPES[argument.dtype or ""]


def fill(value: ctypes.Structure, argument: StructArgument) -> None:
    for index, member in enumerate(argument.fields):
        if isinstance(member, StructArgument):
            fill(getattr(value, f"f{index}"), member)
        else:
            setattr(value, f"f{index}", 1)


@given(members.filter(lambda argument: isinstance(argument, StructArgument)))
def test_structs_are_laid_out_as_the_c_compiler_does(argument: StructArgument) -> None:
    ctype = as_ctype(argument)
    extent = measure_member(argument)
    assert extent == Extent(ctypes.sizeof(ctype), ctypes.alignment(ctype))
    value = ctype()
    assert isinstance(value, ctypes.Structure)
    fill(value, argument)
    assert pack_argument(argument, extent.size_bytes, address_of, (0,)) == bytes(value)


@given(st.lists(st.integers(1, 1 << 33), max_size=12))
def test_buffers_lie_apart_with_guard_space_of_their_own_size(sizes_bytes: list[int]) -> None:
    addresses = assign_addresses(sizes_bytes)
    assert addresses == assign_addresses(sizes_bytes)
    assert all(address % ALIGNMENT_BYTES == 0 and address < 1 << 47 for address in addresses)
    for before, size_bytes, after in zip(addresses, sizes_bytes, addresses[1:], strict=False):
        assert after - (before + size_bytes) >= max(1 << 20, size_bytes)


def test_small_buffers_are_no_better_aligned_than_they_need_be() -> None:
    assert all(address % 1024 == 512 for address in assign_addresses([4096] * 9))
    assert all(address % (2 << 20) == 0 for address in assign_addresses([1 << 20] * 9))


def test_every_buffer_has_a_label_that_says_where_it_stands() -> None:
    launch = parse_launch(
        "k<<<1, 1>>>(f32[1], out=f32[2], {5, f32[3], {f32[4]}}, ptr(out)) with tab=i32[4], p={f32[5]}"
    )
    assert [(label, buffer.count) for _, label, buffer in find_buffers(launch)] == [
        ("argument 0", 1),
        ("out", 2),
        ("argument 2, field 1", 3),
        ("argument 2, field 2, field 0", 4),
        ("p, field 0", 5),
    ]
    assert find_buffers(launch)[0][2] == BufferArgument("f32", 1, Contents())
