"""Turns spelled kernels into their parameter types, and doubtful ones into silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.frontends.signatures import (
    find_calls,
    find_parameter_names,
    find_parameter_types,
    sketch_source,
)


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
    find_parameter_names("__global__ " + text)
    find_calls(text)


HOST = """
__global__ void scale(const float* __restrict__ in, float out[], int n, float factor) {}
template <int N> __global__ void fill(ns::Pair<float, 2>* out, float2 v, int k) {}
extern "C" __global__ void plain(int* a, unsigned long long n) {}
__global__ void bare(int*, float) {}
int main() {
  // scale<<<1, 32>>>(a, b, n, 2.0f);
  scale<<<(n + 255) / 256, 256>>>(a, b, n, 2.0f);
  fill<4> <<< 16,
      dim3(32, 4) >>>(o, v, 1);
  fill<8><<<1, 64>>>(o, v, 2);
  plain<<<(7 + 1) * 2, 64, 1 << 10>>>(o, 5);
}
"""


def test_names_and_calls_of_a_program_with_host_code() -> None:
    assert find_parameter_names(HOST) == {
        "scale": ("in", "out", "n", "factor"),
        "fill": ("out", "v", "k"),
        "plain": ("a", "n"),
    }
    assert find_calls(HOST) == {
        "scale": "(n + 255) / 256, 256",
        "fill": "16, (32, 4)",
        "plain": "(7 + 1) * 2, 64, 1 << 10",
    }


def test_launches_to_fill_in_have_names_and_what_the_text_says() -> None:
    kernels = [(name, types) for name, types in find_parameter_types(HOST).items()]
    assert sketch_source(HOST, kernels) == [
        "// sectorwise: launch scale<<<grid, block>>>(in=f32[count], out=f32[count], n=value, factor=value)",
        "   (there it is launched as scale<<<(n + 255) / 256, 256>>>; here grid and block are numbers)",
        "// sectorwise: launch fill<int N><<<16, (32, 4)>>>(out=u8[bytes], v={fields}, k=value)",
        "// sectorwise: launch plain<<<(7 + 1) * 2, 64, 1 << 10>>>(a=i32[count], n=value)",
        "// sectorwise: launch bare<<<grid, block>>>(i32[count], f32(value))",
    ]
