"""Turns questions to `torch.cuda`, and its streams, events and guards, into answers for a device that is not there."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from sectorwise.capture.arrays import Nothing, do_nothing
from sectorwise.capture.replacement import Replacement, make_error
from sectorwise.device import require_capability

if TYPE_CHECKING:
    from sectorwise.device import DeviceSpec

_NOT_A_NUMBER: Final = float("nan")
_SEED: Final = 0


class Stream(Nothing):
    """A stream, the default one."""

    cuda_stream = 0
    stream_id = 0

    def is_capturing(self) -> bool:
        """Whether a graph is being recorded."""
        return False

    def query(self) -> bool:
        """Whether all is done."""
        return True


class Event(Nothing):
    """An event: nothing ran, so the time between two of them is no number."""

    def query(self) -> bool:
        """Whether all is done."""
        return True

    def elapsed_time(self, _end: object) -> float:
        """No number of milliseconds."""
        return _NOT_A_NUMBER


class Properties:
    """What `torch.cuda.get_device_properties` tells, as far as the device's file knows it."""

    def __init__(self, torch: Any, device: DeviceSpec) -> None:  # noqa: ANN401 - the module
        """Take the numbers over under PyTorch's names."""
        self._known = frozenset(dir(getattr(torch._C, "_CudaDeviceProperties", None)))  # noqa: SLF001 - to tell names
        capability = require_capability(device)
        self.name = device.name
        self.major, self.minor = capability.compute_capability
        self.total_memory = device.memory_gb << 30
        self.multi_processor_count = device.sm_count
        self.warp_size = capability.warp_size
        self.max_threads_per_multi_processor = capability.max_threads_per_sm
        self.regs_per_multiprocessor = capability.regs_per_sm
        self.shared_memory_per_block = capability.shared_per_block_default_bytes
        self.shared_memory_per_block_optin = capability.shared_per_block_optin_bytes
        self.shared_memory_per_multiprocessor = capability.shared_per_sm_bytes
        self.L2_cache_size = device.l2_bytes
        self.clock_rate = device.boost_mhz * 1000
        self.is_integrated = self.is_multi_gpu_board = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is asked for
        """Refuse by name what PyTorch would tell; what it would not either is an error of the usual kind."""
        if name.startswith("__") or name not in self._known:
            raise AttributeError(name)
        raise make_error(f"torch.cuda.get_device_properties().{name}")


class DefaultGenerator:
    """The generator of a GPU, as far as kernels read it: a seed and an offset, in 16 bytes."""

    def __init__(self, torch: Any) -> None:  # noqa: ANN401 - the module
        """Begin at seed and offset 0."""
        self._torch = torch
        self._state = torch.tensor([_SEED, 0], dtype=torch.int64).view(torch.uint8)

    def get_state(self) -> Any:  # noqa: ANN401 - PyTorch's own type
        """A copy of the 16 bytes."""
        return self._state.clone()

    def set_state(self, state: Any) -> None:  # noqa: ANN401 - PyTorch's own type
        """Take such bytes over."""
        self._state = state.clone()

    def initial_seed(self) -> int:
        """The seed."""
        return int(self._state.view(self._torch.int64)[0])

    def manual_seed(self, seed: int) -> DefaultGenerator:
        """Begin anew."""
        self._state = self._torch.tensor([seed, 0], dtype=self._torch.int64).view(self._torch.uint8)
        return self


def list_cuda_replacements(torch: Any, device: DeviceSpec) -> list[Replacement]:  # noqa: ANN401 - the module
    """All of `torch.cuda` that is answered; what is not, and would look for a GPU, is refused by name."""
    answers = _answer_for(torch, device) | _make_memory_answers(device) | _make_random_answers(torch)
    replaced = [
        Replacement(f"torch.cuda.{name}", torch.cuda, name, value)
        for name, value in answers.items()
        if hasattr(torch.cuda, name)
    ]
    return [*replaced, *_list_elsewhere(torch), *_refuse_the_rest(torch)]


def _answer_for(torch: Any, device: DeviceSpec) -> dict[str, object]:  # noqa: ANN401 - the module
    capability = require_capability(device).compute_capability
    properties = Properties(torch, device)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": do_nothing,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": do_nothing,
        "get_device_name": lambda _device=None: device.name,
        "get_device_capability": lambda _device=None: capability,
        "get_device_properties": lambda _device=None: properties,
        "get_arch_list": lambda: list(device.compile_targets),
        "is_bf16_supported": lambda *_args, **_named: capability >= (8, 0),
        "can_device_access_peer": lambda *_devices: False,
        "is_current_stream_capturing": lambda: False,
        "device": Nothing,
        "device_of": Nothing,
        "_DeviceGuard": Nothing,
        "synchronize": do_nothing,
        "Stream": Stream,
        "Event": Event,
        "current_stream": Stream,
        "default_stream": Stream,
        "stream": Nothing,
        "set_stream": do_nothing,
        "StreamContext": Nothing,
        "nvtx": _Ranges("torch.cuda.nvtx"),
    }


class _Ranges(ModuleType):
    """`torch.cuda.nvtx`: ranges for a profiler, which is not there."""

    range_push = range_pop = mark = range_start = range_end = staticmethod(do_nothing)
    range = Nothing


def _make_memory_answers(device: DeviceSpec) -> dict[str, object]:
    """Of memory only the size is known; what PyTorch would hold of it is no number."""
    total_bytes = device.memory_gb << 30
    asked = (
        *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
        *("memory_cached", "max_memory_cached"),
    )
    answers: dict[str, object] = dict.fromkeys(asked, lambda *_args, **_named: _NOT_A_NUMBER)
    quiet = (
        *("empty_cache", "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated"),
        *("reset_max_memory_cached", "set_per_process_memory_fraction", "reset_accumulated_memory_stats"),
    )
    answers |= dict.fromkeys(quiet, do_nothing)
    answers["mem_get_info"] = lambda *_args, **_named: (total_bytes, total_bytes)
    return answers


