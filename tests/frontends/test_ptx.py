"""Turns PTX, good and bad, into counts that the profiler measured and into errors that a person can act on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from sectorwise.binary.cubin import read_cubin
from sectorwise.errors import ArgumentError, CompileError, LaunchError, MissingToolError
from sectorwise.frontends import nvjitlink, ptxas
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.ptx import PTX, choose_target, find_entries
from sectorwise.frontends.ptxas import choose_assembler, list_ptxas, newest_version
from sectorwise.frontends.python_file import find_kernel_object
from tests.measured.compare import list_counted, list_measured, read_launches
from tests.measured.rows import Row, read_rows

SAMPLES = Path(__file__).parent / "samples"
SCALE = """\
.version 9.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 .ptr .global .align 4 a, .param .u32 n, .param .f32 by, .param .align 8 .b8 st[24])
{
    .reg .b32 %r<3>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .pred %p<2>;
    ld.param.u64 %d1, [a];
    ld.param.u32 %r2, [n];
    ld.param.f32 %f2, [by];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra DONE;
    cvta.to.global.u64 %d2, %d1;
    mad.wide.u32 %d3, %r1, 8, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f1, %f1, %f2;
    st.global.f32 [%d3], %f1;
DONE:
    ret;
}
"""
LAUNCH = "scale<<<1, 64>>>(f32[128], 48, 2.0, bytes(" + "00" * 24 + "))"
MEASURED = [row for family in ("transpose", "struct_layout") for row in read_rows(family)]


def _write(folder: Path, text: str) -> Path:
    path = folder / "scale.ptx"
    path.write_text(text)
    return path


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row.name)
def test_counts_of_assembled_ptx_equal_the_profiler(row: Row) -> None:
    launch = read_launches(row.family)[row.name]
    (kernel,) = analyze(SAMPLES / f"{row.family}.ptx", launch, device="h200").kernels
    assert list_counted(kernel) == list_measured(row)
    assert {site.location.file for site in kernel.sites if site.location} == {f"{row.family}.cu"}


def test_parameters_are_read_from_their_list() -> None:
    assert find_entries(SCALE) == {"scale": ("void *", ".u32", "float", ".b8[24]")}
    assert find_entries(".entry none { ret; } .visible .entry\n two ( .param .u64 /* a */ a ,\n.param .f64 b)") == {
        "none": (),
        "two": (".u64", "double"),
    }


def test_hand_written_ptx_runs(tmp_path: Path) -> None:
    analysis = analyze(_write(tmp_path, SCALE), LAUNCH, device="a100-80-sxm")
    load, store = analysis.kernels[0].sites
    # 48 lanes are active; they step 8 bytes: four to a sector of 32 bytes, in two warps.
    assert (load.executed, load.sectors, load.sectors_ideal) == (2, 12, 6)
    assert (store.operation, store.sectors) == ("store", 12)
    assert analysis.device.target == "sm_80"
    assert analysis.tool.compiler == "nvJitLink 13.0"


def test_a_launch_may_stand_in_a_comment(tmp_path: Path) -> None:
    assert analyze(_write(tmp_path, f"// sectorwise: launch {LAUNCH}\n{SCALE}")).kernels[0].sites[0].sectors == 12


def test_without_a_launch_one_is_shown(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"launch scale<<<grid, block>>>\(u8\[bytes\], \{fields\}, f32\(value\)"):
        analyze(_write(tmp_path, SCALE))


def test_an_argument_of_the_wrong_kind(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="argument 2: expected a number for 'float', got f32\\[4\\]"):
        analyze(_write(tmp_path, SCALE), LAUNCH.replace("2.0", "f32[4]"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            (".version 9.0", ".version 99.1"),
            r"scale\.ptx is PTX 99\.1, and nvJitLink 13\.0 reads PTX up to 9\.0: a newer",
        ),
        (("mul.f32", "mull.f32"), r"scale\.ptx:16: error +: Not a name of any known instruction: 'mull'"),
        ((".target sm_80", ".target sm_100"), r"scale\.ptx: ptxas fatal +: SM version specified by \.target is higher"),
        ((".target sm_80", ".target sm_100a"), r"scale\.ptx: ptxas fatal"),
        ((SCALE, ".version 9.0\nno PTX"), r"scale\.ptx:2: fatal +: Missing .target"),
    ],
)
def test_ptx_that_does_not_assemble(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(CompileError, match=said):
        analyze(_write(tmp_path, SCALE.replace(*change)), LAUNCH, device="h200")


def test_a_target_of_one_architecture_alone_is_kept(tmp_path: Path) -> None:
    text = SCALE.replace("sm_80", "sm_90a")
    assert choose_target(text, "sm_90") == "sm_90a"
    assert choose_target(text, "sm_100") == "sm_100"
    assert choose_target(SCALE, "sm_90") == "sm_90"
    made = PTX.compile(_write(tmp_path, text), CompileRequest("sm_90"))
    assert made.target == "sm_90a"
    assert read_cubin(made.cubin, "scale.ptx").kernels[0].name == "scale"


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="compiled to PTX already"):
        PTX.compile(_write(tmp_path, SCALE), CompileRequest("sm_90", macros=("N=1",)))
    with pytest.raises(ArgumentError, match=r"nvJitLink 13\.0 cannot assemble for sm_77"):
        PTX.compile(_write(tmp_path, SCALE), CompileRequest("sm_77"))


def test_missing_assembler_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nvjitlink, "_DISTRIBUTIONS", ("no-such-distribution",))
    monkeypatch.setattr("ctypes.util.find_library", lambda _name: None)
    monkeypatch.setattr(ptxas, "list_ptxas", lambda: ())
    nvjitlink.load_nvjitlink.cache_clear()
    with pytest.raises(MissingToolError, match=r"pip install 'sectorwise\[cuda\]'"):
        PTX.compile(_write(tmp_path, SCALE), CompileRequest("sm_90"))
    nvjitlink.load_nvjitlink.cache_clear()


def _compile_with_triton() -> tuple[str, bytes]:
    """PTX and cubin of a kernel, both by Triton."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32"}
    signature |= {"BLOCK": "constexpr", "NEGATE": "constexpr"}
    source = ASTSource(find_kernel_object(SAMPLES / "kernels.py", "scale"), signature, {"BLOCK": 128, "NEGATE": False})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": True})
    return made.asm["ptx"], made.asm["cubin"]


