"""Launches that copy tiles, wait for mbarriers and multiply by wgmma: machine code against the reference engine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file
from sectorwise.launch.notation import parse_launch
from sectorwise.machine import numpy_engine
from sectorwise.machine.clusters import find_shape
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native.unsupported import OccurredError, UnsupportedError
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch

ROOT = Path(__file__).parents[3]
RINGS = ("ring_16k_8", "ring_odd_rounds_8k_4", "tiles_row128_two", "tiles_row32", "tiles_row64_swizzled")
TILES = ROOT / "tests" / "measured" / "tiles"
HOPPER = (ROOT / "examples" / "ladder" / "gemm_hopper.cu").read_text()

PRELUDE = r"""
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void make(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ void wait(unsigned barrier, int parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::
               "r"(barrier), "r"(parity) : "memory");
}
"""
WAITING = (
    PRELUDE
    + r"""
// Warps hand words to each other, each behind a phase of its own.
extern "C" __global__ void relay(int* out, int rounds) {
  __shared__ unsigned long long gates[8];
  __shared__ int word[8];
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (threadIdx.x < 8) make(at(gates + threadIdx.x), 1), word[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < rounds; k++) {
    if (warp || k) wait(at(gates + (warp + warps - 1) % warps), (warp ? k : k - 1) & 1);
    out[(blockIdx.x * blockDim.x + threadIdx.x) * (k + 1)] = k;
    if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(gates + warp)) : "memory");
    __syncwarp();
  }
}
// Each thread waits for the phase in which it arrived: what it sees of the barrier depends on who came before.
extern "C" __global__ void tokens(int* out, const int* in, int rounds) {
  __shared__ unsigned long long gate;
  if (threadIdx.x == 0) make(at(&gate), blockDim.x);
  __syncthreads();
  for (int k = 0; k < rounds; k++) {
    asm volatile("{ .reg .b64 seen; .reg .pred p; mbarrier.arrive.shared.b64 seen, [%0];"
                 " again: mbarrier.try_wait.shared.b64 p, [%0], seen; @!p bra again; }" ::"r"(at(&gate)) : "memory");
    out[(blockIdx.x + k) * blockDim.x + threadIdx.x] = in[threadIdx.x * (k + 1)];
  }
}
// Half of a warp waits for the other half, which has parted from it.
extern "C" __global__ void halves(int* out) {
  __shared__ unsigned long long gate;
  if (threadIdx.x == 0) make(at(&gate), 16);
  __syncthreads();
  if (threadIdx.x & 1) wait(at(&gate), 0);
  else asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&gate)) : "memory");
  out[blockIdx.x * 32 + threadIdx.x] = 1;
}
// Nobody arrives.
extern "C" __global__ void forgotten(int* out) {
  __shared__ unsigned long long gate;
  if (threadIdx.x == 0) make(at(&gate), 33);
  __syncthreads();
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(&gate)) : "memory");
  wait(at(&gate), 0);
  out[threadIdx.x] = 1;
}
// Where a thread stores hangs on what a copy brought.
extern "C" __global__ void indexed(int* out, const int* in) {
  __shared__ __align__(128) int held[32];
  __shared__ unsigned long long gate;
  if (threadIdx.x == 0) {
    make(at(&gate), 1);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(at(&gate)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(
        at(held)), "l"(in + blockIdx.x * 32), "r"(at(&gate)) : "memory");
  }
  __syncthreads();
  wait(at(&gate), 0);
  out[held[threadIdx.x]] = 1;
}
// Ranges that begin at `apart` words from each other, and are added to others.
extern "C" __global__ void ranges(int* out, const int* in, int apart, int words) {
  extern __shared__ __align__(128) int held[];
  __shared__ unsigned long long gate;
  int block = blockIdx.x + blockIdx.y * gridDim.x;
  if (threadIdx.x == 0) {
    make(at(&gate), 1);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(&gate)), "r"(4 * words) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
        at(held)), "l"(in + block * apart), "r"(4 * words), "r"(at(&gate)) : "memory");
  }
  __syncthreads();
  wait(at(&gate), 0);
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + block * apart),
                 "r"(at(held)), "r"(4 * words) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""
)

