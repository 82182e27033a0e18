"""Turns sources, good and bad, into cubins and into errors that a person can act on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.errors import ArgumentError, CompileError, MissingToolError
from sectorwise.frontends import cuda, nvrtc
from sectorwise.frontends.base import Compilation, CompileRequest
from sectorwise.frontends.cuda import CUDA, find_header_folders
from sectorwise.frontends.headers import STANDARD_HEADERS

MEASURED = Path(__file__).parents[1] / "measured" / "h200"
SCALE = """\
extern "C" __global__ void scale(float *a, float by) {
    a[threadIdx.x] *= by;
}
"""


@pytest.fixture
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECTORWISE_CACHE_DIR", str(tmp_path / "cache"))


def _compile(folder: Path, text: str, request: CompileRequest | None = None, name: str = "kernel.cu") -> Compilation:
    path = folder / name
    path.write_text(text)
    return CUDA.compile(path, request or CompileRequest("sm_90"))


def _texts(cubin: bytes) -> dict[str, list[str]]:
    return {
        kernel.name: [instruction.text for instruction in kernel.instructions]
        for kernel in read_cubin(cubin, "compiled").kernels
    }


@pytest.mark.parametrize("path", sorted(MEASURED.glob("*.sm_90.cubin")), ids=lambda path: path.name)
def test_compiles_to_what_was_measured(path: Path) -> None:
    source = MEASURED / path.name.replace(".sm_90.cubin", ".cu")
    assert _texts(CUDA.compile(source, CompileRequest("sm_90")).cubin) == _texts(path.read_bytes())


def test_what_the_source_tells(tmp_path: Path) -> None:
    made = _compile(tmp_path, SCALE)
    assert made.target == "sm_90"
    assert made.compiler == "NVRTC 13.0"
    assert made.source_text == SCALE
    assert made.source_file == str(tmp_path / "kernel.cu")
    assert made.parameter_types == {"scale": ("float *", "float")}
    (kernel,) = read_cubin(made.cubin, "kernel.cu").kernels
    assert (kernel.name, kernel.target) == ("scale", "sm_90")
    assert {each.location.file for each in kernel.instructions if each.location} == {str(tmp_path / "kernel.cu")}


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_121"])
def test_targets(tmp_path: Path, target: str) -> None:
    assert read_cubin(_compile(tmp_path, SCALE, CompileRequest(target)).cubin, "kernel.cu").target == target


def test_instructions_of_one_architecture_choose_it(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void order() { asm volatile("wgmma.fence.sync.aligned;"); }\n'
    made = _compile(tmp_path, text)
    assert (made.target, made.options[0]) == ("sm_90a", "-arch=sm_90a")
    assert [kernel.target for kernel in read_cubin(made.cubin, "kernel.cu").kernels] == ["sm_90a"]
    with pytest.raises(CompileError, match=r"wgmma\.fence"):
        _compile(tmp_path, text, CompileRequest("sm_80"))


def test_unknown_target_is_the_requests_fault(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"NVRTC 13\.0 cannot compile for sm_70"):
        _compile(tmp_path, SCALE, CompileRequest("sm_70"))


def test_template_instances_are_made_by_name(tmp_path: Path) -> None:
    text = "template <int N> __global__ void fill(int *o) { o[threadIdx.x] = N; }\n"
    made = _compile(tmp_path, text, CompileRequest("sm_90", kernels=("fill<32>", "fill<7>")))
    assert made.kernel_names == {"fill<32>": "_Z4fillILi32EEvPi", "fill<7>": "_Z4fillILi7EEvPi"}
    names = {kernel.name: kernel.readable_name for kernel in read_cubin(made.cubin, "kernel.cu").kernels}
    assert names == {symbol: name for name, symbol in made.kernel_names.items()}


def test_template_instance_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="fill"):
        _compile(tmp_path, SCALE, CompileRequest("sm_90", kernels=("fill<32>",)))


def test_compilers_message_has_the_files_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.cu").write_text('extern "C" __global__ void k(int *o) {\n    o[0] = missing;\n}\n')
    with pytest.raises(CompileError) as caught:
        CUDA.compile(Path("broken.cu"), CompileRequest("sm_90"))
    first, second, third, *_ = str(caught.value).splitlines()
    assert first == 'broken.cu(2): error: identifier "missing" is undefined'
    assert second.strip() == "o[0] = missing;"
    assert third.index("^") == second.index("missing")
    assert "hint" not in str(caught.value)


def test_missing_header_says_where_headers_come_from(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        _compile(tmp_path, '#include "no_such_header.h"\n' + SCALE)
    assert "hint: no_such_header.h is neither beside the file nor in a folder of --include" in str(caught.value)
    assert "pip install 'sectorwise[cuda]'" in str(caught.value)


def test_host_code_is_left_out(tmp_path: Path) -> None:
    host = "int main() { float *a; cudaMalloc(&a, 4); scale<<<1, 32>>>(a, 2.f); }\n"
    alone = _texts(_compile(tmp_path, SCALE).cubin)
    assert _texts(_compile(tmp_path, SCALE + host).cubin) == alone
    assert _texts(_compile(tmp_path, f"{SCALE}#ifndef __CUDACC_RTC__\n{host}#endif\n").cubin) == alone


def test_macros_and_include_folders(tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "width.h").write_text("#define WIDTH (LANES * 2)\n")
    text = "#include <width.h>\n__global__ void k(int *o) { static_assert(WIDTH == 64); o[0] = 1; }\n"
    request = CompileRequest("sm_90", macros=("LANES=32",), include_folders=(tmp_path / "headers",))
    assert _texts(_compile(tmp_path, text, request).cubin)
    with pytest.raises(CompileError, match="static assertion failed"):
        _compile(tmp_path, text, CompileRequest("sm_90", macros=("LANES=8",), include_folders=request.include_folders))


def test_standard_headers_and_those_of_cuda(tmp_path: Path) -> None:
    names = [name for name, _ in STANDARD_HEADERS]
    own = "".join(f"#include <{name}>\n" for name in names)
    packaged = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n#include <cooperative_groups.h>\n"
    use = """\
