"""Turns symbols that the compiler made into the names and types that their sources have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.names import KernelName, read_kernel_name
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA

if TYPE_CHECKING:
    from pathlib import Path

# Each symbol is what NVRTC makes of the kernel beside it.
NAMES = {
    "transpose": KernelName("transpose", None),
    "_Z4copyPKfPfi": KernelName("copy", ("const float*", "float*", "int")),
    "_Z9transposeILi32EEvPKfPf": KernelName("transpose<32>", ("const float*", "float*")),
    "_Z3runv": KernelName("run", ()),
    "_ZN2ns2in1kIfEEvT_NS_1AIS2_Li4EEEPKS2_PNS_1BE": KernelName(
        "ns::in::k<float>", ("float", "ns::A<float, 4>", "const float*", "ns::B*")
    ),
    "_ZN36_GLOBAL__N__00000000_4_t_cu_6ebb80704anonEPi": KernelName("(anonymous namespace)::anon", ("int*",)),
    "_Z4statPiS_fPfPS_S1_": KernelName("stat", ("int*", "int*", "float", "float*", "int**", "int**")),
    "_Z2ttIN2ns1AEiEvT_IT0_Li3EEPS4_PS2_IS3_Li4EE": KernelName(
        "tt<ns::A, int>", ("ns::A<int, 3>", "ns::A<int, 3>*", "ns::A<int, 4>*")
    ),
    "_Z2enIL1E1E2FnEvT0_": KernelName("en<(E)1, Fn>", ("Fn",)),
    "_Z1vILin3ELb0ELy1EJEEvDpT2_Pf": KernelName("v<-3, false, 1ull>", ("float*",)),
    "_Z1vILi3ELb1ELy77EJiPfN2ns1AINS1_1BELi2EEEEEvDpT2_S0_": KernelName(
        "v<3, true, 77ull, int, float*, ns::A<ns::B, 2>>", ("int", "float*", "ns::A<ns::B, 2>", "float*")
    ),
    "_Z1pPfPKPKfPFiifERA4_ihalxjb6float4P7double24int3PVKistcm": KernelName(
        "p",
        (
            "float*",
            "const float* const*",
            "int (*)(int, float)",
            "int (&) [4]",
            "unsigned char",
            "signed char",
            "long",
            "long long",
            "unsigned int",
            "bool",
            "float4",
            "double2*",
            "int3",
            "const volatile int*",
            "short",
            "unsigned short",
            "char",
            "unsigned long",
        ),
    ),
    "_Z1kP6__halfP13__nv_bfloat16": KernelName("k", ("__half*", "__nv_bfloat16*")),
}

SOURCE = """\
namespace ns {
template <class T, int N> struct A { T x[N]; };
struct B { int q; };
namespace in {
template <typename T> __global__ void k(T a, A<T, 4> b, const T *c, B *d) { *d = B{(int)b.x[0]}; }
template __global__ void k<float>(float, A<float, 4>, const float *, B *);
}
}
using namespace ns;
template <int M, bool C, unsigned long long L, typename... Ts> __global__ void v(Ts... a, float *p) { *p = 1; }
template __global__ void v<3, true, 77ull, int, float *, A<B, 2>>(int, float *, A<B, 2>, float *);
template __global__ void v<-3, false, 1ull>(float *);
template <template <class, int> class Q, class T> __global__ void tt(Q<T, 3> a, Q<T, 3> *b, Q<T, 4> *c) { *b = a; }
template __global__ void tt<A, int>(A<int, 3>, A<int, 3> *, A<int, 4> *);
enum class E { a, b };
struct Fn { __device__ void operator()() {} };
template <E e, typename F> __global__ void en(F f) { f(); }
template __global__ void en<E::b, Fn>(Fn);
__global__ void p(float *__restrict__ a, const float *const *b, int (*f)(int, float), int (&r)[4], unsigned char c,
                  signed char d, long l, long long ll, unsigned u, bool z, float4 f4, double2 *d2, int3 i3,
                  const volatile int *cv, short s, unsigned short us, char ch, size_t st) { a[0] = r[1]; }
__global__ void copy(const float *a, float *o, int n) { o[0] = a[n]; }
"""


@pytest.mark.parametrize("symbol", NAMES)
def test_name(symbol: str) -> None:
    assert read_kernel_name(symbol) == NAMES[symbol]


def test_names_of_compiled_kernels(tmp_path: Path) -> None:
    path = tmp_path / "names.cu"
    path.write_text(SOURCE)
    kernels = read_cubin(CUDA.compile(path, CompileRequest("sm_90")).cubin, "names.cu").kernels
    assert len(kernels) == 7
    for kernel in kernels:
        assert (kernel.readable_name, kernel.parameter_types) == (
            NAMES[kernel.name].readable,
            NAMES[kernel.name].parameter_types,
        )


@pytest.mark.parametrize(
    "symbol", ["_Z", "_Z3", "_Z9tooShort", "_Z1kIXadL_Z1fvEEEvv", "_Z1kDpT5_", "_ZN1kE", "_Z1kS9_"]
)
def test_a_symbol_that_is_not_understood_is_its_own_name(symbol: str) -> None:
    assert read_kernel_name(symbol).parameter_types in (None, ())
    if read_kernel_name(symbol).parameter_types is None:
        assert read_kernel_name(symbol).readable == symbol


@given(st.text(alphabet="ZNIEJPKRSTLvifdxy0123456789_DpFAtabk", max_size=60))
def test_any_symbol_gives_a_name(tail: str) -> None:
    assert read_kernel_name("_Z" + tail).readable


def test_deep_symbol_ends() -> None:
    assert read_kernel_name("_Z1k" + "P" * 5000 + "i") == KernelName("_Z1k" + "P" * 5000 + "i", None)
