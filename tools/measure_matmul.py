"""Turns a machine with an H200 and PyTorch into the times of products of matrices, each beside PyTorch's.

    python tools/measure_matmul.py -o benchmarks/kernels/matmul-h200.json

A row is a CUDA graph of launches that go through copies of the operands, together at least 256 MiB, replayed in turns
with one of launches that do not overlap and one of the peer; medians. Peers are torch.matmul, for batches torch.bmm.
`sm_mhz` is the clock of the SMs while the same graph runs again and again: the card lowers it for busy tensor cores.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import json
import statistics
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.frontends.nvrtc import load_nvrtc
from sectorwise.kernels.arrays import read_array
from sectorwise.kernels.batches import list_batches
from sectorwise.kernels.launching import count_multiprocessors, launch, open_library, read_capability
from sectorwise.kernels.matmul_plans import plan_matmul
from sectorwise.kernels.plan import SOURCES
from sectorwise.kernels.torch_peers import capture_calls
from sectorwise.verify.driver import describe_gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.kernels.plan import KernelPlan

ROTATED_BYTES = 256 << 20
GRAPH_US = 2000
REPLAYS, WARM_UPS = 11, 3
_CLOCK_OF_SMS: Final = 1
"""NVML_CLOCK_SM of nvml.h."""


@dataclass(frozen=True, slots=True)
class Case:
    """Products of m x k and k x n, so many, and whether A and B lie by rows."""

    m: int
    n: int
    k: int
    count: int = 1
    by_rows: tuple[bool, bool] = (True, True)


SQUARE = tuple(Case(side, side, side) for side in (256, 512, 1000, 1024, 1536, 2048, 2560, 3000, 4096, 8192))
TURNED = tuple(
    Case(*sizes, 1, orders)
    for sizes in ((2048, 2048, 2048), (4096, 4096, 4096), (3000, 3000, 3000))
    for orders in ((True, False), (False, True), (False, False))
)
FLAT = tuple(
    Case(m, n, 4096) for m, n in ((16, 14336), (48, 14336), (48, 4096), (64, 4096), (128, 4096), (256, 4096))
) + tuple(Case(m, 4096, 4096) for m in (384, 512, 768, 1024))
OTHER = (
    *(Case(4096, 4096, 14336, 1, (False, False)), Case(48, 4096, 4096, 1, (True, False))),
    *(Case(16, 14336, 4096, 1, (True, False)), Case(48, 14336, 4096, 1, (True, False))),
    *(Case(128, 4096, 4096, 1, (True, False)), Case(6144, 4096, 4096, 1, (True, False))),
    *(Case(4096, 14336, 4096, 1, (True, False)), Case(200, 8192, 8192), Case(200, 8192, 8192, 1, (True, False))),
    *(Case(640, 8192, 1024), Case(5000, 5000, 1000), Case(2048, 2048, 512), Case(128, 128, 16384)),
    *(Case(4096, 64, 4096), Case(8192, 1024, 64), Case(8192, 512, 1024)),
)
BATCHES = (
    *(Case(512, 512, 512, 64), Case(1024, 1024, 128, 32), Case(1024, 128, 1024, 32), Case(2048, 2048, 128, 16)),
    *(Case(128, 128, 64, 512), Case(64, 64, 64, 4096), Case(16, 2048, 128, 256), Case(2048, 2048, 2048, 8)),
)
CASES = (*SQUARE, *TURNED, *FLAT, *OTHER, *BATCHES)


def draw(case: Case) -> tuple[Any, Any, Any]:
    """Operands of random numbers, and room for the result."""
    on = {"device": "cuda", "dtype": torch.bfloat16}
    made = []
    for rows, columns, by_rows in ((case.m, case.k, case.by_rows[0]), (case.k, case.n, case.by_rows[1])):
        shape = (case.count, rows, columns) if by_rows else (case.count, columns, rows)
        held = torch.randn(shape, **on)
        made.append(held if by_rows else held.mT)
    result = torch.empty((case.count, case.m, case.n), **on)
    return tuple(each if case.count > 1 else each[0] for each in (*made, result))


def plan_case(operands: tuple[Any, Any, Any]) -> tuple[KernelPlan, dict[str, int]]:
    """The launch of a product, and the addresses of its operands."""
    arrays = [read_array(name, each) for name, each in zip("abc", operands, strict=True)]
    (batch,) = list_batches(arrays[0], arrays[1], arrays[2])
    plan = plan_matmul(batch, count_multiprocessors(0), read_capability(0))
    return plan, {array.name: array.operand.address for array in (batch.a, batch.b, batch.c)}


def put(plan: KernelPlan, addresses: dict[str, int]) -> None:
    """Launch on PyTorch's current stream."""
    launch(plan, addresses, 0, torch.cuda.current_stream().cuda_stream)