SPECIALISED = (
    HOPPER
    + r"""
// Two groups of warps multiply what a third fetches; each stores its part of a tile by itself, and TMA takes it away.
extern "C" __global__ void __launch_bounds__(384, 1)
    specialised(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                const __grid_constant__ TensorMap c, int tiles, int across, int k, int step) {
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned base = address_of(memory), full = base + 2 * STAGE + 2 * 32768, empty = full + 16;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage) make_barrier(full + 8 * stage, 1), make_barrier(empty + 8 * stage, 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int group = threadIdx.x / 128, round = 0;
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256)
      for (int tile = blockIdx.x; tile < tiles; tile += step)
        for (int t = 0; t < k / 64; ++t, ++round) {
          unsigned to = base + round % 2 * STAGE, barrier = full + round % 2 * 8;
          wait_for(empty + round % 2 * 8, round / 2 % 2 ^ 1);
          announce(barrier, STAGE);
          for (int i = 0; i < 2; ++i) {
            fetch(to + i * BOX, &a, t * 64, tile / across * 128 + 64 * i, barrier);
            fetch(to + (2 + i) * BOX, &b, tile % across * 128 + 64 * i, t * 64, barrier);
          }
        }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  for (int tile = blockIdx.x; tile < tiles; tile += step) {
    float sums[16][4] = {};
    for (int t = 0; t < k / 64; ++t, ++round) {
      unsigned from = base + round % 2 * STAGE;
      wait_for(full + round % 2 * 8, round / 2 % 2);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      multiply(sums, describe(from + group * BOX, 16), describe(from + 2 * BOX, BOX));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (threadIdx.x % 128 == 0) arrive(empty + round % 2 * 8);
    }
    float* to = (float*)(memory + 2 * STAGE + 32768 * group);
    if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    for (int i = 0; i < 64; ++i) to[threadIdx.x % 128 + 128 * i] = sums[i / 4][i % 4];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    if (threadIdx.x % 128 == 0)
      for (int i = 0; i < 4; ++i)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                     "cp.async.bulk.commit_group;" ::"l"(&c),
                     "r"(address_of(to) + 8192 * i), "r"(tile % across * 128 + 32 * i),
                     "r"(tile / across * 128 + 64 * group)
                     : "memory");
  }
}
"""
)


def bind_text(source: str, launch: str, target: str = "sm_90") -> BoundLaunch:
    """A launch of compiled text on an H200."""
    config = parse_launch(launch)
    return bind(compile_kernels(source, target)[config.kernel], config, load_device("h200"))


