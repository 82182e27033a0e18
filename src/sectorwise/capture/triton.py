"""Turns launches of Triton's kernels, and questions to its driver, into records and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sectorwise.capture.replacement import Record, Replacement, make_error
from sectorwise.device import require_capability
from sectorwise.frontends.triton import describe_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sectorwise.device import DeviceSpec

_CLOCK_KHZ: Final = 1000


@dataclass(frozen=True)
class CapturingDriver:
    """Answers what can be told of a device without one; all else is an error with its name."""

    device: DeviceSpec

    def get_current_target(self) -> Any:  # noqa: ANN401 - Triton's own type
        """The target, as Triton describes one."""
        from triton.backends.compiler import GPUTarget

        major, minor = require_capability(self.device).compute_capability
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_current_device(self) -> int:
        """The first device."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        del device
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Major and minor."""
        del device
        return require_capability(self.device).compute_capability

    @property
    def utils(self) -> CapturingDriver:
        """Triton keeps further questions there."""
        return self

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """What Triton's driver tells: sizes, counts and clocks."""
        del device
        capability = require_capability(self.device)
        told = {"mem_clock_rate": self.device.memory_clock_mhz, "mem_bus_width": self.device.memory_bus_bits}
        known = {name: value * (_CLOCK_KHZ if "rate" in name else 1) for name, value in told.items() if value}
        return known | {
            "max_shared_mem": capability.shared_per_block_optin_bytes,
            "max_num_regs": capability.regs_per_sm,
            "multiprocessor_count": self.device.sm_count,
            "warpSize": capability.warp_size,
            "sm_clock_rate": self.device.boost_mhz * _CLOCK_KHZ,
        }

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is asked for
        """Refuse by name."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise make_error(f"triton.runtime.driver.active.{name}")


@dataclass(frozen=True)
class CapturedKernel:
    """What a launch gives back in the place of a compiled kernel: it can be launched again, with its constants."""

    function: Any
    named: Mapping[str, object]
    record: Record

    def __getitem__(self, grid: Any) -> Callable[..., None]:  # noqa: ANN401 - numbers, or a function
        """The compiled kernel for a grid: it takes what is no constant of the compiler's, in order."""
        given = [each.name for each in self.function.params if not each.is_constexpr]
        tuples = isinstance(grid, tuple)

        def launch(*args: object) -> None:
            constants = {name: value for name, value in self.named.items() if name not in given}
            values = dict(zip(given, args, strict=False))
            shape = grid if tuples or callable(grid) else (grid,)
            self.record(self.function, grid=shape, positional=(), named={**constants, **values})

        return launch

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is asked for
        """Refuse by name."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise make_error(f"{name} of a compiled Triton kernel")


def list_triton_replacements(record: Record, device: DeviceSpec, config: int | None) -> list[Replacement]:
    """The launch of a kernel, the choice of a configuration as `choose_config` makes it, benchmarks, and the driver."""
    import triton.runtime
    import triton.testing
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run = JITFunction.run
    taken: list[str] = []  # the configurations of the tuners that are running

    def launch(self: Any, *args: object, grid: Any, warmup: bool, **named: object) -> Any:  # noqa: ANN401 - Triton's types
        if warmup:
            return run(self, *args, grid=grid, warmup=True, **named)
        record(self, grid=grid, positional=args, named=named, case=taken[-1] if taken else None)
        positional = dict(zip((each.name for each in self.params), args, strict=False))
        return CapturedKernel(self, {**positional, **named}, record)

    def choose(self: Any, *args: object, **named: object) -> Any:  # noqa: ANN401 - Triton's types
        chosen, number = choose_config(self, args, named, config)
        self.best_config = chosen
        settings = named | chosen.all_kwargs()
        if chosen.pre_hook is not None:
            chosen.pre_hook({**dict(zip(self.arg_names, args, strict=False)), **settings})
        taken.append(describe_config(chosen, number))
        try:
            return self.fn.run(*args, **settings)
        finally:
            taken.pop()

    def measure(function: Any, *_args: object, **_named: object) -> float:  # noqa: ANN401 - any function
        function()
        return float("nan")

    tuners = [each for each in _list_subclasses(Autotuner) if "run" in vars(each)]
    return [
        Replacement("triton.JITFunction.run (kernel[grid](...))", JITFunction, "run", launch),
        Replacement(f"triton.autotune (configuration {config or 0}, if it is not pruned)", Autotuner, "run", choose),
        *(Replacement(f"{each.__module__}.{each.__name__}.run", each, "run", choose) for each in tuners),
        Replacement("", Autotuner, "__init_subclass__", classmethod(_make_adopter(Autotuner, choose))),
        Replacement("triton.testing.do_bench (runs once, measures nothing)", triton.testing, "do_bench", measure),
        Replacement("triton.runtime.driver.active", triton.runtime.driver, "_active", CapturingDriver(device)),
    ]


def choose_config(
    tuner: Any,  # noqa: ANN401 - Triton's types
    args: tuple[object, ...],
    named: dict[str, object],
    wanted: int | None,
) -> tuple[Any, int | None]:
    """Return a configuration of an autotuned kernel and its number: the wanted one, if the tuner would try it here.

    Else, and if none is wanted, the first that the kernel's own pruning leaves for these arguments. A configuration
    that pruning made anew has no number.
    """
    before = getattr(tuner, "nargs", None)
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        left = list(tuner.prune_configs(named)) if len(tuner.configs) > 1 else list(tuner.configs)
    finally:
        tuner.nargs = before
    numbers = {id(each): number for number, each in enumerate(tuner.configs)}
    chosen = next((each for each in left if numbers.get(id(each), -1) == wanted), left[0])
    return chosen, numbers.get(id(chosen))


def _list_subclasses(kind: Any) -> list[Any]:  # noqa: ANN401 - Triton's types
    return [found for each in kind.__subclasses__() for found in (each, *_list_subclasses(each))]


def _make_adopter(tuner: Any, choose: Callable[..., Any]) -> Callable[..., None]:  # noqa: ANN401 - Triton's types
    """What is called for each tuner that a package derives from Triton's meanwhile: it shall not measure either.

    Such tuners keep what they measured on disk, where numbers of launches that did not run must not get.
    """

    def adopt(cls: Any, **named: object) -> None:  # noqa: ANN401 - Triton's types
        super(tuner, cls).__init_subclass__(**named)
        own = vars(cls).get("run")
        if own is not None:

            def run(self: Any, *args: object, **given: object) -> Any:  # noqa: ANN401 - Triton's types
                return choose(self, *args, **given) if _is_captured() else own(self, *args, **given)

            cls.run = run

    return adopt


def _is_captured() -> bool:
    from triton.runtime import driver as drivers

    return isinstance(drivers._active, CapturingDriver)  # noqa: SLF001 - what `list_triton_replacements` puts there