__global__ void k(__half *h, float *f, uint8_t *u) {
    std::uint64_t wide = UINT64_MAX;
    f[0] = std::sqrt(FLT_MAX) + INFINITY + float(M_PI) + float(wide) + INT_MAX;
    h[0] = __float2half(f[1]);
    assert(u[0] < CHAR_BIT);
}
"""
    for text in (own + packaged + use, packaged + own + use):
        assert _texts(_compile(tmp_path, text).cubin)
    assert any((folder / "cuda_fp16.h").is_file() for folder in find_header_folders())


def test_what_nvcc_has_without_an_include(tmp_path: Path) -> None:
    assert _texts(_compile(tmp_path, "__global__ void k(uint32_t *o, float *f) { o[0] = f[0] < INFINITY; }\n").cubin)


@pytest.mark.usefixtures("_own_cache")
def test_unchanged_source_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _compile(tmp_path, SCALE, CompileRequest("sm_90", kernels=("scale",)))
    calls: list[object] = []

    def record(*arguments: object) -> tuple[bytes, dict[str, str]]:
        calls.append(arguments)
        return b"new", {}

    monkeypatch.setattr(cuda, "compile_program", record)
    assert _compile(tmp_path, SCALE, CompileRequest("sm_90", kernels=("scale",))) == first
    assert calls == []
    changes = [
        (SCALE.replace("*=", "+="), CompileRequest("sm_90")),
        (SCALE, CompileRequest("sm_80")),
        (SCALE, CompileRequest("sm_90", macros=("N=1",))),
        (SCALE, CompileRequest("sm_90", options=("-use_fast_math",))),
    ]
    for number, (text, request) in enumerate(changes):
        assert _compile(tmp_path, text, request).cubin == b"new"
        assert len(calls) == number + 1


@pytest.mark.usefixtures("_own_cache")
def test_changed_header_is_a_changed_source(tmp_path: Path) -> None:
    (tmp_path / "inner.h").write_text("#define VALUE 1\n")
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    text = '#include "outer.h"\nextern "C" __global__ void k(int *o) { o[0] ^= VALUE; }\n'
    first = _compile(tmp_path, text).cubin
    assert _compile(tmp_path, text).cubin == first
    (tmp_path / "inner.h").write_text("#define VALUE 0x1234\n")
    second = _compile(tmp_path, text).cubin
    assert any("0x1234" in line for line in _texts(second)["k"])
    assert not any("0x1234" in line for line in _texts(first)["k"])


@pytest.mark.usefixtures("_own_cache")
def test_computed_include_is_never_taken_from_the_cache(tmp_path: Path) -> None:
    text = '#define HEADER "value.h"\n#include HEADER\nextern "C" __global__ void k(int *o) { o[0] ^= VALUE; }\n'
    for value in ("0x1111", "0x2222"):
        (tmp_path / "value.h").write_text(f"#define VALUE {value}\n")
        assert any(value in line for line in _texts(_compile(tmp_path, text).cubin)["k"])


def test_missing_compiler_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvrtc.load_nvrtc.cache_clear()
    monkeypatch.setattr(nvrtc, "find_installed", lambda _: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    with pytest.raises(MissingToolError, match=r"pip install 'sectorwise\[cuda\]'"):
        _compile(tmp_path, SCALE)
    nvrtc.load_nvrtc.cache_clear()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no file"):
        CUDA.compile(tmp_path / "none.cu", CompileRequest("sm_90"))


def test_file_without_a_kernel(tmp_path: Path) -> None:
    assert read_cubin(_compile(tmp_path, "__device__ int x;\n").cubin, "kernel.cu").kernels == ()