def bind_product(name: str, rows: int, columns: int, depth: int, more: str = "") -> BoundLaunch:
    """A product of the Hopper rungs of the ladder: what is over of tiles of 128 hangs over the edges."""
    across, down = -(-columns // 128), -(-rows // 128)
    grid = f"({across}, {down})" if name == "warpgroups" else str(across * down)
    maps = ", ".join(
        f"tensor_map(bf16[{height}, {width}]=uniform(1), box=(64, 64), swizzle=128)"
        for height, width in ((rows, depth), (depth, columns))
    )
    size = 128 * down * columns + 128
    text = f"{name}<<<{grid}, 288, 129K>>>({maps}, f32[{size}], n={columns}, k={depth}{more})"
    return bind_text(HOPPER, text, "sm_90a")


@cache
def read_tiles() -> dict[str, BoundLaunch]:
    """The measured launches of copies that need no clusters; of rings, which are long, some."""
    found = {}
    for stem in ("tensor_copies", "rings"):
        path = TILES / f"{stem}.sm_90.cubin"
        kernels = {kernel.name: kernel for kernel in read_cubin(path.read_bytes(), path.name).kernels}
        for launch in read_launch_file(TILES / f"{stem}.json").cases:
            bound = bind(kernels[launch.kernel], launch, load_device("h200"))
            if find_shape(bound) is None and (stem == "tensor_copies" or launch.case in RINGS):
                found[f"{stem}:{launch.case}"] = bound
    return found


def test_measured_copies() -> None:
    # The reference engine describes what an H200 stops at; machine code leaves that to it.
    stopped = {name for name in read_tiles() if name.endswith("_stopped")}
    found = {name: list_differences(bound, races=True) for name, bound in read_tiles().items() if name not in stopped}
    assert len(found) == 83
    assert {name: differences for name, differences in found.items() if differences} == {}
    for name in stopped:
        with pytest.raises(OccurredError):
            execute_native(read_tiles()[name], ExecutionOptions())


@pytest.mark.parametrize(
    ("name", "rows", "columns", "depth", "more"),
    [
        ("warpgroups", 128, 128, 64, ""),
        ("warpgroups", 256, 384, 192, ""),
        ("warpgroups", 1024, 512, 448, ""),
        # Tiles hang over the edges of the matrices, of which columns are no multiple of anything.
        ("warpgroups", 600, 1096, 200, ""),
        ("l2_order", 512, 2048, 192, ", down=2"),
        ("l2_order", 500, 1280, 136, ", down=4"),
    ],
)
def test_products(name: str, rows: int, columns: int, depth: int, more: str) -> None:
    bound = bind_product(name, rows, columns, depth, more)
    assert list_differences(bound, races=True) == []


def bind_specialised(rows: int, columns: int, depth: int, blocks: int) -> BoundLaunch:
    """A product by groups of warps that do different things, which takes tiles in turn."""
    down, across = -(-rows // 128), -(-columns // 128)
    maps = ", ".join(
        f"tensor_map(bf16[{height}, {width}]=uniform(1), box=(64, 64), swizzle=128)"
        for height, width in ((rows, depth), (depth, columns))
    )
    text = f"specialised<<<{blocks}, 384, 130K>>>({maps}, tensor_map(f32[{rows}, {columns}], box=(32, 64)), "
    return bind_text(SPECIALISED, f"{text}{down * across}, {across}, {depth}, {blocks})", "sm_90a")


@pytest.mark.parametrize("sizes", [(256, 256, 128, 3), (640, 512, 192, 20), (500, 328, 136, 5)])
def test_groups_of_warps_that_do_different_things(sizes: tuple[int, int, int, int]) -> None:
    assert list_differences(bind_specialised(*sizes), races=True) == []


def test_blocks_that_are_not_alike_are_run_where_that_is_faster() -> None:
    bound = bind_specialised(640, 640, 128, 12)
    with pytest.raises(UnsupportedError, match="not alike"):
        execute_native(bound, ExecutionOptions(), hands_back=True)
    assert execute(bound, ExecutionOptions()).bulk == execute_native(bound, ExecutionOptions()).bulk


@pytest.mark.parametrize("name", ["warpgroups", "l2_order"])
def test_large_products_are_proven(name: str) -> None:
    side = 4096
    bound = bind_product(name, side, side, side, ", down=4" if name == "l2_order" else "")
    execution = execute(bound, ExecutionOptions())
    blocks = (side // 128) ** 2
    assert execution.sampling is None
    assert execution.blocks_executed == blocks
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    assert sum(each.copies for each in execution.bulk) == blocks * 4 * side // 64
    assert sum(each.sectors for each in execution.bulk) == blocks * 4 * side // 64 * 8192 // 32
    # Four products of 16 of the depth for each of 64, by eight warps; each of these stores 32 rows of two words.
    products = [site for site in execution.sites if site.access.operation == "matrix_load"]
    assert sum(site.executed for site in products) == blocks * 8 * 4 * side // 64
    assert sum(site.sectors for site in execution.sites) == side * side * 4 // 32


@pytest.mark.parametrize(
    "launch",
    [
        "relay<<<3, 128>>>(i32[8192], rounds=9)",
        "relay<<<40, 256>>>(i32[131072], rounds=5)",
        "tokens<<<1, 96>>>(i32[480], i32[480]=arange, rounds=5)",
        "tokens<<<1, 64>>>(i32[640], i32[640]=perm(2), rounds=7)",
        "halves<<<5, 32>>>(i32[160])",
        "ranges<<<(6, 8), 32, 4096>>>(i32[2048], i32[2048]=arange, apart=32, words=36)",
        "ranges<<<(6, 8), 32, 4096>>>(i32[2048], i32[2048]=arange, apart=4, words=20)",
        "ranges<<<(5, 9), 32, 4096>>>(i32[8192], i32[8192]=arange, apart=100, words=4)",
    ],
)
def test_waiting(launch: str) -> None:
    assert list_differences(bind_text(WAITING, launch)) == []


def test_who_waits_for_ever_is_described() -> None:
    bound = bind_text(WAITING, "forgotten<<<2, 32>>>(i32[32])")
    with pytest.raises(OccurredError):
        execute_native(bound, ExecutionOptions())
    said = [each.message for each in execute(bound, ExecutionOptions()).hangs]
    assert said == ["2 warps wait here for an mbarrier whose phase does not end: the launch hangs"]


def test_what_copies_bring_is_not_followed() -> None:
    bound = bind_text(WAITING, "indexed<<<64, 32>>>(i32[2048], i32[2048]=perm(1))")
    with pytest.raises(UnsupportedError, match="not known"):
        execute_native(bound, ExecutionOptions())
    execution = execute(bound, ExecutionOptions())
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    assert execution.read_buffer(0).view("<i4").sum() == 2048


def test_ranges_that_begin_elsewhere_in_a_line_are_counted_apart() -> None:
    execution = execute_native(
        bind_text(WAITING, "ranges<<<1024, 32, 4096>>>(i32[36864], i32[36864]=arange, apart=36, words=32)"),
        ExecutionOptions(),
    )
    whole = numpy_engine.execute(
        bind_text(WAITING, "ranges<<<1024, 32, 4096>>>(i32[36864], i32[36864]=arange, apart=36, words=32)"),
        ExecutionOptions(),
    )
    assert execution.bulk == whole.bulk
    assert execution.sampling is None
