"""Turns scripts that launch kernels of Triton, Numba and CuPy into analyses, with nothing run on a GPU."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numba.cuda
import numpy as np
import pytest
import triton
from numba import cuda

import sectorwise as sw
from sectorwise.capture.session import FRAMEWORKS, choose_frameworks
from sectorwise.cli.main import main
from sectorwise.errors import ArgumentError, CaptureError, MissingToolError
from sectorwise.frontends.python_file import find_kernel_object

KERNELS = Path(__file__).parents[1] / "frontends" / "samples" / "kernels.py"
EXAMPLES = Path(__file__).parents[2] / "examples"

SCRIPT = """\
import sys
import numpy as np
import cupy as cp
import triton
import triton.language as tl
from numba import cuda

@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@cuda.jit
def double(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= 2

x = np.ones(1024, np.float32)
for turn in range(3):
    add[lambda values: (triton.cdiv(1024, values["B"]),)](x, x, np.zeros_like(x), 1024, B=256)
sms = triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]
on_device = cuda.to_device(x, stream=cuda.stream())
double[4, 256](on_device)
cuda.synchronize()
raw = cp.RawKernel('extern "C" __global__ void fill(float *a) { a[threadIdx.x] = 1; }', "fill")
a = cp.zeros(32, dtype=cp.float32)
raw((1,), (32,), (a,))
b = cp.ElementwiseKernel("T x, T y", "T z", "z = x - y", "subtract")(a, a)
print("said by the script", sms, on_device.copy_to_host().sum(), b.dtype, sys.argv[1:])
"""
SHORT = """\
import cupy as cp
import triton
from numba import cuda
raw = cp.RawKernel('extern "C" __global__ void fill(float *a) { a[threadIdx.x] = 1; }', "fill")
a = cp.zeros(32, dtype=cp.float32)
raw((1,), (32,), (a,))
"""


def _write(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_a_script_is_run_with_its_launches_captured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--device", "a100-80-sxm", str(_write(tmp_path, SCRIPT)), "--flag", "1"])
    said = capsys.readouterr().out
    # An A100 has 108 multiprocessors; nothing ran, so the array holds what it held.
    assert "said by the script 108 1024.0 float32 ['--flag', '1']" in said
    for launch in ("add<<<4, 128>>>", "double<<<4, 256>>>", "fill<<<1, 32>>>", "subtract<<<1, 32>>>"):
        assert said.count(f"── {launch}") == 1
    assert "captured: 4 launches, 4 analysed, none run\n  2 more were as one of them" in said
    for name in ("triton.JITFunction.run", "numba.cuda.to_device", "numba.cuda.stream", "cupy (arange"):
        assert name in said[said.index("replaced meanwhile") :]


def test_json_of_a_script(tmp_path: Path) -> None:
    output = tmp_path / "captured.json"
    main(["run", "--format", "json", "-o", str(output), str(_write(tmp_path, SCRIPT))])
    kernels = {kernel["name"]: kernel for kernel in json.loads(output.read_text())["kernels"]}
    assert list(kernels) == ["add", "double", "fill", "subtract"]
    assert kernels["double"]["totals"]["global_load_sectors"] == 128


def test_json_of_a_script_whose_launch_cannot_be_analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--format", "json", str(_write(tmp_path, SHORT.replace("= 1;", "= nothing;")))])
    said = capsys.readouterr()
    assert (stopped.value.code, said.out) == (2, "")
    assert said.err.startswith("fill was skipped: ")
    assert "nothing" in said.err
    assert said.err.endswith("there is nothing to write a document of: each launch was skipped\n")


def test_options_that_went_to_the_script_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(_write(tmp_path, "print('done')\n")), "--format", "json", "--seed", "1"])
    said = capsys.readouterr()
    assert said.out.startswith("done\ncaptured: 0 launches, 0 analysed, none run\n")
    assert said.err == "--format went to the script: options of `run` come before it\n"


def test_json_of_a_script_that_launches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "captured.json"
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--format", "json", "-o", str(output), str(_write(tmp_path, "import cupy\nprint('done')\n"))])
    said = capsys.readouterr()
    assert (stopped.value.code, said.out) == (2, "done\n")
    assert said.err.endswith("there is nothing to write a document of: it launched nothing by cupy\n")
    assert not output.exists()


def test_a_script_that_raises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = _write(tmp_path, SHORT + "def fail():\n    raise KeyError('its own')\nfail()\n")
    with pytest.raises(SystemExit) as stop:
        main(["run", str(script)])
    said = capsys.readouterr()
    assert stop.value.code == 1
    assert said.out.count("── fill<<<") == 1
    assert said.err.splitlines()[0] == "Traceback (most recent call last):"
    assert f'File "{script}", line 8, in fail' in said.err
    assert said.err.rstrip().endswith("KeyError: 'its own'")
    assert "sectorwise" not in said.err.replace(str(tmp_path), "")


@pytest.mark.parametrize(("how", "code", "said"), [("3", 3, ""), ("'usage: x'", 1, "usage: x\n")])
def test_a_script_that_exits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, code: int, said: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(_write(tmp_path, f"{SHORT}sys.exit({how})\n".replace("import", "import sys\nimport", 1)))])
    shown = capsys.readouterr()
    assert (stop.value.code, shown.err) == (code, said)
    assert "fill<<<1, 32>>>" in shown.out


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("cp.linalg.solve(a, a)", "cupy.linalg"),
        ("cuda.select_device(0)", "numba.cuda.select_device"),
        ("triton.runtime.driver.active.launcher_cls", "triton.runtime.driver.active.launcher_cls"),
    ],
)
def test_what_is_not_replaced_is_an_error_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, name: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(_write(tmp_path, f"{SHORT}{line}\n"))])
    said = capsys.readouterr()
    assert stop.value.code == 2
    assert f"error: {name} needs a GPU, and has no replacement while launches are captured" in said.err
    assert "fill<<<1, 32>>>" in said.out


def test_capture_in_python() -> None:
    scale = find_kernel_object(KERNELS, "scale")
    transpose = find_kernel_object(EXAMPLES / "numba" / "kernels.py", "transpose")
    before = (numba.cuda.to_device, triton.runtime.driver._active)  # noqa: SLF001 - as it was
    with sw.capture(device="h200", frameworks=("triton", "numba")) as captured:
        x = np.zeros(1000, np.float32)
        scale[(8,)](x, x, 1000, 2.0, BLOCK=128)  # type: ignore[index]
        transpose[(2, 2), (32, 8)](cuda.device_array((64, 64), np.float32), cuda.to_device(np.ones((64, 64), "f4")))  # type: ignore[index]
        assert len(captured.launches) == 2
    assert (numba.cuda.to_device, triton.runtime.driver._active) == before  # noqa: SLF001 - as it was
    analysis = captured.analysis
    assert analysis is not None
    assert [kernel.name for kernel in analysis.kernels] == ["scale", "transpose"]
    assert analysis.kernels[0].totals.global_load_sectors == 125
    # The same array for both arguments is one buffer.
    bound = analysis.kernels[0].bound
    assert bound is not None
    assert [allocation.size_bytes for allocation in bound.allocations] == [4000]


def test_one_configuration_of_an_autotuned_kernel_is_taken() -> None:
    tuned = find_kernel_object(KERNELS, "tuned")
    x = np.zeros(4096, np.float32)
    with sw.capture(config=1, frameworks=("triton",)) as captured:
        tuned[lambda values: (4096 // values["BLOCK"],)](x, x, 4096)  # type: ignore[index]
    analysis = captured.analysis
    assert analysis is not None
    assert [(kernel.launch.grid, kernel.launch.block) for kernel in analysis.kernels] == [((16, 1, 1), (64, 1, 1))]


TUNED = """\
import numpy as np
import triton
import triton.language as tl

