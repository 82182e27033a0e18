"""Turns launch files into measured rows: runs every case on this GPU under Nsight Compute and keeps its counters.

Needs an NVIDIA GPU with its driver, and `ncu` (Nsight Compute) on the PATH or given with --ncu; this package is not
needed.

    python tools/record_truth.py tests/measured/rules/copies.json -o out/copies.json

Several launch files are recorded by one run of the profiler; then the output is a folder.

The launch file is a JSON object `{"source": "copies.cu", "cases": [...]}`, a case an object with `name`, `kernel`,
`grid`, `block`, `shared` and `args`. An argument is `{"kind": "buffer", "dtype", "size", "init"}` (init: zeros,
arange, perm:SEED, uniform:SEED[:BELOW]), `{"kind": "scalar", "dtype", "value"}`, of eight-byte fields
`{"kind": "struct", "fields": [...]}`, or `{"kind": "tensor_map", "buffer": {...}, "shape", "box"}`, which may also have
`strides` in bytes, `steps`, `swizzle`, `interleave`, `promotion` and `fill`. The kernels are read from
`<source without suffix>.sm_90.cubin` beside the launch file, or from --cubin; where there is none, nvcc compiles the
source. Every case gains a `measured` object: what the launch was given (`launch`), counters of the whole launch
(`totals`), and the profiler's source view, one entry a memory instruction in program order (`memory_instructions`).
A counter that is absent is zero or was not recorded.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

Case = dict[str, Any]

_PIPE = "l1tex__data_pipe_lsu_wavefronts"
_COPY = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts"
TOTALS = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global_red_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "global_red_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "global_atom_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "global_atom_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "local_load_requests": "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
    "local_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local_store_requests": "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
    "local_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "shared_load_wavefronts": f"{_PIPE}_mem_shared_op_ld.sum",
    "shared_store_wavefronts": f"{_PIPE}_mem_shared_op_st.sum",
    "shared_atom_wavefronts": f"{_PIPE}_mem_shared_op_atom.sum",
    "shared_wavefronts_hardware": f"{_PIPE}_mem_shared.sum",
    "l1_data_wavefronts": f"{_PIPE}.sum",
    "tag_wavefronts_global_load": "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum",
    "cp_async_shared_wavefronts": f"{_COPY}.sum",
    "cp_async_shared_wavefronts_access": f"{_COPY}_cache_access.sum",
    "cp_async_shared_wavefronts_bypass": f"{_COPY}_cache_bypass.sum",
    "bulk_load_sectors": "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
    "bulk_store_sectors": "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
    "bulk_reduction_sectors": "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum",
    "l1_tag_requests": "memory_l1_tag_requests_global",
    "l2_theoretical_sectors": "memory_l2_theoretical_sectors_global",
    "l2_theoretical_sectors_ideal": "memory_l2_theoretical_sectors_global_ideal",
    "l2_theoretical_sectors_local": "memory_l2_theoretical_sectors_local",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
    "instructions": "smsp__inst_executed.sum",
}
MEMORY_TOTALS = {
    "global_load_sectors_hit": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "local_load_sectors_hit": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum",
    "l1_sectors_filled": "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum",
    "l2_sectors_fabric": "lts__t_sectors_srcunit_ltcfabric.sum",
    "l2_sectors_atomic": "lts__t_sectors_op_atom.sum",
    "l2_sectors_reduction": "lts__t_sectors_op_red.sum",
    "l2_sectors_read": "lts__t_sectors_op_read.sum",
    "l2_sectors_write": "lts__t_sectors_op_write.sum",
    "l2_sectors_read_from_sm": "lts__t_sectors_srcunit_tex_op_read.sum",
    "l2_sectors_write_from_sm": "lts__t_sectors_srcunit_tex_op_write.sum",
    "dram_bytes_read": "dram__bytes_read.sum",
    "dram_bytes_write": "dram__bytes_write.sum",
    "time_ns": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "cycles_active": "sm__cycles_active.max",
}
LAUNCH = {
    "registers_per_thread": "launch__registers_per_thread",
    "shared_static_bytes": "launch__shared_mem_per_block_static",
    "shared_dynamic_bytes": "launch__shared_mem_per_block_dynamic",
    "shared_allocated_bytes": "launch__shared_mem_per_block_allocated",
    "shared_config_bytes": "launch__shared_mem_config_size",
    "limit_blocks": "launch__occupancy_limit_blocks",
    "limit_registers": "launch__occupancy_limit_registers",
    "limit_shared": "launch__occupancy_limit_shared_mem",
    "limit_warps": "launch__occupancy_limit_warps",
}
INSTRUCTION = {
    "tag_requests": "memory_l1_tag_requests_global",
    "sectors": "memory_l2_theoretical_sectors_global",
    "sectors_ideal": "memory_l2_theoretical_sectors_global_ideal",
    "sectors_local": "memory_l2_theoretical_sectors_local",
    "wavefronts": "memory_l1_wavefronts_shared",
    "wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
}
_EXECUTED = "inst_executed"

_MAP_BYTES = 128
# What the driver calls by number: CUtensorMapDataType and its kin in cuda.h.
_ELEMENTS = ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64")
_INTERLEAVES = (0, 16, 32)
_SWIZZLES = (0, 32, 64, 128)
_PROMOTIONS = (0, 64, 128, 256)


class Driver:
    """The CUDA driver library with a context on the first GPU."""

    def __init__(self) -> None:
        """Open the driver and a context."""
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, device)
        self.device = name.value.decode()

    def call(self, function: str, *arguments: object) -> None:
        """Call a driver function and raise RuntimeError with its name where it fails."""
        status = getattr(self.library, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{function} failed: {(text.value or b'unknown').decode()}")


def fill_buffer(argument: dict[str, Any]) -> np.ndarray:
    """Make the contents of a buffer argument: an array of its dtype and size."""
    size, dtype = argument["size"], np.dtype(argument["dtype"])
    kind, *numbers = argument.get("init", "zeros").split(":")
    seed, *below = (int(number) for number in numbers) if numbers else (0,)
    match kind:
        case "zeros" | "noise":
            return np.zeros(size, dtype)
        case "arange":
            return np.arange(size).astype(dtype)
        case "perm":
            return np.random.default_rng(seed).permutation(size).astype(dtype)
        case "uniform":
            random = np.random.default_rng(seed)
            if dtype.kind == "f":
                return random.random(size, dtype=np.float32).astype(dtype)
            return random.integers(0, below[0] if below else min(2**31, np.iinfo(dtype).max), size).astype(dtype)
        case _:
            raise ValueError(
                f"unknown contents {argument['init']!r}: expected zeros, arange, perm:SEED or uniform:SEED"
            )


def launch_files(launches: list[Path], cubins: list[Path]) -> tuple[str, list[list[list[int]]]]:
    """Launch every case of every file once; return the GPU's name, and the addresses of each case's buffers."""
    driver = Driver()
    places = []
    for path, cubin in zip(launches, cubins, strict=True):
        cases = json.loads(path.read_text())["cases"]
        module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(module), cubin.read_bytes())
        places.append([launch_case(driver, module, case) for case in cases])
    return driver.device, places


def pack_argument(driver: Driver, argument: dict[str, Any], buffers: list[ctypes.c_uint64]) -> bytes:
    """Return the bytes of an argument; what it allocates is added to `buffers`. A struct has fields of eight bytes."""
    match argument["kind"]:
        case "scalar":
            data: bytes = np.dtype(argument["dtype"]).type(argument["value"]).tobytes()
            return data
        case "struct":
            return b"".join(pack_argument(driver, member, buffers) for member in argument["fields"])
        case "tensor_map":
            (address,) = np.frombuffer(pack_argument(driver, argument["buffer"], buffers), np.uint64)
            return encode_tensor_map(driver, argument, int(address))
    contents, address = fill_buffer(argument), ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(contents.nbytes, 1)))
    driver.call("cuMemcpyHtoD_v2", address, contents.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(contents.nbytes))
    buffers.append(address)
    return bytes(address)


def encode_tensor_map(driver: Driver, argument: dict[str, Any], address: int) -> bytes:
    """Return the 128 bytes that the driver makes of a tensor map; lists begin with the axis that is densest."""
    shape, box, dtype = argument["shape"], argument["box"], argument["buffer"]["dtype"]
    width = np.dtype(dtype).itemsize
    strides = argument.get("strides") or [width * math.prod(shape[: axis + 1]) for axis in range(len(shape) - 1)]
    steps = argument.get("steps") or [1] * len(shape)
    # The driver wants the map itself to begin at a multiple of 64 bytes.
    room = ctypes.create_string_buffer(_MAP_BYTES + 64)
    place = -(-ctypes.addressof(room) // 64) * 64
    driver.call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(place),
        _ELEMENTS.index(dtype),
        ctypes.c_uint32(len(shape)),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * len(shape))(*shape),
        (ctypes.c_uint64 * max(len(strides), 1))(*strides),
        (ctypes.c_uint32 * len(box))(*box),
        (ctypes.c_uint32 * len(steps))(*steps),
        _INTERLEAVES.index(argument.get("interleave", 0)),
        _SWIZZLES.index(argument.get("swizzle", 0)),
        _PROMOTIONS.index(argument.get("promotion", 0)),
        int(argument.get("fill", "zeros") == "nan"),
    )
    return ctypes.string_at(place, _MAP_BYTES)


def launch_case(driver: Driver, module: ctypes.c_void_p, case: Case) -> list[int]:
    """Launch one case with fresh buffers; return their addresses."""
    function = ctypes.c_void_p()
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, case["kernel"].encode())
    if case["shared"] > 48 * 1024:
        driver.call("cuFuncSetAttribute", function, 8, case["shared"])  # MAX_DYNAMIC_SHARED_SIZE_BYTES
    buffers: list[ctypes.c_uint64] = []
    values = [pack_argument(driver, argument, buffers) for argument in case["args"]]
    held = [ctypes.create_string_buffer(value, len(value)) for value in values]
    pointers = (ctypes.c_void_p * len(held))(*[ctypes.cast(value, ctypes.c_void_p) for value in held])
    driver.call("cuLaunchKernel", function, *case["grid"], *case["block"], case["shared"], None, pointers, None)
    driver.call("cuCtxSynchronize")
    for address in buffers:
        driver.call("cuMemFree_v2", address)
    return [address.value for address in buffers]


def choose_metrics(ncu: str, wanted: list[str]) -> list[str]:
    """Return those of the wanted metrics that this profiler knows for this GPU."""
    asked = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, check=False).stdout.split()
    known = set(asked)
    if not known:
        return wanted
    return [name for name in wanted if name.startswith("memory_") or name.rsplit(".", 1)[0] in known]


def profile(
    ncu: str,
    launches: list[Path],
    cubins: list[Path],
    folder: Path,
    metrics: list[str],
    *,
    source_view: bool,
    only_view: bool,
) -> None:
    """Run the cases under the profiler, which leaves `report.ncu-rep` in the folder, and `addresses.json`."""
    command = [ncu, "--force-overwrite", "--export", str(folder / "report.ncu-rep")]
    command += ["--clock-control", "none", "--target-processes", "all"]
    if source_view:
        command += ["--section", "LaunchStats", "--section", "Occupancy"]
        command += [] if only_view else ["--section", "SourceCounters"]
    command += ["--metrics", ",".join(metrics)]
    command += [sys.executable, str(Path(__file__).resolve()), *map(str, launches), "--launch-only"]
    command += ["--cubin", *map(str, cubins), "-o", str(folder / "addresses.json")]
    subprocess.run(command, check=True)


def read_report(report: Path, ncu: str) -> list[dict[str, Any]]:
    """Read the `measured` object of every launch of a report, in launch order."""
    folder = Path(shutil.which(ncu) or ncu).resolve().parent
    for extras in [
        *folder.glob("**/extras/python"),
        *folder.parent.glob("**/extras/python"),
        *Path("/opt").glob("nvidia/nsight-compute/*/extras/python"),
    ]:
        sys.path.append(str(extras))
    import ncu_report  # ships with the profiler

    context = ncu_report.load_report(str(report))
    actions = []
    for index in range(len(context)):
        gathered = context.range_by_idx(index)
        actions += [gathered.action_by_idx(k) for k in range(gathered.num_actions())]
    return [{"kernel": action.name(), **read_launch(action)} for action in actions]


def read_launch(action: Any) -> dict[str, Any]:  # noqa: ANN401 - the profiler's module has no types
    """Read launch properties, totals and the source view of one profiled launch."""
    names = set(action.metric_names())

    def number(metric: str) -> float | None:
        return action.metric_by_name(metric).as_double() if metric in names else None

    totals = {key: number(metric) for key, metric in {**TOTALS, **MEMORY_TOTALS}.items()}
    launch = {key: number(metric) for key, metric in LAUNCH.items()}
    return {
        "launch": {key: int(value) for key, value in launch.items() if value is not None},
        "totals": {key: round(value) for key, value in totals.items() if value},
        "memory_instructions": read_instructions(action, names),
    }


def read_instructions(action: Any, names: set[str]) -> list[dict[str, Any]]:  # noqa: ANN401 - as above
    """Read the source view: one entry for each executed memory instruction that accesses something."""
    columns: dict[int, dict[str, int]] = {}
    for key, metric in {"executed": _EXECUTED, **INSTRUCTION}.items():
        if metric not in names:
            continue
        values = action.metric_by_name(metric)
        places = values.correlation_ids()
        for k in range(values.num_instances()):
            columns.setdefault(places.as_uint64(k), {})[key] = round(values.as_double(k))
    rows = []
    for pc in sorted(columns):
        counts = columns[pc]
        if counts.get("executed") and any(counts.get(key) for key in INSTRUCTION):
            rows.append({"sass": " ".join(action.sass_by_pc(pc).split()), **{k: v for k, v in counts.items() if v}})
    return rows


def find_cubin(launches: Path, source: str) -> Path:
    """Return the cubin beside the launch file, compiled from its source where there is none."""
    cubin = launches.parent / f"{Path(source).stem}.sm_90.cubin"
    if not cubin.exists():
        subprocess.run(["nvcc", "-arch=sm_90", "-cubin", "-o", str(cubin), str(launches.parent / source)], check=True)
    return cubin


def keep_rows(document: dict[str, Any], rows: list[dict[str, Any]], places: list[list[int]], output: Path) -> None:
    """Give each case of a launch file its row, and write the file."""
    for case, row, at in zip(document["cases"], rows, places, strict=True):
        if row.pop("kernel") != case["kernel"]:
            raise SystemExit(f"{case['name']}: the profiled launch is of another kernel")
        case["measured"] = {**row, "buffer_addresses": at}
    output.write_text(json.dumps(document))


def record(launches: list[Path], cubins: list[Path], options: argparse.Namespace) -> None:
    """Profile the cases of all launch files in one run, and write each file with its rows."""
    wanted = {**TOTALS, **(MEMORY_TOTALS if options.memory else {})}
    if options.view:
        wanted = {_EXECUTED: _EXECUTED, **{key: name for key, name in TOTALS.items() if name.startswith("memory_")}}
    elif options.totals:
        wanted = {name: wanted[name] for name in options.totals.split(",")}
    metrics = list(wanted.values()) if options.view else choose_metrics(options.ncu, list(wanted.values()))
    with tempfile.TemporaryDirectory() as name:
        folder = options.report or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        profile(
            options.ncu,
            launches,
            cubins,
            folder,
            metrics,
            source_view=not options.totals,
            only_view=options.view,
        )
        places = json.loads((folder / "addresses.json").read_text())
        rows = read_report(folder / "report.ncu-rep", options.ncu)
    documents = [json.loads(path.read_text()) for path in launches]
    cases = sum(len(document["cases"]) for document in documents)
    if len(rows) != cases:
        raise SystemExit(f"{cases} cases, but {len(rows)} profiled launches")
    several = len(launches) > 1
    if several:
        options.output.mkdir(parents=True, exist_ok=True)
    for path, document, at in zip(launches, documents, places, strict=True):
        count = len(document["cases"])
        keep_rows(document, rows[:count], at, options.output / path.name if several else options.output)
        rows = rows[count:]


def main() -> None:
    """Record the cases of launch files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("launches", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, help="the file, or for several launch files the folder")
    parser.add_argument("--cubin", type=Path, nargs="+", help="one for each launch file")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--report", type=Path, help="keep the profiler's report in this folder")
    parser.add_argument("--totals", help="record these totals only, by their names in rows: fewer passes")
    parser.add_argument("--view", action="store_true", help="record the source view only: fewer passes")
    parser.add_argument("--memory", action="store_true", help="also record L1 hits, L2, DRAM and time")
    parser.add_argument("--launch-only", action="store_true", help="launch every case once, without a profiler")
    options = parser.parse_args()
    cubins = options.cubin or [find_cubin(path, json.loads(path.read_text())["source"]) for path in options.launches]
    if not options.launch_only:
        record(options.launches, cubins, options)
        return
    device, places = launch_files(options.launches, cubins)
    print(device, sum(len(each) for each in places), "launches")
    if options.output:
        options.output.write_text(json.dumps(places))


if __name__ == "__main__":
    main()
