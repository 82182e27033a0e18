"""Turns launches of Triton's kernels, and questions to its driver, into records and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sectorwise.capture.replacement import Record, Replacement, make_error
from sectorwise.device import require_capability

if TYPE_CHECKING:
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
        return {
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


def list_triton_replacements(record: Record, device: DeviceSpec, config: int) -> list[Replacement]:
    """The launch of a kernel, the choice of a configuration (number `config`), benchmarks, and the driver."""
    import triton.runtime
    import triton.testing
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def launch(self: Any, *args: object, grid: Any, warmup: bool, **named: object) -> Any:  # noqa: ANN401 - Triton's types
        if warmup:
            return run(self, *args, grid=grid, warmup=True, **named)
        return record(self, grid=grid, positional=args, named=named)

    def choose(self: Any, *args: object, **named: object) -> Any:  # noqa: ANN401 - Triton's types
        settings = self.configs[min(config, len(self.configs) - 1)].all_kwargs()
        return self.fn.run(*args, **(named | settings))

    def measure(function: Any, *_args: object, **_named: object) -> float:  # noqa: ANN401 - any function
        function()
        return float("nan")

    return [
        Replacement("triton.JITFunction.run (kernel[grid](...))", JITFunction, "run", launch),
        Replacement(f"triton.autotune (configuration {config})", Autotuner, "run", choose),
        Replacement("triton.testing.do_bench (runs once, measures nothing)", triton.testing, "do_bench", measure),
        Replacement("triton.runtime.driver.active", triton.runtime.driver, "_active", CapturingDriver(device)),
    ]