def read_clock() -> int:
    """MHz of the SMs of the first GPU now, from NVML, which comes with the driver."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    handle, mhz = ctypes.c_void_p(), ctypes.c_uint()
    for code in (
        library.nvmlInit_v2(),
        library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)),
        library.nvmlDeviceGetClockInfo(handle, _CLOCK_OF_SMS, ctypes.byref(mhz)),
    ):
        if code:
            raise RuntimeError(f"NVML says {code}")
    return mhz.value


def observe_clock(replay: Callable[[], float]) -> float:
    """MHz of the SMs while `replay` runs, the median of what is read."""
    over, seen = threading.Event(), [read_clock()]

    def observe() -> None:
        while not over.wait(0.001):
            seen.append(read_clock())

    observer = threading.Thread(target=observe)
    observer.start()
    for _ in range(REPLAYS):
        replay()
    over.set()
    observer.join()
    return statistics.median(seen)


def measure(case: Case) -> dict[str, object]:
    """The row of a case."""
    operations = 2 * case.count * case.m * case.n * case.k
    moved = 2 * case.count * (case.m * case.k + case.k * case.n + case.m * case.n)
    copies = max(1, min(-(-ROTATED_BYTES // moved), 64))
    rounds = max(1, int(GRAPH_US / max(operations / 7e8, moved / 4e6, 3) / copies))
    sets = [draw(case) for _ in range(copies)]
    planned = [plan_case(each) for each in sets]
    multiply = torch.matmul if case.count == 1 else torch.bmm
    replays = {
        "us": capture_calls(torch, [lambda plan=plan, at=at: put(plan, at) for plan, at in planned] * rounds),
        "alone_us": capture_calls(
            torch, [lambda plan=plan, at=at: put(replace(plan, overlaps=False), at) for plan, at in planned] * rounds
        ),
        "peer_us": capture_calls(torch, [lambda a=a, b=b: multiply(a, b) for a, b, _ in sets] * rounds),
    }
    taken: dict[str, list[float]] = {name: [] for name in replays}
    for number in range(WARM_UPS + REPLAYS):
        for name, replay in replays.items():
            us = replay()
            if number >= WARM_UPS:
                taken[name].append(us / (copies * rounds))
    ratio = statistics.median(theirs / ours for theirs, ours in zip(taken["peer_us"], taken["us"], strict=True))
    a, b, c = sets[0]
    exact = torch.matmul(a.float(), b.float())
    error = float((c.float() - exact).norm() / exact.norm())
    times = {name: round(statistics.median(values), 2) for name, values in taken.items()}
    return {
        "m": case.m,
        "n": case.n,
        "k": case.k,
        "count": case.count,
        "a_by_rows": case.by_rows[0],
        "b_by_rows": case.by_rows[1],
        "kernel": planned[0][0].kernel,
        **times,
        "sm_mhz": observe_clock(replays["us"]),
        "speed": round(ratio, 3),
        "tflops": round(operations / times["us"] / 1e6, 1),
        "error": round(error, 5),
    }


def compile_first(cases: Sequence[Case]) -> None:
    """Have the kernels of all cases in the cache, several at a time."""
    plans = {plan.kernel: plan for plan in (plan_case(draw(case))[0] for case in cases)}
    major, minor = read_capability(0)
    with ThreadPoolExecutor() as pool:
        made = [
            pool.submit(
                CUDA.compile,
                SOURCES / plan.source,
                CompileRequest(f"sm_{major}{minor}{'a' if plan.specific else ''}", kernels=(plan.kernel,)),
            )
            for plan in plans.values()
        ]
    for each in made:
        each.result()


def main() -> None:
    """Measure all cases; rows are written as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    output: Path = parser.parse_args().output
    torch.zeros(1, device="cuda")
    gpu = describe_gpu(open_library())
    compile_first(CASES)
    document: dict[str, object] = {
        "schema": "sectorwise.kernels.matmul/3",
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "device": gpu.name,
        "driver": gpu.driver,
        "compiler": load_nvrtc().version,
        "torch": str(torch.__version__),
        "dtype": "bf16",
        "note": "error is the distance to the product in float32, relative to its length; speed is the peer's time by "
        "ours, the median of replays in turns",
        "rows": (rows := []),
    }
    for case in CASES:
        rows.append(measure(case))
        output.write_text(json.dumps(document, indent=1), encoding="utf-8")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
