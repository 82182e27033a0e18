"""Turns launches of Numba's kernels, and its allocations on a device, into records and NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sectorwise.capture.arrays import Nothing, allocate, allocate_like, do_nothing, to_host_array
from sectorwise.capture.replacement import Record, Replacement, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

_REFUSED = (
    *("external_stream", "open_ipc_array", "select_device", "current_context", "get_current_device", "list_devices"),
    *("profile_start", "profile_stop", "defer_cleanup", "from_cuda_array_interface", "detect"),
)


def list_numba_replacements(record: Record) -> list[Replacement]:
    """The launch of a kernel, allocations and copies, streams and events; what else needs a GPU is refused by name."""
    import numba.cuda
    from numba.cuda.dispatcher import CUDADispatcher

    def configure(self: Any, shape: Any) -> Callable[..., None]:  # noqa: ANN401 - Numba's types
        grid, block, _stream, shared_bytes = (*shape, 0, 0)[:4]

        def launch(*args: object) -> None:
            record(self, grid=grid, block=block, positional=args, dynamic_shared_bytes=int(shared_bytes))

        return launch

    def for_all(self: Any, tasks: int, tpb: int = 0, stream: object = 0, sharedmem: int = 0) -> Callable[..., None]:  # noqa: ANN401
        threads = tpb or 256
        return configure(self, (-(-tasks // threads), threads, stream, sharedmem))

    stand_ins: dict[str, object] = {
        "to_device": to_host_array,
        "as_cuda_array": to_host_array,
        "device_array": allocate,
        "pinned_array": allocate,
        "mapped_array": allocate,
        "managed_array": allocate,
        "device_array_like": allocate_like,
        "pinned_array_like": allocate_like,
        "mapped_array_like": allocate_like,
        "synchronize": do_nothing,
        "stream": Nothing,
        "default_stream": Nothing,
        "event": Nothing,
        "event_elapsed_time": lambda *_events: float("nan"),
        "is_available": lambda: True,
        "close": do_nothing,
    }
    stand_ins |= {name: refuse(f"numba.cuda.{name}") for name in _REFUSED}
    replaced = [
        Replacement(f"numba.cuda.{name}", numba.cuda, name, value)
        for name, value in stand_ins.items()
        if hasattr(numba.cuda, name)
    ]
    return [
        Replacement("numba.cuda.jit (kernel[grid, block](...))", CUDADispatcher, "__getitem__", configure),
        Replacement("numba.cuda.jit (kernel.forall)", CUDADispatcher, "forall", for_all),
        *replaced,
    ]