def _make_random_answers(torch: Any) -> dict[str, object]:  # noqa: ANN401 - the module
    """Random numbers come from the CPU's generator; kernels that draw their own read the GPU's."""
    host = torch.random.default_generator
    there = DefaultGenerator(torch)

    def seed_both(seed: int) -> None:
        host.manual_seed(int(seed))
        there.manual_seed(int(seed))

    return {
        "default_generators": (there,),
        "manual_seed": seed_both,
        "manual_seed_all": seed_both,
        "seed": host.seed,
        "seed_all": host.seed,
        "initial_seed": host.initial_seed,
        "get_rng_state": lambda _device=None: host.get_state(),
        "set_rng_state": lambda state, _device=None: host.set_state(state),
        "get_rng_state_all": lambda: [host.get_state()],
        "set_rng_state_all": lambda states: host.set_state(states[0]),
    }


def _list_elsewhere(torch: Any) -> list[Replacement]:  # noqa: ANN401 - the module
    """What asks for a GPU under other names: generators, automatic precision, the compiler, `torch.accelerator`."""

    def compile_nothing(function: Any = None, **_named: object) -> Any:  # noqa: ANN401 - any function
        return function if function is not None else lambda decorated: decorated

    autocast, cuda_autocast = _make_autocasts(torch)
    ask = {name: getattr(torch, name) for name in ("is_autocast_enabled", "get_autocast_dtype")}

    def answer(name: str) -> Any:  # noqa: ANN401 - a function
        return lambda device="cuda": ask[name]("cpu" if device == "cuda" else device)

    made = [
        Replacement("torch.Generator (the CPU's)", torch, "Generator", _make_generator_type(torch)),
        Replacement("torch.autocast (the CPU's)", torch, "autocast", autocast),
        Replacement("", torch.amp, "autocast", autocast),
        Replacement("", torch.amp.autocast_mode, "autocast", autocast),
        Replacement("torch.cuda.amp.autocast (the CPU's)", torch.cuda.amp, "autocast", cuda_autocast),
        *(Replacement(f"torch.{name}", torch, name, answer(name)) for name in ask),
        Replacement("torch.compile (compiles nothing)", torch, "compile", compile_nothing),
    ]
    accelerator = getattr(torch, "accelerator", None)
    answers = {
        "is_available": lambda: True,
        "current_accelerator": lambda *_args, **_named: torch.device("cuda"),
        "device_count": lambda: 1,
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": do_nothing,
        "synchronize": do_nothing,
        "current_stream": Stream,
        "empty_cache": do_nothing,
    }
    made += [
        Replacement(f"torch.accelerator.{name}", accelerator, name, value)
        for name, value in answers.items()
        if hasattr(accelerator, name)
    ]
    return made


def _make_generator_type(torch: Any) -> type:  # noqa: ANN401 - the module
    original = torch.Generator

    class _Generators(type):
        """Says of PyTorch's own generators that they are some."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, original)

        def __call__(cls, device: object = "cpu") -> Any:  # noqa: ANN401 - PyTorch's own type
            """A generator on the CPU, whatever device is asked for."""
            del device
            return original()

    class Generator(metaclass=_Generators):
        """`torch.Generator`, as scripts name it."""

    return Generator


def _make_autocasts(torch: Any) -> tuple[type, type]:  # noqa: ANN401 - the module
    """`torch.autocast` and `torch.cuda.amp.autocast`, for the device on which the tensors are: the CPU."""

    class autocast(torch.autocast):  # type: ignore[misc] # noqa: N801 - the name that it replaces
        """Automatic precision."""

        def __init__(self, device_type: str = "cuda", *args: object, **named: Any) -> None:  # noqa: ANN401
            super().__init__("cpu" if device_type == "cuda" else device_type, *args, **named)

    class cuda_autocast(autocast):  # noqa: N801 - as above
        """The same by its older name, which takes no device."""

        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:  # noqa: ANN401, FBT001, FBT002
            super().__init__("cuda", dtype or torch.float16, enabled, cache_enabled)

    return autocast, cuda_autocast


def _refuse_the_rest(torch: Any) -> list[Replacement]:  # noqa: ANN401 - the module
    """All other functions of `torch.cuda` begin by looking for a GPU: that step tells which of them it was."""

    def refuse_caller() -> None:
        caller = sys._getframe(1)  # noqa: SLF001 - the function that would have needed a GPU
        module = str(caller.f_globals.get("__name__", ""))
        if not module.startswith("torch.cuda"):
            return  # PyTorch's own core, about to allocate: the tensor is made on the CPU
        raise make_error(f"torch.cuda.{caller.f_code.co_name.lstrip('_')}")

    refused = [
        Replacement("", torch.cuda, name, _Refused(f"torch.cuda.{name}"))
        for name in ("CUDAGraph", "ExternalStream", "graph", "make_graphed_callables", "MemPool")
        if hasattr(torch.cuda, name)
    ]
    return [Replacement("", torch.cuda, "_lazy_init", refuse_caller), *refused]


class _Refused:
    """What says, when it is called, that it needs a GPU and is not replaced."""

    def __init__(self, name: str) -> None:
        """Take the name that people know it by."""
        self._name = name

    def __call__(self, *_args: object, **_named: object) -> None:
        """Refuse by name."""
        raise make_error(self._name)
