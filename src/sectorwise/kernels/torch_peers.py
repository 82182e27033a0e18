"""Turns a case of the table into what PyTorch does instead, as a graph that is replayed and timed."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from sectorwise.errors import DeviceRunError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.kernels.bench_cases import BenchCase


def find_torch() -> Any:  # noqa: ANN401 - a module that is no dependency
    """PyTorch, where it is installed and sees a GPU, else None."""
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch if torch.cuda.is_available() else None


def capture_peer(case: BenchCase, copies: int, rounds: int = 1) -> Callable[[], float]:
    """A function that replays the peer on copies of its operands, so many rounds, and gives the microseconds of all.

    Raises:
        DeviceRunError: PyTorch is not there, or its function does not take this shape.
        RuntimeError: as PyTorch raises it.
    """
    torch = find_torch()
    if torch is None:
        raise DeviceRunError("PyTorch is not installed, or sees no GPU")
    return capture_calls(torch, [_make_call(torch, case) for _ in range(copies)] * rounds)


def capture_calls(torch: Any, calls: Sequence[Callable[[], object]]) -> Callable[[], float]:  # noqa: ANN401 - a module
    """A function that replays a CUDA graph of calls, one after the other, and gives its microseconds.

    Raises:
        RuntimeError: as PyTorch raises it.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for each in dict.fromkeys(calls):
            each()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for each in calls:
            each()

    def replay() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e3

    return replay


def _make_call(torch: Any, case: BenchCase) -> Callable[[], object]:  # noqa: ANN401 - a module
    on = {"device": "cuda"}
    if case.peer in {"linear", "int4pack_mm", "scaled_mm", "int_mm"}:
        return _make_product(torch, case)
    if case.peer.startswith("matmul"):
        m, n, k = case.shape
        turned = case.peer == "matmul_turned"
        a, b = (torch.randn(*(size[::-1] if turned else size), **on).bfloat16() for size in ((m, k), (k, n)))
        return lambda: torch.matmul(a.t(), b.t()) if turned else torch.matmul(a, b)
    if case.peer == "copy":
        given, taken = (torch.zeros(case.shape[0], dtype=torch.uint8, **on) for _ in range(2))
        return lambda: taken.copy_(given)
    kind = torch.float32 if case.peer == "transpose4" else torch.bfloat16
    given = torch.randn(case.shape, **on).to(kind)
    turned = torch.empty((*case.shape[:-2], case.shape[-1], case.shape[-2]), dtype=kind, **on)
    return lambda: turned.copy_(given.transpose(-1, -2))


def _make_product(torch: Any, case: BenchCase) -> Callable[[], object]:  # noqa: ANN401 - a module
    rows, depth = case.shape
    on = {"device": "cuda"}
    x = torch.randn(case.batch, depth, **on).bfloat16()
    match case.peer:
        case "linear":
            weights = torch.randn(rows, depth, **on).bfloat16()
            return lambda: torch.nn.functional.linear(x, weights)
        case "int4pack_mm":
            packed = torch._convert_weight_to_int4pack(  # noqa: SLF001 - PyTorch's only name for it
                torch.randint(0, 256, (rows, depth // 2), dtype=torch.uint8, **on), 8
            )
            scales = torch.ones(depth // 128, rows, 2, **on).bfloat16()
            multiply = torch._weight_int4pack_mm  # noqa: SLF001 - as above
            return lambda: multiply(x, packed, 128, scales)
        case "scaled_mm":
            # It wants at least 16 rows of x, and takes x in eight bits.
            given = torch.randn(16, depth, **on).to(torch.float8_e4m3fn)
            weights = torch.randn(rows, depth, **on).to(torch.float8_e4m3fn).t()
            one = torch.ones((), **on)
            multiply = torch._scaled_mm  # noqa: SLF001 - as above
            return lambda: multiply(given, weights, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        case _:
            # It wants more than 16 rows of x, in eight bits.
            given = torch.randint(-128, 128, (32, depth), dtype=torch.int8, **on)
            weights = torch.randint(-128, 128, (rows, depth), dtype=torch.int8, **on).t()
            multiply = torch._int_mm  # noqa: SLF001 - as above
            return lambda: multiply(given, weights)
