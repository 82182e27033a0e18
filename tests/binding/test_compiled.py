from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import CONSTANT_WINDOW, PARAMETER_WINDOW, BoundLaunch, bind
from sectorwise.device import load_device
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CudaFrontend
from sectorwise.launch.comments import find_launches
from sectorwise.launch.contents import materialise

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
struct Params { const float* values; int count; double scale; };
__constant__ float coefficients[16];
__constant__ Params fixed;
namespace deep { __constant__ int shift = 7; }
__device__ float table[4] = {1, 2, 3, 4};
__device__ float* middle = &table[2];
__device__ int counter;

// sectorwise: launch read<<<2, 64, 1024>>>(f32[128], {values=f32[32], 32, f64(2)}, -1, 3, 1 << 40)
//   with coefficients=f32[16]=arange, fixed={ptr(values, 4), 5, f64(0.5)}, shift=9
extern "C" __global__ void read(float* out, const Params given, char c, short s, long long l) {
  extern __shared__ float4 staged[];
  __shared__ int one;
  one = c + s;
  staged[threadIdx.x].x = coefficients[threadIdx.x & 15] + deep::shift + fixed.values[0] + fixed.scale;
  __syncthreads();
  const float* source = s ? &coefficients[c] : out;
  out[threadIdx.x] = staged[threadIdx.x ^ 1].x + *middle + table[threadIdx.x & 3] + given.values[l] + one + *source;
  atomicAdd(&counter, 1);
}

// sectorwise: launch view<<<1, 32>>>({f32[32], 32, f64(2)}, i32[32], 1)
extern "C" __global__ void view(const __grid_constant__ Params given, int* out, int which) {
  const int* source = which ? &given.count : out;
  out[threadIdx.x + 1] = source[threadIdx.x & 1];
}
"""


@pytest.fixture(scope="module", name="bound")
def compile_and_bind(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BoundLaunch]:
    path: Path = tmp_path_factory.mktemp("source") / "read.cu"
    path.write_text(SOURCE, encoding="utf-8")
    made = CudaFrontend().compile(path, CompileRequest("sm_90"))
    kernels = {kernel.name: kernel for kernel in read_cubin(made.cubin, path.name).kernels}
    return {
        launch.kernel: bind(
            kernels[launch.kernel], launch, load_device("h200"), made.parameter_types.get(launch.kernel)
        )
        for launch in find_launches(SOURCE, path.name)
    }


def test_parameters_stand_where_the_compiled_kernel_reads_them(bound: dict[str, BoundLaunch]) -> None:
    read = bound["read"]
    base = {allocation.argument: allocation.base for allocation in read.allocations}
    expected = struct.pack("<QQi4xdbxhxxxxq", base["argument 0"], base["values"], 32, 2.0, -1, 3, 1 << 40)
    assert read.banks[0][0x210:] == expected
    # The driver's 1,024 bytes, an int padded to the alignment of the float4, the dynamic bytes.
    assert read.shared_bytes == 1024 + 16 + 1024


def test_module_variables_stand_where_the_compiled_kernel_reads_them(bound: dict[str, BoundLaunch]) -> None:
    read = bound["read"]
    places = {variable.name: variable.offset_bytes for variable in read.kernel.variables if variable.bank == 3}
    base = {allocation.argument: allocation.base for allocation in read.allocations}
    bank = read.banks[3]
    assert struct.unpack_from("<16f", bank, places["coefficients"] or 0) == tuple(range(16))
    assert struct.unpack_from("<Qi4xd", bank, places["fixed"] or 0) == (base["values"] + 4, 5, 0.5)
    assert struct.unpack_from("<i", bank, places["_ZN4deep5shiftE"] or 0) == (9,)
    by_name = {allocation.argument: allocation for allocation in read.allocations}
    assert materialise(by_name["middle"].buffer).view("<u8").tolist() == [base["table"] + 8]
    assert materialise(by_name["table"].buffer).view("<f4").tolist() == [1, 2, 3, 4]
    for name in ("middle", "table", "counter"):
        variable = next(each for each in read.kernel.variables if each.name == name)
        for number, offset in variable.relocations:
            assert struct.unpack_from("<Q", read.banks[number], offset) == (base[name],)


def test_generic_addresses_of_constants_and_parameters_lead_to_their_bytes(bound: dict[str, BoundLaunch]) -> None:
    windows = {allocation.base: allocation for launch in bound.values() for allocation in launch.allocations}
    constants = materialise(windows[CONSTANT_WINDOW].buffer).tobytes()
    assert constants == bound["read"].banks[3]
    assert struct.unpack_from("<Q", bound["read"].banks[0], 0xD0) == (CONSTANT_WINDOW,)
    parameters = materialise(windows[PARAMETER_WINDOW].buffer)
    assert parameters[8:12].view("<i4").tolist() == [32]
    assert struct.unpack_from("<Q", bound["view"].banks[0], 0x198) == (PARAMETER_WINDOW,)