def test_ptx_of_triton_is_assembled_by_the_ptxas_beside_it(tmp_path: Path) -> None:
    text, cubin = _compile_with_triton()
    path = tmp_path / "scale.ptx"
    path.write_text(text)
    made = PTX.compile(path, CompileRequest("sm_90a"))
    assert made.compiler.startswith("ptxas ")
    ours, tritons = (read_cubin(each, "scale").kernels[0].instructions for each in (made.cubin, cubin))
    assert [each.text for each in ours] == [each.text for each in tritons]
    # The load is on the line of the file's text that it is on; LLVM counts the lines of inline assembly on.
    (kernel,) = analyze(path, "scale<<<8, 128>>>(f32[1000], f32[1000], i32(1000), f32(2), u64(0), u64(0))").kernels
    lines = (SAMPLES / "kernels.py").read_text().splitlines()
    load, store = (site.location for site in kernel.sites)
    assert load is not None
    assert store is not None
    assert ("tl.load(" in lines[load.line - 1], "tl.store(" in lines[store.line - 1]) == (True, True)


def test_ptx_too_new_for_nvjitlink_is_assembled_by_what_reads_it(tmp_path: Path) -> None:
    newest = max(map(newest_version, list_ptxas()))
    assert newest > newest_version(nvjitlink.load_nvjitlink())
    text = SCALE.replace(".version 9.0", ".version {}.{}".format(*newest))
    (kernel,) = analyze(_write(tmp_path, text), LAUNCH, device="h200").kernels
    (older,) = analyze(_write(tmp_path, SCALE), LAUNCH, device="h200").kernels
    assert list_counted(kernel) == list_counted(older)
    with pytest.raises(CompileError, match=r"scale\.ptx:16: error +: Not a name of any known instruction: 'mull'"):
        PTX.compile(_write(tmp_path, text.replace("mul.f32", "mull.f32")), CompileRequest("sm_90"))
    with pytest.raises(ArgumentError, match=r"ptxas [\d.]+ cannot assemble for sm_77: .*'sm_77' is not defined"):
        PTX.compile(_write(tmp_path, text), CompileRequest("sm_77"))


def test_other_ptx_is_nvjitlinks(monkeypatch: pytest.MonkeyPatch) -> None:
    linker = nvjitlink.load_nvjitlink()
    by_llvm = "// Generated by LLVM NVPTX Back-End\n" + SCALE.replace(".version 9.0", ".version 7.8")
    assert [choose_assembler(text) for text in (SCALE, by_llvm, "")] == [linker] * 3
    monkeypatch.setattr(ptxas, "list_ptxas", lambda: ())
    assert choose_assembler(SCALE.replace(".version 9.0", ".version 99.1")) == linker


@pytest.mark.parametrize(
    ("release", "version"), [("12.4", (8, 4)), ("12.9", (8, 8)), ("13.0", (9, 0)), ("13.4", (9, 4))]
)
def test_newest_versions_of_ptx(release: str, version: tuple[int, int]) -> None:
    assert newest_version(ptxas.Ptxas(Path("ptxas"), f"ptxas {release}", "")) == version
