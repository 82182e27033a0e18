"""Turns scripts whose tensors are on `cuda` into analyses, on a machine without a GPU: `make test-torch`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sectorwise as sw
from sectorwise.errors import CaptureError
from sectorwise.frontends.python_file import find_kernel_object
from sectorwise.launch.config import BufferArgument
from sectorwise.launch.contents import materialise
from sectorwise.launch.values import read_value

KERNELS = Path(__file__).parents[1] / "frontends" / "samples" / "kernels.py"
SCRIPT = """\
import torch
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

assert torch.cuda.is_available()
x = torch.arange(4096, dtype=torch.float32, device="cuda")
y = torch.ones_like(x)
out = torch.empty_like(x)
assert x.is_cuda and out.is_cuda and x.device == torch.device("cuda", 0)
add[(16,)](x, y, out, 4096, B=256)
torch.cuda.synchronize()
print("sum", (x + y).sum().item(), "out", out.sum().item())
"""


@pytest.fixture
def scale() -> Any:  # noqa: ANN401 - a kernel of Triton's
    return find_kernel_object(KERNELS, "scale")


def test_a_script_with_tensors_on_a_gpu_runs_without_one(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "sectorwise", "run", str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 0 + 1 + ... + 4095, and 4096 ones; what no kernel wrote is zero.
    assert "sum 8390656.0 out 0.0" in done.stdout
    assert "captured: 1 launch, 1 analysed, none run" in done.stdout
    assert "operations are PyTorch's own, ran on the CPU and are not analysed: " in done.stdout
    replaced = done.stdout[done.stdout.index("replaced meanwhile") :]
    for name in ("torch.Tensor.is_cuda", "torch.cuda.is_available", "torch.cuda.synchronize", "triton.JITFunction.run"):
        assert name in replaced


def test_where_a_tensor_is_follows_it(scale: object) -> None:
    del scale
    host = torch.arange(4)
    with sw.capture(frameworks=("torch",)):
        there = host.cuda()
        assert (host.is_cuda, there.is_cuda, there[1:].is_cuda, (there + 1).is_cuda) == (False, True, True, True)
        assert (host.device.type, there.device, there.get_device(), there.is_cpu) == ("cpu", there.device, 0, False)
        assert there.to("cuda:0") is there
        assert host.to(there.device).is_cuda
        assert host.to(there.float()).dtype is torch.float32
        assert not there.cpu().is_cuda
        assert not there.to("cpu").is_cuda
        assert there.new_tensor([1]).is_cuda
        assert torch.tensor([1.0], device="cuda").is_cuda
        assert torch.as_tensor(np.ones(3), device="cuda").is_cuda
        assert not torch.tensor([1.0]).is_cuda
        assert torch.zeros(2, pin_memory=True).to("cuda", non_blocking=True).is_cuda
        with torch.device("cuda"):
            assert torch.zeros(2).is_cuda
        host.copy_(there)
        assert not host.is_cuda
    assert not there.is_cuda
    assert not torch.cuda.is_available()


def test_modules_gradients_and_optimisers_stay_on_the_device() -> None:
    class Double(torch.autograd.Function):  # type: ignore[misc] # PyTorch's types are not read
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:  # noqa: ANN401 - PyTorch's own types
            ctx.save_for_backward(value)
            return value * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:  # noqa: ANN401 - PyTorch's own types
            (value,) = ctx.saved_tensors
            seen.append((gradient.is_cuda, value.is_cuda, torch.empty(1, device=gradient.device).is_cuda))
            return gradient * 2

    seen: list[tuple[bool, bool, bool]] = []
    with sw.capture(frameworks=("torch",)) as captured:
        module = torch.nn.Linear(4, 4).to("cuda")
        optimiser = torch.optim.AdamW(module.parameters())
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = module(torch.ones(2, 4, device="cuda"))
            assert (out.dtype, torch.is_autocast_enabled("cuda")) == (torch.bfloat16, True)
        Double.apply(out.float()).sum().backward()
        assert module.weight.grad.is_cuda
        optimiser.step()
        assert module.weight.is_cuda
    assert seen == [(True, True, True)]
    assert captured.passed_over["aten::addmm"] + captured.passed_over["aten::mm"] > 0


def test_questions_are_answered_for_the_device() -> None:
    with sw.capture(device="a100-80-sxm", frameworks=("torch",)):
        found = torch.cuda.get_device_properties(0)
        assert (found.multi_processor_count, found.major, found.shared_memory_per_block_optin) == (108, 8, 166_912)
        assert torch.cuda.get_device_capability() == (8, 0)
        assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
        assert torch.cuda.current_stream().cuda_stream == 0
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        assert np.isnan(begin.elapsed_time(end))
        assert np.isnan(torch.cuda.max_memory_allocated())
        with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.manual_seed(3)
        generator = torch.Generator(device="cuda").manual_seed(3)
        assert torch.rand(2, device="cuda", generator=generator).is_cuda
        with pytest.raises(AttributeError):
            _ = found.no_such_number


@pytest.mark.parametrize("name", ["torch.cuda.CUDAGraph", "torch.cuda.cudart", "torch.cuda.ExternalStream"])
def test_what_is_not_replaced_is_an_error_with_its_name(name: str) -> None:
    function = getattr(torch.cuda, name.rpartition(".")[2])
    with sw.capture(frameworks=("torch",)):
        function = getattr(torch.cuda, name.rpartition(".")[2])
        with pytest.raises(CaptureError, match=f"^{name} needs a GPU"):
            function()


def test_a_view_has_the_alignment_that_it_has_on_a_gpu(scale: Any) -> None:  # noqa: ANN401 - a kernel of Triton's
    with sw.capture(frameworks=("triton", "torch")) as captured:
        x, out = torch.ones(4097, device="cuda"), torch.zeros(4096, device="cuda")
        scale[(4,)](x[:-1], out, 4096, 2.0, BLOCK=1024)
        scale[(4,)](x[1:], out, 4096, 2.0, BLOCK=1024)
    analysis = captured.analysis
    assert analysis is not None
    aligned, shifted = ([site for site in kernel.sites if site.operation == "load"] for kernel in analysis.kernels)
    assert {site.width_bytes for site in aligned} == {16}
    assert {site.width_bytes for site in shifted} == {4}
    # 128 bytes that begin 4 behind a sector's edge touch five sectors, each of the 128 requests.
    assert sum(site.sectors or 0 for site in aligned) == 512
    assert sum(site.sectors or 0 for site in shifted) > 512


def test_what_lies_behind_a_narrow_view_in_its_storage_is_no_fault(scale: Any) -> None:  # noqa: ANN401 - as above
    with sw.capture(frameworks=("triton", "torch")) as captured:
        whole, out = torch.arange(64 * 96, device="cuda").float().view(64, 96), torch.zeros(1024, device="cuda")
        for row in range(64):
            scale[(1,)](whole[row, :90], out, 1024, 2.0, BLOCK=1024)
    analysis = captured.analysis
    assert analysis is not None
    # They lie alike, but for the last one, behind which there is less than a row.
    assert captured.repeats == [62, 0]
    inside, outside = analysis.kernels
    assert inside.faults == ()
    assert {fault.code for fault in outside.faults} == {"SW901"}


def test_columns_of_one_tensor_are_one_buffer(scale: Any) -> None:  # noqa: ANN401 - a kernel of Triton's
    with sw.capture(frameworks=("triton", "torch")) as captured:
        both = torch.ones(64, 96, device="cuda")
        scale[(4,)](both[:, :32], both[:, 32:], 4096, 2.0, BLOCK=1024)
    analysis = captured.analysis
    assert analysis is not None
    bound = analysis.kernels[0].bound
    assert bound is not None
    assert [each.size_bytes for each in bound.allocations] == [4 * 64 * 96]


def test_tensors_on_the_cpu_are_arguments(scale: object) -> None:
    x = torch.arange(4096, dtype=torch.bfloat16)
    analysis = sw.analyze(
        scale,
        grid=(4,),
        args=(x, torch.zeros(4096, dtype=torch.bfloat16), 4096, 2.0),
        constexprs={"BLOCK": 1024},
        keep_outputs=True,
    )
    outputs = analysis.kernels[0].outputs
    assert outputs is not None
    written = next(each for each in outputs if each.argument == "out_ptr")
    values = torch.from_numpy(np.asarray(written.values).view(np.int16)).view(torch.bfloat16)
    assert torch.equal(values, x * 2)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8"])
def test_what_a_tensor_holds_is_what_the_kernel_reads(dtype: str) -> None:
    tensor = torch.arange(100).to(getattr(torch, dtype))
    for view, expected in ((tensor, list(range(100))), (tensor[3:9], list(range(3, 9)))):
        found = read_value(view, "x")
        assert isinstance(found, BufferArgument)
        values = materialise(found)[found.skip : found.skip + found.passed]
        bits = torch.from_numpy(np.array(values).view(np.int16)).view(torch.bfloat16) if dtype == "bfloat16" else values
        assert [int(each) for each in bits] == expected


def test_an_expanded_tensor_has_the_memory_of_the_whole() -> None:
    found = read_value(torch.arange(1024).view(32, 32)[:, :1].expand(32, 32), "x")
    assert isinstance(found, BufferArgument)
    assert materialise(found).tolist() == list(range(1024))


def test_what_wraps_a_tensor_with_an_address_of_its_own_is_an_argument() -> None:
    class Backwards:
        """The last element first, as PyTorch's own strides cannot have it."""

        def __init__(self, base: Any) -> None:  # noqa: ANN401 - PyTorch's own type
            self.base, self.dtype, self.shape = base, base.dtype, base.shape

        def data_ptr(self) -> int:
            return int(self.base.data_ptr() + 99 * self.dtype.itemsize)

        def untyped_storage(self) -> Any:  # noqa: ANN401 - PyTorch's own type
            return self.base.untyped_storage()

    found = read_value(Backwards(torch.arange(100, dtype=torch.int32)), "x")
    assert isinstance(found, BufferArgument)
    assert (found.dtype, found.skip, materialise(found).tolist()) == ("i32", 99, list(range(100)))


def test_a_tensor_without_memory_is_noise() -> None:
    found = read_value(torch.empty(8, 8, device="meta"), "x")
    assert isinstance(found, BufferArgument)
    assert (found.count, found.contents.kind) == (64, "noise")


def test_a_compiled_kernel_is_launched_again(scale: Any) -> None:  # noqa: ANN401 - a kernel of Triton's
    with sw.capture(frameworks=("triton", "torch")) as captured:
        x, out = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")
        compiled = scale[(4,)](x, out, 4096, 2.0, BLOCK=1024)
        compiled[(2,)](x, out, 2048, 3.0)
        with pytest.raises(CaptureError, match="n_regs of a compiled Triton kernel"):
            _ = compiled.n_regs
    analysis = captured.analysis
    assert analysis is not None
    assert [kernel.launch.grid for kernel in analysis.kernels] == [(4, 1, 1), (2, 1, 1)]
