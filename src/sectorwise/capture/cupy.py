"""Turns CuPy, as a script imports it, into a module whose kernels are recorded and whose arrays are NumPy's."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from sectorwise.capture.arrays import HostArray, Nothing, do_nothing, to_host_array
from sectorwise.capture.replacement import Record, Replacement, make_error

_MAKERS = (
    *("arange", "array", "asarray", "ascontiguousarray", "empty", "empty_like", "eye", "full", "full_like"),
    *("linspace", "ones", "ones_like", "zeros", "zeros_like"),
)
_TYPES = (
    *("bool_", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "newaxis", "pi"),
    *("uint8", "uint16", "uint32", "uint64", "dtype", "inf", "nan"),
)


class _StandIn(ModuleType):
    """The module `cupy` of a script: what is not replaced is an error with its name."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is asked for
        if name.startswith("__"):
            raise AttributeError(name)
        raise make_error(f"{self.__name__}.{name}")


def list_cupy_replacements(record: Record) -> list[Replacement]:
    """The module itself, in Python's table of modules."""
    import cupy

    record = _bring_back(cupy, record)
    stand_in = _StandIn("cupy")
    contents: dict[str, object] = {name: getattr(np, name) for name in _TYPES}
    contents |= {name: _make_maker(name) for name in _MAKERS}
    contents |= {
        "ndarray": HostArray,
        "asnumpy": np.array,
        "RawKernel": _make_raw_kernel(cupy, record),
        "ElementwiseKernel": _make_elementwise_kernel(cupy, record),
        "random": _make_random(),
        "cuda": SimpleNamespace(
            Stream=Nothing,
            Event=Nothing,
            Device=Nothing,
            get_current_stream=Nothing,
            is_available=lambda: True,
            runtime=SimpleNamespace(deviceSynchronize=do_nothing, getDeviceCount=lambda: 1),
        ),
        "__version__": cupy.__version__,
        "__path__": [],
    }
    vars(stand_in).update(contents)
    known = ", ".join(name for name in contents if not name.startswith("__") and name not in _TYPES)
    return [Replacement(f"cupy ({known})", _Modules, "cupy", stand_in)]


def _bring_back(cupy: ModuleType, record: Record) -> Record:
    """Record with CuPy itself in the table of modules: its own generator writes the source of a kernel."""

    def record_with_cupy(kernel: object, **launch: object) -> None:
        stand_in = sys.modules["cupy"]
        sys.modules["cupy"] = cupy
        try:
            record(kernel, **launch)
        finally:
            sys.modules["cupy"] = stand_in

    return record_with_cupy


class _ModulesTable(type):
    """Python's table of modules, as attributes."""

    def __getattr__(cls, name: str) -> ModuleType:
        return sys.modules[name]

    def __setattr__(cls, name: str, value: ModuleType) -> None:
        sys.modules[name] = value


class _Modules(metaclass=_ModulesTable):
    """`_Modules.cupy` is `sys.modules["cupy"]`."""


def _make_maker(name: str) -> Any:  # noqa: ANN401 - a function of NumPy's
    make = getattr(np, name)
    return lambda *args, **named: to_host_array(make(*args, **named))


def _make_random() -> SimpleNamespace:
    generator = np.random.default_rng(0)

    def rand(*shape: int) -> HostArray:
        return to_host_array(generator.random(shape))

    def random(shape: Any = None, dtype: Any = np.float64) -> HostArray:  # noqa: ANN401 - as NumPy takes
        return to_host_array(generator.random(shape).astype(dtype))

    def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> HostArray:  # noqa: ANN401
        return to_host_array(generator.integers(low, high, size, dtype))

    return SimpleNamespace(rand=rand, random=random, random_sample=random, randint=randint, seed=do_nothing)


def _make_raw_kernel(cupy: Any, record: Record) -> type:  # noqa: ANN401 - the module
    class RawKernel:
        """A kernel that is recorded when it is called."""

        def __init__(self, *args: object, **named: object) -> None:
            self.kernel = cupy.RawKernel(*args, **named)

        def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: object = None) -> None:  # noqa: ANN401
            del stream
            record(self.kernel, grid=grid, block=block, positional=args, dynamic_shared_bytes=shared_mem)

    return RawKernel


def _make_elementwise_kernel(cupy: Any, record: Record) -> type:  # noqa: ANN401 - the module
    class ElementwiseKernel:
        """A kernel that is recorded when it is called; outputs that are not given are made, as CuPy does."""

        def __init__(self, *args: object, **named: object) -> None:
            self.kernel = cupy.ElementwiseKernel(*args, **named)

        def __call__(self, *args: Any, **_named: object) -> Any:  # noqa: ANN401 - arrays
            inputs = args[: self.kernel.nin]
            outputs = list(args[self.kernel.nin :])
            shape = np.broadcast_shapes(*(np.shape(value) for value in inputs))
            if len(outputs) < self.kernel.nout:
                types = tuple(np.asarray(value).dtype for value in inputs)
                _, made, _ = self.kernel._decide_params_type(types, ())  # noqa: SLF001
                outputs = [np.zeros(shape, dtype).view(HostArray) for dtype in made]
            record(self.kernel, grid=1, positional=(*inputs, *outputs))
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

    return ElementwiseKernel