def fitting(configs, named, **more):
    return [each for each in configs if named["n"] % each.kwargs["BLOCK"] == 0]

def largest_first(n, BLOCK, **more):
    return 1 / BLOCK

def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))

configs = [triton.Config({"BLOCK": size}, num_warps=size // 32) for size in (128, 64, 32)]
tune = lambda **how: triton.autotune(configs=configs, key=["n"], prune_configs_by=how)(triton.jit(copy))
x = np.zeros(4096, np.float32)
for tuned in (tune(early_config_prune=fitting), tune(perf_model=largest_first, top_k=1)):
    for n in (192, 160):
        tuned[lambda values: (n // values["BLOCK"],)](x, x, n)
"""


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        # 128 divides neither number, 64 divides 192 alone, 32 both; the model of the second tuner keeps the largest.
        ((), ["config 1: BLOCK=64", "config 2: BLOCK=32", "config 0: BLOCK=128", "config 0: BLOCK=128"]),
        (("--config", "2"), ["config 2: BLOCK=32", "config 2: BLOCK=32", "config 0: BLOCK=128", "config 0: BLOCK=128"]),
        (("--config", "1"), ["config 1: BLOCK=64", "config 2: BLOCK=32", "config 0: BLOCK=128", "config 0: BLOCK=128"]),
        (("--config", "9"), ["config 1: BLOCK=64", "config 2: BLOCK=32", "config 0: BLOCK=128", "config 0: BLOCK=128"]),
    ],
)
def test_configurations_that_a_tuner_prunes_are_not_taken(
    tmp_path: Path, wanted: tuple[str, ...], taken: list[str]
) -> None:
    output = tmp_path / "captured.json"
    main(["run", *wanted, "--format", "json", "-o", str(output), str(_write(tmp_path, TUNED))])
    kernels = json.loads(output.read_text())["kernels"]
    assert [kernel["case"].partition(", num_warps")[0] for kernel in kernels] == taken
    blocks = [int(name.rpartition("=")[2]) for name in taken]
    assert [kernel["launch"]["block"][0] for kernel in kernels] == blocks
    assert [kernel["launch"]["grid"][0] for kernel in kernels] == [
        n // block for n, block in zip((192, 160, 192, 160), blocks, strict=True)
    ]


def test_views_of_one_array_that_lie_alike_are_analysed_once() -> None:
    scale = find_kernel_object(KERNELS, "scale")
    with sw.capture(frameworks=("triton",)) as captured:
        whole, out = np.zeros(17 * 96, np.float32), np.zeros(64, np.float32)
        for part in range(16):
            scale[(1,)](whole[96 * part : 96 * part + 64], out, 64, 2.0, BLOCK=64)  # type: ignore[index]
    # They begin 384 bytes behind one another: all at the same place of a line, at four places of 512 bytes.
    assert (len(captured.launches), captured.repeats) == (1, [15])


def test_what_lies_behind_a_view_in_its_array_is_no_fault() -> None:
    scale = find_kernel_object(KERNELS, "scale")
    with sw.capture(frameworks=("triton",)) as captured:
        whole, out = np.zeros((8, 128), np.float32), np.zeros(128, np.float32)
        scale[(1,)](whole[2:3, :40], out, 128, 2.0, BLOCK=128)  # type: ignore[index]
        scale[(1,)](whole[7:8, 64:], out, 128, 2.0, BLOCK=128)  # type: ignore[index]
    analysis = captured.analysis
    assert analysis is not None
    # The first reads 88 elements more than the view has, of the same row; the second 64 behind the end of the array.
    inside, outside = analysis.kernels
    assert inside.faults == ()
    # The third and the fourth warp, one element a lane.
    assert [(fault.code, fault.lane, fault.occurrences) for fault in outside.faults] == [("SW901", 0, 64)]


def test_a_launch_that_cannot_be_analysed_says_why() -> None:
    scale = find_kernel_object(KERNELS, "scale")
    with sw.capture(frameworks=("triton",)) as captured:
        scale[(8,)](np.zeros(8, np.complex64), np.zeros(8, np.float32), 8, 2.0, BLOCK=8)  # type: ignore[index]
    (launch,) = captured.launches
    assert launch.analysis is None
    assert captured.analysis is None
    assert launch.because is not None
    assert "complex64 cannot be passed" in launch.because


def test_frameworks_are_those_imported_else_those_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(choose_frameworks(None)) >= {"triton", "numba"}  # this module's; other tests may have imported CuPy
    for package in ("triton", "numba.cuda", "cupy", "torch"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    # PyTorch is not installed where these tests run as a rule: `make test-torch` has it.
    installed = tuple(name for name in FRAMEWORKS if name != "torch" or find_spec("torch") is not None)
    assert choose_frameworks(None) == installed


def test_frameworks_that_cannot_be_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="launches of 'jax' are not captured"):
        choose_frameworks(["jax"])
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingToolError, match=r"pip install 'sectorwise\[cupy\]'"):
        choose_frameworks(["cupy"])


def test_only_the_frameworks_asked_for_are_captured() -> None:
    with pytest.raises(CaptureError), sw.capture(frameworks=("numba",)):
        cuda.select_device(0)
