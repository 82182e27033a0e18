"""Turns spelled kernels into their parameter types, and doubtful ones into silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.frontends.signatures import find_parameter_types


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (
            'extern "C" __global__ void k(const float* __restrict__ a, float *b, int n) {}',
            ("const float *", "float *", "int"),
        ),
        ("__global__ void k() {}", ()),
        ("__global__ void k(void) {}", ()),
        (
            "__global__ void __launch_bounds__(256, 2) k(unsigned long long *l, unsigned n) {}",
            ("unsigned long long *", "unsigned"),
        ),
        ("__global__ __launch_bounds__(N * (2 + 1)) void k(int a) {}", ("int",)),
        ("void __global__ k(short) {}", ("short",)),
        ("template <typename T, int N> __global__ void k(T *a, Pair<T, N> p) {}", ("T *", "Pair<T,N>")),
        ("__global__ void k(ns::Pair p, float a[16], const int b[]) {}", ("ns::Pair", "float *", "const int *")),
        ("__global__ void k(const __grid_constant__ Map map) {}", ("const Map",)),
        ("__global__ void k(int a /* the, first */, // and\n float b) {}", ("int", "float")),
        ("static inline __global__ void k(half *h, struct S s);", ("half *", "struct S")),
    ],
)
def test_types(text: str, types: tuple[str, ...]) -> None:
    assert find_parameter_types(text) == {"k": types}


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(ARGUMENTS(int, a)) {}",
        "__global__ void k(int (*f)(int)) {}",
        "__global__ void k(int a) {}\n__global__ void k(float a) {}",
        "__global__ KERNEL k;",
        "__global__ void k(int a",
        "// __global__ void k(int a) {}",
        'const char *s = "__global__ void k(int a)";',
    ],
)
def test_doubt_is_silence(text: str) -> None:
    assert find_parameter_types(text) == {}


def test_several_kernels_and_declarations() -> None:
    text = "__global__ void a(int x);\n__global__ void a(int y) { y; }\n__global__ void b(float *p) {}\n"
    assert find_parameter_types(text) == {"a": ("int",), "b": ("float *",)}


@given(st.text(alphabet="__global__ void k(int*a,)<>{}[];/\"'\n", max_size=80))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    find_parameter_types("__global__ " + text)
