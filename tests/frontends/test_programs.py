"""Turns whole programs, with host code as people write it, into counts of their kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from sectorwise.errors import CompileError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.frontends.declarations import DeclarationKind, read_declarations
from sectorwise.frontends.host_code import drop_host_code, has_host_code

PROGRAMS = Path(__file__).parent / "programs"

# Sectors of the loads and stores of global memory, and wavefronts of those of shared memory, by hand from the source.
CASES = [
    ("vector_add", "add<<<4, 256>>>(2048, f32[2048], f32[2048])", 2 * 2048 // 8, 2048 // 8, 0),
    ("transpose", "transpose<32><<<(2, 2), (32, 8)>>>(f32[4096], f32[4096], 64, 64)", 512, 512, 256),
    ("reduction", "reduce<<<16, 256, 32>>>(f32[4096], f32[16], 4096)", 512, 16, 16 * 8 + 16 * 2),
    ("gemm_half", "gemm<<<(2, 2), 32>>>(f16[1024], f16[1024], f32[1024], 32, 32)", 4 * 2 * 2 * 32, 4 * 32, 0),
    ("gemm_half", "to_half<<<4, 256>>>(f16[1024], f32[1024], 1024)", 128, 64, 0),
    ("bodies", "step<<<2, 128>>>(f32[1024], f32[1024], {0.01f, 0.001f, 256})", 128 + 8 * 256, 128, 0),
    ("softmax_extension", "softmax_kernel<float, 4><<<4, 128>>>(f32[2048], f32[2048], 128)", 2 * 256, 256, 0),
    ("block_sum", "block_sum<128><<<4, 128>>>(i32[512], i32[4])", 64, 4, None),
]


@pytest.mark.parametrize(
    ("program", "launch", "loaded", "stored", "wavefronts"), CASES, ids=lambda value: str(value)[:18]
)
def test_kernels_of_programs_are_counted(
    program: str, launch: str, loaded: int, stored: int, wavefronts: int | None
) -> None:
    (kernel,) = analyze(PROGRAMS / f"{program}.cu", launch).kernels
    sectors = {"load": 0, "store": 0}
    for site in kernel.sites:
        if site.space == "global":
            assert site.sectors is not None
            sectors[site.operation] += site.sectors
    if program == "softmax_extension":
        # Whether a row is read three times or kept in registers is the compiler's choice.
        sectors["load"] = min(sectors["load"], loaded)
    assert sectors == {"load": loaded, "store": stored}
    assert wavefronts is None or kernel.totals.shared_wavefronts == wavefronts
    assert (kernel.faults, kernel.coverage.sites_unknown) == ((), 0)


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.cu")), ids=lambda path: path.stem)
def test_device_code_stays_where_it_was(path: Path) -> None:
    text = path.read_text()
    assert has_host_code(text)
    device = drop_host_code({"program": text})["program"]
    for number, (line, kept) in enumerate(zip(text.split("\n"), device.split("\n"), strict=True), 1):
        if kept.strip() and "using namespace" not in line:
            assert line.startswith(kept.rstrip()) or kept.strip() in line, number
    for word in ("main(", "<<<", "cudaMalloc", "std::cout", "std::vector", "torch::"):
        assert word not in device
    assert text.count("__global__") == device.count("__global__")


def test_locations_are_those_of_the_program() -> None:
    (kernel,) = analyze(PROGRAMS / "transpose.cu", CASES[1][1]).kernels
    lines = (PROGRAMS / "transpose.cu").read_text().splitlines()
    named = {lines[site.location.line - 1].partition(") ")[2][:24] for site in kernel.sites if site.location}
    assert named == {"tile[threadIdx.y + j][th", "out[(y + j) * height + x"}


def test_atomics_of_an_instance_by_enumeration() -> None:
    launch = "histogram<Mode::kGlobal><<<4, 128>>>(u8[1024]=arange, u32[64], 1024) with shifts=u8[4]"
    (kernel,) = analyze(PROGRAMS / "histogram.cu", launch).kernels
    reductions = [site for site in kernel.sites if site.operation == "reduction" and site.space == "global"]
    # 32 lanes hold 32 values in a row, which fall into eight bins: one sector.
    assert sum(site.sectors or 0 for site in reductions) == 1024 // 32


def test_what_is_kept_is_what_kernels_name() -> None:
    text = """\
#include <vector>
#define SCALE(x) scale_by(x, kFactor)
constexpr float kFactor = 2.0f, kUnused = 3.0f;
float scale_by(float x, float by) { return x * by; }
float host_only(float x) { return x + 1; }
using Real = float;
typedef struct { int a; } Pair, *PairPointer;
__global__ void k(Real *a, Pair p) { a[p.a] = SCALE(a[0]); }
void k(std::vector<float> &v) { v.clear(); }
int main() { k<<<1, 1>>>(nullptr, Pair{}); }
"""
    device = drop_host_code({"a": text})["a"]
    assert [line.split("(")[0].strip() for line in device.split("\n") if line.strip()] == [
        "#include <vector>",
        "#define SCALE",
        "constexpr float kFactor = 2.0f, kUnused = 3.0f;",
        "float scale_by",
        "using Real = float;",
        "typedef struct { int a; } Pair, *PairPointer;",
        "__global__ void k",
    ]


@pytest.mark.parametrize(
    "text", ["__global__ void k() {\nint main() { k<<<1, 1>>>(); }\n", "int main() { k<<<1>>>(); ] }", "}"]
)
def test_text_that_is_not_understood_stays_whole(text: str) -> None:
    assert drop_host_code({"a": text})["a"] == text


def test_device_code_alone_is_not_touched() -> None:
    assert not has_host_code('__global__ void k(float *a) { a[0] = 1; } // int main() { cudaMalloc }\n#include "a.h"')


def test_kinds_of_declarations() -> None:
    text = 'extern "C" { struct __align__(8) S { int f() { return 1; } } s; } template <int N = (3 > 2)> int g(int) { }'
    found = [(each.kind, each.names) for each in read_declarations(text) or ()]
    assert found == [
        (DeclarationKind.OPENING, ()),
        (DeclarationKind.TYPE, ("S", "s")),
        (DeclarationKind.OPENING, ()),
        (DeclarationKind.FUNCTION, ("g",)),
    ]


def test_errors_name_the_line_and_what_was_missing(tmp_path: Path) -> None:
    path = tmp_path / "broken.cu"
    path.write_text(
        "#include <fft_of_mine.h>\n__global__ void k(float *a) {\n  a[0] = wrong;\n}\nint main() { k<<<1, 1>>>(0); }\n"
    )
    with pytest.raises(CompileError) as caught:
        CUDA.compile(path, CompileRequest("sm_90"))
    said = str(caught.value)
    assert f'{path}(3): error: identifier "wrong" is undefined' in said
    assert "were not found, and taken as empty: fft_of_mine.h" in said
    assert "the file has host code" in said
