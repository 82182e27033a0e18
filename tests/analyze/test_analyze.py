from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import sectorwise as sw
from sectorwise.counting.request import Operation, Space
from sectorwise.errors import ArchitectureMismatchError, LaunchError, SectorwiseError, UnknownKernelError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, FaultKind

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
// sectorwise: launch twice<<<2, 64>>>(f32[128]=arange)
// sectorwise: launch stride<<<1, 32>>>(f32[1024], n=32)

__device__ float* at(float* data, int i) { return data + i; }

__global__ void twice(float* data) {
    float* mine = at(data, blockIdx.x * blockDim.x + threadIdx.x);
    *mine = 2.0f * *mine;
}

__global__ void stride(float* data, int n) { data[threadIdx.x * n] = 1.0f; }

template <int N> __global__ void repeat(float* data) {
    for (int i = 0; i < N; ++i) data[i * 32 + threadIdx.x] = i;
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("analyze") / "small.cu"
    path.write_text(SOURCE)
    return path


def test_comments_name_the_launches(source: Path) -> None:
    analysis = sw.analyze(source)
    assert [kernel.name for kernel in analysis.kernels] == ["twice", "stride"]
    assert analysis.device.id == "h200-sxm"
    assert analysis.device.target == "sm_90"
    assert analysis.source == source.as_posix()
    assert analysis.source_texts[source.as_posix()] == SOURCE


def test_counts_of_a_load_and_a_store(source: Path) -> None:
    (kernel,) = sw.analyze(source, kernel="twice").kernels
    load, store = kernel.sites
    for site, operation in ((load, Operation.LOAD), (store, Operation.STORE)):
        assert (site.space, site.operation, site.width_bytes) == (Space.GLOBAL, operation, 4)
        assert (site.executed, site.sectors, site.sectors_ideal, site.tag_requests) == (4, 16, 16, 4)
        assert site.certainty is Certainty.EXACT
    assert kernel.coverage.blocks_executed == kernel.coverage.blocks_total == 2
    assert kernel.coverage.certainty is Certainty.EXACT
    assert (kernel.coverage.sites, kernel.coverage.sites_unknown, kernel.coverage.sites_not_issued) == (2, 0, 0)
    assert kernel.totals.global_load_requests == kernel.totals.global_store_requests == 4
    assert kernel.totals.l2_theoretical_sectors == 32
    assert kernel.totals.shared_wavefronts == 0


def test_stride_shows_in_the_sectors(source: Path) -> None:
    (kernel,) = sw.analyze(source, kernel="stride").kernels
    (store,) = kernel.sites
    assert (store.executed, store.sectors, store.sectors_ideal, store.tag_requests) == (1, 32, 4, 32)
    assert store.location is not None
    assert (store.location.file, store.location.line) == (source.as_posix(), 11)


@pytest.mark.parametrize("form", ["text", "launch", "list", "file"])
def test_launches_come_in_every_form(source: Path, tmp_path: Path, form: str) -> None:
    text = "twice<<<1, 32>>>(f32[32]=arange)"
    if form == "file":
        file = tmp_path / "launches.json"
        file.write_text('{"cases": [{"name": "only", "launch": "twice<<<1, 32>>>(f32[32]=arange)"}]}')
        launches: object = file
    else:
        launches = {"text": text, "launch": parse_launch(text), "list": [text]}[form]
    (kernel,) = sw.analyze(source, launches, keep_outputs=True).kernels  # type: ignore[arg-type]
    assert kernel.outputs is not None
    np.testing.assert_array_equal(kernel.outputs[0].values, np.arange(32, dtype=np.float32) * 2)
    assert kernel.case == ("only" if form == "file" else None)


def test_outputs_are_kept_on_request_only(source: Path) -> None:
    assert sw.analyze(source, kernel="twice").kernels[0].outputs is None


def test_instances_of_templates_go_by_their_names(source: Path) -> None:
    (kernel,) = sw.analyze(source, "repeat<3><<<1, 32>>>(f32[96])", keep_outputs=True).kernels
    assert kernel.name == "repeat<3>"
    assert kernel.outputs is not None
    np.testing.assert_array_equal(kernel.outputs[0].values, np.repeat([0, 1, 2], 32))


def test_progress_runs_over_all_launches(source: Path) -> None:
    seen: list[tuple[int, int]] = []
    sw.analyze(source, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {3}


def test_access_outside_its_buffer_is_reported_and_the_run_goes_on(source: Path) -> None:
    (kernel,) = sw.analyze(source, "twice<<<2, 64>>>(f32[100]=arange)", keep_outputs=True).kernels
    assert [fault.kind for fault in kernel.faults] == [FaultKind.OUT_OF_BOUNDS] * 2
    load = kernel.faults[0]
    assert (load.code, load.block, load.warp, load.lane, load.width_bytes) == ("SW901", (1, 0, 0), 1, 4, 4)
    assert load.occurrences == 28
    assert load.site == 0
    assert load.location is not None
    assert load.location.line == 8
    assert kernel.sites[0].executed == 4
    assert kernel.outputs is not None
    np.testing.assert_array_equal(kernel.outputs[0].values, np.arange(100, dtype=np.float32) * 2)


def test_misaligned_access_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "odd.cu"
    path.write_text(
        "__global__ void odd(char* in, float* out) { out[threadIdx.x] = *(float*)(in + 4 * threadIdx.x + 1); }\n"
    )
    (kernel,) = sw.analyze(path, "odd<<<1, 32>>>(i8[256], f32[32])").kernels
    (fault,) = kernel.faults
    assert (fault.code, fault.kind, fault.lane, fault.occurrences) == ("SW902", FaultKind.MISALIGNED, 0, 32)


def test_every_launch_is_checked_before_one_runs(source: Path) -> None:
    seen: list[int] = []
    with pytest.raises(LaunchError):
        sw.analyze(
            source,
            ["twice<<<1, 32>>>(f32[32])", "stride<<<1, 32>>>(f32[32])"],
            progress=lambda done, _: seen.append(done),
        )
    assert seen == []


def test_launch_of_no_kernel(source: Path) -> None:
    with pytest.raises(UnknownKernelError, match="no kernel 'strides'; the nearest: stride"):
        sw.analyze(source, "strides<<<1, 32>>>(f32[32], 1)")


def test_all_errors_have_one_base(source: Path) -> None:
    with pytest.raises(SectorwiseError):
        sw.analyze(source.with_name("gone.cu"))


def test_the_seed() -> None:
    lanes = np.arange(32)
    assert sw.sectors(lanes * 16, width=16) == 16
    assert sw.sectors(lanes * 8192, width=2) == 32
    assert sw.wavefronts(lanes * 128) == 32
    assert isinstance(sw.sectors(lanes * 4), int)
    assert sw.occupancy(256, 28, 4096, device="h200").blocks_per_sm == 8
    assert issubclass(LaunchError, sw.SectorwiseError)


def test_public_names_survive_the_import_of_their_modules() -> None:
    import sectorwise.analyze  # noqa: F401 - the import is what is tested

    assert callable(sw.analyze)
    assert {"analyze", "occupancy", "sectors", "wavefronts"} <= set(dir(sw))
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        sw.analyse  # type: ignore[attr-defined]  # noqa: B018 - reading it is what is tested


def compile_for(source: Path, folder: Path, target: str) -> Path:
    path = folder / f"small.{target}.cubin"
    path.write_bytes(CUDA.compile(source, CompileRequest(target=target)).cubin)
    return path


def test_cubin_chooses_a_device_that_runs_it(source: Path, tmp_path: Path) -> None:
    launch = "twice<<<1, 32>>>(f32[32])"
    older = compile_for(source, tmp_path, "sm_80")
    analysis = sw.analyze(older, launch)
    assert (analysis.device.compute_capability, analysis.device.target) == ("8.0", "sm_80")
    assert sw.analyze(compile_for(source, tmp_path, "sm_90"), launch).device.id == "h200-sxm"
    with pytest.raises(ArchitectureMismatchError, match="sm_80"):
        sw.analyze(older, launch, device="h200")


def test_macros_and_folders_reach_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "size.h").write_text("constexpr int size = SIZE;\n")
    path = tmp_path / "fill.cu"
    path.write_text('#include "size.h"\n__global__ void fill(int* p) { for (int i = 0; i < size; ++i) p[i] = i; }\n')
    (kernel,) = sw.analyze(
        path, "fill<<<1, 1>>>(i32[5])", macros=["SIZE=5"], include_folders=[tmp_path / "headers"], keep_outputs=True
    ).kernels
    assert kernel.outputs is not None
    assert list(kernel.outputs[0].values) == [0, 1, 2, 3, 4]


def test_a_template_is_sketched_with_its_parameters(source: Path) -> None:
    with pytest.raises(UnknownKernelError, match=r"'repeat' is a template: say of what, as in repeat<int N>"):
        sw.analyze(source, "repeat<<<1, 32>>>(f32[1024])")
