"""Turns kernels of Triton, Numba and CuPy, with arrays and in launch notation, into counts that follow by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sectorwise as sw
from sectorwise.analyze import analyze
from sectorwise.cli.main import main
from sectorwise.errors import ArgumentError, CompileError, LaunchError, MissingToolError, UnknownKernelError
from sectorwise.frontends import triton as triton_frontend
from sectorwise.frontends.ptx import correct_lines
from sectorwise.frontends.python_file import find_kernel_object
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty
from sectorwise.report import terminal

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis

KERNELS = Path(__file__).parent / "samples" / "kernels.py"
EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [
    *sorted((EXAMPLES / "triton").glob("*.py")),
    EXAMPLES / "numba" / "kernels.py",
    EXAMPLES / "cupy" / "kernels.py",
]


def _kernel(name: str) -> Any:  # noqa: ANN401 - Triton's own types
    return find_kernel_object(KERNELS, name)


def _sectors(analysis: Analysis, place: int = 0) -> dict[str, int]:
    counted: dict[str, int] = {}
    for site in analysis.kernels[place].sites:
        if site.space == "global":
            counted[site.operation] = counted.get(site.operation, 0) + (site.sectors or 0)
    return counted


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_memory_instruction_of_the_examples_is_known(path: Path) -> None:
    analysis = analyze(path, device="h200")
    assert len(analysis.kernels) % 3 == 0
    for kernel in analysis.kernels:
        assert kernel.sites
        assert kernel.coverage.sites_unknown == 0
        assert kernel.faults == ()
        assert {site.certainty for site in kernel.sites} <= {Certainty.EXACT, Certainty.ASSUMED}
        # The innermost place is in the file itself, or in a library function that the file's line called.
        for site in kernel.sites:
            if site.location is not None and path.parent.name != "cupy":
                chain = [site.location, *site.location.inlined_at]
                assert Path(chain[-1].file).absolute() == path, site
                assert 0 < chain[-1].line <= len(path.read_text().splitlines())


def test_triton_kernel_with_arrays() -> None:
    x, out = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    analysis = analyze(
        _kernel("scale"),
        grid=(8,),
        args=(x, out, 1000, 2.0),
        constexprs={"BLOCK": 128},
        device="h200",
        keep_outputs=True,
    )
    assert _sectors(analysis) == {"load": 125, "store": 125}
    (kernel,) = analysis.kernels
    assert kernel.launch.block == (128, 1, 1)
    outputs = kernel.outputs
    assert outputs is not None
    assert np.array_equal(np.asarray(outputs[1].values), np.full(1000, 2.0, np.float32))
    assert np.array_equal(out, np.zeros(1000, np.float32))


def _output(analysis: Analysis, place: int) -> np.ndarray[Any, np.dtype[Any]]:
    outputs = analysis.kernels[0].outputs
    assert outputs is not None
    return np.asarray(outputs[place].values)


def test_softmax_of_rows_equals_numpy() -> None:
    x = np.random.default_rng(0).standard_normal((8, 781), dtype=np.float32)
    softmax = find_kernel_object(EXAMPLES / "triton" / "softmax.py", "softmax_kernel")
    args = (np.zeros_like(x), x, 781, 781, 8, 781)
    analysis = analyze(softmax, grid=(4,), args=args, constexprs={"BLOCK": 1024}, keep_outputs=True)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    assert np.abs(_output(analysis, 0).reshape(x.shape) - expected).max() < 1e-7


def test_layer_norm_and_its_gradient_equal_numpy() -> None:
    generator = np.random.default_rng(1)
    x, dy = (generator.standard_normal((8, 300), dtype=np.float32) for _ in range(2))
    weight, bias = (generator.standard_normal(300, dtype=np.float32) for _ in range(2))
    file = EXAMPLES / "triton" / "layer_norm.py"
    mean, rstd = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + 1e-5)
    normal = (x - mean[:, None]) * rstd[:, None]
    args = (x, np.zeros_like(x), weight, bias, np.zeros(8, "f4"), np.zeros(8, "f4"), 300, 300, 1e-5)
    forward = find_kernel_object(file, "forward_kernel")
    analysis = analyze(forward, grid=8, args=args, constexprs={"BLOCK": 256}, keep_outputs=True)
    assert np.allclose(_output(analysis, 1).reshape(x.shape), normal * weight + bias, atol=1e-5)
    weighted = dy * weight
    dx = weighted - normal * (normal * weighted).mean(axis=1, keepdims=True) - weighted.mean(axis=1, keepdims=True)
    sums = (np.zeros((4, 300), "f4"), np.zeros((4, 300), "f4"))
    args = (np.zeros_like(x), dy, x, weight, mean, rstd, *sums, 300, 8, 300)  # type: ignore[assignment]
    backward = find_kernel_object(file, "backward_kernel")
    analysis = analyze(backward, grid=4, args=args, constexprs={"BLOCK": 512}, keep_outputs=True)
    assert np.allclose(_output(analysis, 0).reshape(x.shape), dx * rstd[:, None], atol=1e-5)
    assert np.allclose(_output(analysis, 6).reshape(4, 300).sum(axis=0), (dy * normal).sum(axis=0), atol=1e-4)
    assert np.allclose(_output(analysis, 7).reshape(4, 300).sum(axis=0), dy.sum(axis=0), atol=1e-4)


def test_matrix_product_on_ampere_equals_numpy() -> None:
    generator = np.random.default_rng(2)
    a, b = generator.standard_normal((64, 32)).astype("f2"), generator.standard_normal((32, 64)).astype("f2")
    matmul = find_kernel_object(EXAMPLES / "triton" / "matmul.py", "matmul_kernel")
    args = (a, b, np.zeros((64, 64), "f2"), 64, 64, 32, 32, 1, 64, 1, 64, 1)
    constants = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP": 2}
    analysis = analyze(matmul, grid=4, args=args, constexprs=constants, device="a100-80-sxm", keep_outputs=True)
    assert analysis.kernels[0].limitations == ()
    expected = a.astype("f4") @ b.astype("f4")
    assert np.abs(_output(analysis, 2).reshape(64, 64).astype("f4") - expected).max() < 0.02


def test_lines_are_those_of_the_kernel_and_its_callees() -> None:
    analysis = analyze(
        _kernel("scale"), grid=(8,), args=(sw.f32[1024], sw.f32[1024], 1024, 2.0), constexprs={"BLOCK": 128}
    )
    lines = KERNELS.read_text().splitlines()
    load, store = analysis.kernels[0].sites
    assert load.location is not None
    assert store.location is not None
    assert "tl.load(pointer + offsets" in lines[load.location.line - 1]
    (caller,) = load.location.inlined_at
    assert "helper(x_ptr, offsets, inside)" in lines[caller.line - 1]
    assert "tl.store(out_ptr" in lines[store.location.line - 1]


def test_lines_are_those_of_the_file_where_triton_kept_the_same_kernel_of_another(tmp_path: Path) -> None:
    # Triton keeps compiled code by the text of a kernel: of a file that is moved or copied it is found again.
    for place in ("first", "second", "first"):
        (tmp_path / place).mkdir(exist_ok=True)
        file = tmp_path / place / "kernels.py"
        file.write_text(KERNELS.read_text())
        (kernel,) = analyze(f"{file}::strided", "strided[(1,)](f32[32], f32[32], 1, BLOCK=32)").kernels
        assert {Path(site.location.file).absolute() for site in kernel.sites if site.location} == {file}


def test_real_arguments_decide_how_wide_accesses_are() -> None:
    def widths(count: int) -> set[int]:
        args = (sw.f32[4096], sw.f32[4096], count, 2.0)
        analysis = analyze(_kernel("scale"), grid=4, args=args, constexprs={"BLOCK": 1024})
        return {site.width_bytes for site in analysis.kernels[0].sites}

    # Divisible by 16: the mask is the same for four neighbours, and Triton makes vectors.
    assert widths(4096) == {16}
    assert widths(4095) == {4}


def test_a_stride_of_one_becomes_a_constant() -> None:
    def load_sectors(stride: int) -> int:
        args = (sw.f32[32 * 32], sw.f32[32], stride)
        return _sectors(analyze(_kernel("strided"), grid=1, args=args, constexprs={"BLOCK": 32, "num_warps": 1}))[
            "load"
        ]

    assert [load_sectors(stride) for stride in (1, 2, 8, 32)] == [4, 8, 32, 32]


def test_configurations_of_an_autotuned_kernel() -> None:
    args = (sw.f32[4096], sw.f32[4096], 4096)

    def grid(values: Any) -> tuple[int]:  # noqa: ANN401 - as Triton gives them
        return (4096 // values["BLOCK"],)

    analysis = analyze(_kernel("tuned"), grid=grid, args=args)
    assert [kernel.launch.grid for kernel in analysis.kernels] == [(32, 1, 1), (16, 1, 1), (4, 1, 1)]
    assert [kernel.launch.block for kernel in analysis.kernels] == [(32, 1, 1), (64, 1, 1), (128, 1, 1)]
    assert [_sectors(analysis, place) for place in range(3)] == [{"load": 512, "store": 512}] * 3
    assert len({kernel.cubin for kernel in analysis.kernels}) == 3
    assert "All have the grid" not in terminal.render(analysis)
    alone = analyze(_kernel("tuned"), grid=grid, args=args, config=1)
    assert alone.kernels[0].cubin == analysis.kernels[1].cubin
    assert [kernel.case for kernel in alone.kernels] == ["config 1: BLOCK=256, num_warps=2, num_ctas=1, num_stages=3"]
    with pytest.raises(ArgumentError, match="there is no configuration 3: it has 3, from 0 on"):
        analyze(_kernel("tuned"), grid=grid, args=args, config=3)
    with pytest.raises(ArgumentError, match="it is not autotuned"):
        analyze(_kernel("scale"), grid=1, args=args, config=0)


def test_a_kernel_that_the_file_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("import triton\n@triton.jit\ndef one(x_ptr): pass\n", encoding="utf-8")
    with pytest.raises(LaunchError, match=r"no kernel 'two' is seen in it, and no launch is known") as caught:
        analyze(path, kernel="two")
    assert "launch one[grid](x_ptr)" in str(caught.value)
    with pytest.raises(LaunchError, match=r"one\.py: no launch is known"):
        analyze(path, kernel="one")


def test_launches_in_notation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["check", f"{KERNELS}::tuned", "--launch", "tuned[(32,)](f32[4096], f32[4096], 4096)", "--config", "0"])
    said = capsys.readouterr().out
    assert "tuned<<<32, 32>>>  config 0: BLOCK=128" in said
    main(["check", f"{KERNELS}::tuned", "--launch", "tuned[(32,)](f32[4096], f32[4096], 4096)"])
    said = capsys.readouterr().out
    assert said.count("── tuned<<<32") == 3
    table = said[said.index("configurations") :]
    rows = [line.split()[0] for line in table.splitlines()[2:8]]
    assert rows == ["0", "BLOCK=128,", "1", "BLOCK=256,", "2", "BLOCK=1024,"]
    assert "num_stages" not in table  # all have the same
    assert "All have the grid of the launch" in table


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("k[(4,)](f32[4])", "k<<<4, 1>>>(f32[4])"),
        ("k[4](f32[4])", "k<<<4, 1>>>(f32[4])"),
        ("k[(4, 2), (32, 8)](f32[4, 8])", "k<<<(4, 2), (32, 8)>>>(f32[4, 8])"),
        ("k[2 * 8, 64](n=3)", "k<<<16, 64>>>(n=3)"),
        ("mod.k[1, ](1)", "mod.k<<<1, 1>>>(1)"),
    ],
)
def test_brackets_are_chevrons(text: str, same: str) -> None:
    assert parse_launch(text) == parse_launch(same)


def test_other_devices_get_their_own_code() -> None:
    targets = set()
    for device in ("a100-80-sxm", "h200", "rtx4090"):
        analysis = analyze(
            _kernel("scale"),
            grid=8,
            args=(sw.f16[1024], sw.f16[1024], 1024, 2.0),
            constexprs={"BLOCK": 128},
            device=device,
        )
        targets.add(analysis.device.target)
        assert _sectors(analysis) == {"load": 64, "store": 64}
    assert targets == {"sm_80", "sm_90a", "sm_89"}


def test_numba_kernel_with_arrays() -> None:
    saxpy = find_kernel_object(EXAMPLES / "numba" / "kernels.py", "saxpy")
    x, y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
    analysis = analyze(saxpy, grid=3, block=128, args=(np.float32(2), x, y), device="h200", keep_outputs=True)
    (kernel,) = analysis.kernels
    assert kernel.name == "saxpy"
    assert _sectors(analysis) == {"load": 2 * 38, "store": 38}
    outputs = kernel.outputs
    assert outputs is not None
    assert np.array_equal(np.asarray(outputs[1].values), 2 * x + y)


def test_numba_matrices_bring_their_shape() -> None:
    transpose = find_kernel_object(EXAMPLES / "numba" / "kernels.py", "transpose")
    source = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    analysis = analyze(
        transpose, grid=(3, 2), block=(32, 8), args=(source, sw.f32[96, 64]), device="h200", keep_outputs=True
    )
    outputs = analysis.kernels[0].outputs
    assert outputs is not None
    assert np.array_equal(np.asarray(outputs[1].values).reshape(96, 64), source.T)
    with pytest.raises(ArgumentError, match=r"transpose needs threads"):
        analyze(transpose, grid=1, args=(source, source))


def test_numba_gets_arrays_with_gaps_as_they_lie() -> None:
    kernels = EXAMPLES / "numba" / "kernels.py"
    x, y = np.arange(600, dtype=np.float32)[::2], np.ones(300, np.float32)
    saxpy = find_kernel_object(kernels, "saxpy")
    analysis = analyze(saxpy, grid=3, block=128, args=(np.float32(2), x, y), keep_outputs=True)
    # 300 elements, 8 bytes apart, lie in 75 sectors; Numba reads them by generic loads.
    counted = {(site.operation, site.space, site.sectors) for site in analysis.kernels[0].sites}
    assert counted == {("load", "global", 38), ("load", "generic", 75), ("store", "global", 38)}
    outputs = {each.argument: np.asarray(each.values) for each in analysis.kernels[0].outputs or ()}
    assert np.array_equal(outputs["y"], 2 * x + 1)
    source = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    transpose = find_kernel_object(kernels, "transpose")
    for turned, grid in ((source.T, (2, 3)), (np.asfortranarray(source), (3, 2)), (source[8:56, 3:91], (3, 2))):
        made = analyze(transpose, grid=grid, block=(32, 8), args=(turned, sw.f32[turned.T.shape]), keep_outputs=True)
        written = made.kernels[0].outputs
        assert written is not None
        assert np.array_equal(np.asarray(written[1].values).reshape(turned.T.shape), turned.T)
        assert made.kernels[0].faults == ()


def test_cupy_kernels() -> None:
    file = EXAMPLES / "cupy" / "kernels.py"
    places = np.random.default_rng(1).permutation(256).astype(np.int32)
    values = np.arange(256, dtype=np.float32)
    gather = find_kernel_object(file, "gather")
    analysis = analyze(gather, grid=2, block=128, args=(values, places, sw.f32[256], 256), keep_outputs=True)
    outputs = analysis.kernels[0].outputs
    assert outputs is not None
    assert np.array_equal(np.asarray(outputs[2].values), values[places])
    squared = find_kernel_object(file, "squared_distance")
    analysis = analyze(squared, grid=1, args=(values, values[::-1].copy(), sw.f32[256]), keep_outputs=True)
    outputs = analysis.kernels[0].outputs
    assert outputs is not None
    assert np.array_equal(np.asarray(outputs[2].values), (values - values[::-1]) ** 2)
    assert analysis.kernels[0].launch.grid == (2, 1, 1)


def test_elementwise_kernels_take_arrays_without_gaps() -> None:
    squared = find_kernel_object(EXAMPLES / "cupy" / "kernels.py", "squared_distance")
    wide = np.zeros((16, 32), np.float32)
    with pytest.raises(ArgumentError, match="contiguous arrays are read, got one with gaps: pass a copy"):
        analyze(squared, grid=1, args=(wide[:, :31], wide[:, :31], wide[:, :31]))


def test_lines_of_cupy_kernels_are_those_of_the_python_file() -> None:
    file = EXAMPLES / "cupy" / "kernels.py"
    (kernel,) = analyze(file, "gather[1, 32](f32[32], i32[32]=arange, f32[32], 32)").kernels
    lines = file.read_text().splitlines()
    assert {lines[site.location.line - 1].strip() for site in kernel.sites if site.location} == {
        "if (i < n) out[i] = values[places[i]];"
    }


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ({"grid": 1, "args": (1, 2)}, ArgumentError, r"scale\(x_ptr, out_ptr, n, factor.*missing 3 required"),
        ({"grid": 1, "args": (sw.f32[4], sw.f32[4], 4, 1.0)}, ArgumentError, "BLOCK"),
        ({"args": (1, 2)}, ArgumentError, "no launch is known: pass grid="),
        ({"grid": 1, "args": ("f32[", sw.f32[4], 4, 1.0)}, LaunchError, "args"),
        (
            {"grid": 1, "args": (sw.f32[4], sw.f32[4], 4, 1.0), "constexprs": {"BLOCK": 100}},
            CompileError,
            "scale: CompilationError.*power of 2",
        ),
        (
            {"grid": 1, "args": (np.zeros(4, np.complex64), sw.f32[4], 4, 1.0), "constexprs": {"BLOCK": 4}},
            ArgumentError,
            "elements of type complex64 cannot be passed",
        ),
    ],
)
def test_launches_that_do_not_fit(call: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=rf"(?s){said}"):
        analyze(_kernel("scale"), **call)


def test_without_a_launch_those_of_the_file_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "bare.py"
    path.write_text(
        "import triton\n@triton.autotune(configs=[], key=[])\n@triton.jit\ndef one(x_ptr, n, B: tl.constexpr): pass\n"
        "@cuda.jit(fastmath=True)\ndef two(a, b): pass\ndef three(): pass\n"
    )
    with pytest.raises(LaunchError) as caught:
        analyze(path)
    assert str(caught.value).splitlines()[1:] == [
        "  # sectorwise: launch one[grid](x_ptr, n, B=value)",
        "  # sectorwise: launch two[blocks, threads](a, b)",
    ]


def test_configurations_are_tritons() -> None:
    with pytest.raises(ArgumentError, match="configurations are those of autotuned Triton kernels"):
        analyze(EXAMPLES / "transpose.cu", kernel="transpose_tile", config=0)
    saxpy = find_kernel_object(EXAMPLES / "numba" / "kernels.py", "saxpy")
    with pytest.raises(ArgumentError, match="there is no configuration 1: it is not autotuned"):
        analyze(saxpy, grid=1, block=32, args=(1.0, sw.f32[32], sw.f32[32]), config=1)


def test_files_that_are_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(UnknownKernelError, match=r"'no_kernel' is no kernel; it has helper, scale, tuned, strided"):
        analyze(f"{KERNELS}::no_kernel", "no_kernel[1](1)")
    with pytest.raises(UnknownKernelError, match=r"'scael' is not there"):
        analyze(KERNELS, "scael[1](1)")
    raising = tmp_path / "raising.py"
    raising.write_text("x = 1\nraise ValueError('of its own')\n")
    with pytest.raises(
        ArgumentError, match=r"(?s)raising\.py raises when it is imported:.*line 2.*ValueError: of its own"
    ):
        analyze(raising, "k[1](1)")
    needing = tmp_path / "needing.py"
    needing.write_text("import no_such_package\n")
    with pytest.raises(MissingToolError, match="needs no_such_package, which is not installed"):
        analyze(needing, "k[1](1)")


@pytest.mark.parametrize("package", ["triton", "numba", "cupy"])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"needs_{package}.py"
    path.write_text(f"import {package}\n")
    with pytest.raises(MissingToolError, match=rf"pip install 'sectorwise\[{package}\]'"):
        analyze(path, "k[1](1)")


def test_an_untested_version_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_frontend, "TESTED_VERSIONS", ("0.1",))
    with pytest.warns(UserWarning, match=r"Triton 3\.9\.0 is untested; tested are 0\.1"):
        analyze(_kernel("strided"), grid=1, args=(sw.f32[32], sw.f32[32], 1), constexprs={"BLOCK": 32})


def test_places_of_inline_assembly() -> None:
    ptx = ".loc 1 5 2\n// begin inline asm\n\t.loc\t1 5 2\nmov\n\t.loc\t1 6 2\nld\n// end inline asm\n.loc 1 7 1"
    assert correct_lines(ptx) == ptx.replace("\t.loc\t1 6 2\n", "\n")
