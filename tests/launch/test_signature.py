from __future__ import annotations

import pytest

from sectorwise.launch.notation import parse_launch
from sectorwise.launch.signature import ParameterType, find_mismatch, read_parameter_type

TYPES = [
    ("const float *", True, "f32", False),
    ("float* __restrict__", True, "f32", False),
    ("const float4 *__restrict__", True, "f32", True),
    ("unsigned long long int const * const", True, "u64", False),
    ("float **", True, "u64", False),
    ("const __half2 *", True, "f16", True),
    ("std::uint16_t *", True, "u16", False),
    ("float[]", True, "f32", False),
    ("void *", True, None, False),
    ("Node<float *> *", True, None, False),
    ("int", False, "i32", False),
    ("unsigned", False, "u32", False),
    ("const long long", False, "i64", False),
    ("unsigned char", False, "u8", False),
    ("bool", False, "u8", False),
    ("size_t", False, "u64", False),
    ("__nv_bfloat16", False, "bf16", False),
    ("float2", False, "f32", True),
    ("Params", False, None, False),
    ("Tensor<float *>", False, None, False),
    ("void (*)(int)", False, None, False),
    ("", False, None, False),
]


@pytest.mark.parametrize(("text", "is_pointer", "dtype", "is_vector"), TYPES)
def test_spellings_of_types_are_understood(text: str, *, is_pointer: bool, dtype: str | None, is_vector: bool) -> None:
    assert read_parameter_type(text) == ParameterType(text, is_pointer, dtype, is_vector)


@pytest.mark.parametrize(
    ("argument", "declared"),
    [
        ("f32[4]", "const float *"),
        ("f32[4]", "float4 *"),
        ("u16[8]", "const uint4 *"),  # wide loads are views too
        ("u8[4]", "const float *"),  # bytes are a view of anything
        ("f32[4]", "const char *"),
        ("f32[4]", "void *"),
        ("f32[4]", "Node *"),
        ("u16[4]", "const __half *"),  # half precision as its bits
        ("u32[4]", "int *"),
        ("f32[4]", "unsigned long long"),  # an address as a number
        ("nullptr", "float *"),
        ("0", "float *"),
        ("7", "float"),
        ("u32(7)", "int"),
        ("{f32[4], 5}", "Params"),
        ("bytes(00)", "bool"),
    ],
)
def test_arguments_for_their_types_pass(argument: str, declared: str) -> None:
    (given,) = parse_launch(f"k<<<1, 1>>>({argument})").arguments
    assert find_mismatch(given, read_parameter_type(declared)) is None


@pytest.mark.parametrize(
    ("argument", "declared", "message"),
    [
        ("f64[4]", "const float *", "expected a buffer of f32 for 'const float *', got one of f64"),
        ("i32[4]", "const float *", "expected a buffer of f32 for 'const float *', got one of i32"),
        ("f32[4]", "__half *", "expected a buffer of f16 for '__half *', got one of f32"),
        ("f32[4]", "int", "expected a number for 'int', got f32[4]"),
        ("512", "const float *", "expected a buffer for 'const float *', such as f32[count], got 512"),
        ("0.5", "int", "expected a whole number for 'int', got 0.5"),
        ("f32(1)", "int", "expected i32 for 'int', got f32(1.0)"),
        ("i64(1)", "int", "expected i32 for 'int', got i64(1)"),
    ],
)
def test_arguments_for_other_types_are_told(argument: str, declared: str, message: str) -> None:
    (given,) = parse_launch(f"k<<<1, 1>>>({argument})").arguments
    assert find_mismatch(given, read_parameter_type(declared)) == message
