"""Turns measured cubins and compiled sources into kernels that equal what the profiler and the source say."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.ir import Cubin, External, Instruction, Kernel, Location, Parameter, Target, Variable
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA

MEASURED = Path(__file__).parents[1] / "measured" / "h200"
CUBINS = sorted(MEASURED.glob("*.sm_90.cubin"))
LAUNCHED = [path for path in CUBINS if (MEASURED / path.name.replace(".sm_90.cubin", ".json")).exists()]
SOURCE = """\
struct Pair { int first; double second; };
__constant__ int table[4] = {1, 2, 3};
__device__ float scale[2] = {1.5f, 2.5f};
__device__ int zeros;
__device__ int *pointers[2] = {&zeros, 0};
__device__ __noinline__ int triple(int x) {
    return x * 3 + table[x & 3];
}
__device__ __forceinline__ float halve(float x) {
    return x * scale[0];
}
__device__ __forceinline__ float quarter(float x) {
    return halve(x) - 1.0f;
}
template <int N> __global__ void __launch_bounds__(96) sums(const float *a, Pair p, short s, float *o) {
    __shared__ float tile[N];
    tile[threadIdx.x] = quarter(a[threadIdx.x]);
    __syncthreads();
    o[threadIdx.x] = tile[N - 1 - threadIdx.x] / p.second + triple(p.first) + s;
}
template __global__ void sums<96>(const float *, Pair, short, float *);
extern "C" __global__ void choose(int *o, int n) {
    switch (n) {
        case 0: o[0] = 1; break;
        case 1: o[1] = o[5]; break;
        case 2: o[2] = __popc(n + o[2]); break;
        case 3: o[4] = 8 * o[3]; break;
        case 4: o[8] = o[1] - 1; break;
        default: printf("%d", *pointers[n & 1]);
    }
}
"""


@pytest.fixture(scope="module", params=["sm_75", "sm_80", "sm_90", "sm_120"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    path = tmp_path_factory.mktemp("source") / "sums.cu"
    path.write_text(SOURCE)
    return read_cubin(CUDA.compile(path, CompileRequest(request.param)).cubin, "sums.cu")


def _kernel(cubin: Cubin, readable_name: str) -> Kernel:
    (kernel,) = (kernel for kernel in cubin.kernels if kernel.readable_name == readable_name)
    return kernel


def _measured_cases(path: Path) -> list[dict[str, Any]]:
    launches = json.loads((MEASURED / path.name.replace(".sm_90.cubin", ".json")).read_text())
    cases: list[dict[str, Any]] = launches["cases"]
    return cases


def test_measured_launches_are_there() -> None:
    assert len(LAUNCHED) >= 30


@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: path.name)
def test_measured_resources_and_parameters(path: Path) -> None:
    kernels = {kernel.name: kernel for kernel in read_cubin(path.read_bytes(), path.name).kernels}
    for case in _measured_cases(path):
        kernel, launch = kernels[case["kernel"]], case["measured"]["launch"]
        # The profiler reports the registers that are allocated: never fewer than 16.
        assert max(16, kernel.resources.registers_per_thread) == launch["registers_per_thread"]
        assert kernel.resources.static_shared_bytes == launch["shared_static_bytes"]
        assert kernel.target == "sm_90"
        assert kernel.parameter_base == 0x210
        assert len(kernel.parameters) == len(case["args"])
        for parameter, argument in zip(kernel.parameters, case["args"], strict=True):
            if argument["kind"] == "buffer":
                assert parameter.size_bytes == 8


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_measured_instructions_are_whole(path: Path) -> None:
    lines = (MEASURED / path.name.replace(".sm_90.cubin", ".cu")).read_text().splitlines()
    for kernel in read_cubin(path.read_bytes(), path.name).kernels:
        assert [each.index for each in kernel.instructions] == list(range(len(kernel.instructions)))
        assert [each.offset for each in kernel.instructions] == [16 * i for i in range(len(kernel.instructions))]
        for instruction in kernel.instructions:
            for operand in instruction.operands:
                if isinstance(operand, Target):
                    assert operand.offset is not None
                    assert operand.offset % 16 == 0
            if instruction.location is not None:
                assert 0 < instruction.location.line <= len(lines)
        assert kernel.instructions[-1].control.reuse_mask == 0


def test_parameters_and_resources(compiled: Cubin) -> None:
    sums = _kernel(compiled, "sums<96>")
    assert sums.name == "_Z4sumsILi96EEvPKf4PairsPf"
    assert sums.parameters == (Parameter(0, 0, 8), Parameter(1, 8, 16), Parameter(2, 24, 2), Parameter(3, 32, 8))
    assert sums.parameter_types == ("const float*", "Pair", "short", "float*")
    assert sums.resources.static_shared_bytes == 96 * 4
    assert sums.resources.max_threads_per_block == 96
    assert sums.resources.barriers == 1
    choose = _kernel(compiled, "choose")
    assert choose.parameter_types is None
    assert choose.resources.max_threads_per_block is None
    assert choose.resources.barriers == 0
    assert choose.resources.local_bytes_per_thread == 8


def test_called_functions_have_their_place(compiled: Cubin) -> None:
    sums = _kernel(compiled, "sums<96>")
    (triple,) = (offset for name, offset in sums.functions.items() if name.endswith("_Z6triplei"))
    assert sums.functions[sums.name] == 0
    called = {
        operand.offset
        for instruction in sums.instructions
        if instruction.opcode == "CALL"
        for operand in instruction.operands
        if isinstance(operand, Target)
    }
    assert triple in called
    assert called <= set(sums.functions.values())
    entry = next(instruction for instruction in sums.instructions if instruction.offset == triple)
    assert entry.location is not None
    assert entry.location.line == 7


def test_inlining_chain(compiled: Cubin) -> None:
    sums = _kernel(compiled, "sums<96>")
    chains = {
        tuple(place.line for place in (instruction.location, *instruction.location.inlined_at))
        for instruction in sums.instructions
        if instruction.location is not None
    }
    # halve, inlined into quarter, inlined into the kernel.
    assert (10, 13, 17) in chains
    assert (17,) in chains
    files = {Path(each.location.file).name for each in sums.instructions if each.location is not None}
    assert files == {"sums.cu"}


def test_library_functions_have_no_lines(compiled: Cubin) -> None:
    sums = _kernel(compiled, "sums<96>")
    (start,) = (offset for name, offset in sums.functions.items() if "div_rn_f64" in name)
    after = [offset for offset in sums.functions.values() if offset > start]
    division = [each for each in sums.instructions if start <= each.offset < min(after, default=1 << 30)]
    assert len(division) > 20
    assert {instruction.location for instruction in division} == {None}


def test_indirect_branch_targets(compiled: Cubin) -> None:
    choose = _kernel(compiled, "choose")
    jumps = [each for each in choose.instructions if each.opcode in ("BRX", "BRXU")]
    assert jumps
    for jump in jumps:
        assert len(jump.branch_targets) >= 3
        assert set(jump.branch_targets) <= {instruction.offset for instruction in choose.instructions}
    # The jump adds a table's word to its own end and its offset: the words are the targets.
    table = choose.constants[2]
    words = struct.unpack(f"<{len(table) // 4}I", table)
    assert {target for jump in jumps for target in jump.branch_targets} <= set(words)


def test_variables_externals_and_banks(compiled: Cubin) -> None:
    choose = _kernel(compiled, "choose")
    variables = {variable.name: variable for variable in choose.variables}
    expected = struct.pack("<4i", 1, 2, 3, 0)
    assert variables["table"] == Variable("table", "constant", 16, bank=3, offset_bytes=0, initial=expected)
    assert choose.constants[3][:16] == expected
    assert variables["scale"].initial == struct.pack("<2f", 1.5, 2.5)
    assert (variables["zeros"].space, variables["zeros"].initial) == ("global", None)
    assert variables["pointers"].pointers == ((0, "zeros", 0),)
    ((bank, offset),) = variables["pointers"].relocations
    assert bank == 4
    assert choose.constants[4][offset : offset + 8] == bytes(8)
    assert [external.name for external in choose.externals] == ["vprintf"]
    assert isinstance(choose.externals[0], External)
    assert len(choose.externals[0].relocations) == 1


def test_scoreboards_say_what_the_next_user_waits_for(compiled: Cubin) -> None:
    """A load sets a barrier, and the first use of its register waits for that barrier."""
    sums = _kernel(compiled, "sums<96>")
    load = next(each for each in sums.instructions if each.opcode == "LDG")
    register = load.operands[0]
    user = next(
        each
        for each in sums.instructions[load.index + 1 :]
        if any(operand == register for operand in each.operands[1:])
    )
    assert load.control.write_barrier < 6
    waiting = [each for each in sums.instructions[load.index + 1 : user.index + 1] if _waits(each, load)]
    assert waiting


def _waits(instruction: Instruction, load: Instruction) -> bool:
    return bool(instruction.control.wait_mask >> load.control.write_barrier & 1)


def test_locations_compare_by_value() -> None:
    assert Location("a.cu", 1, (Location("a.cu", 2),)) == Location("a.cu", 1, (Location("a.cu", 2),))
