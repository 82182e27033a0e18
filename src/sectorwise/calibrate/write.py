"""Turns constants that were measured, and what is known of such a device, into the text of a device file."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from sectorwise.device import list_devices, read_device_data
from sectorwise.errors import UnsupportedDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sectorwise.calibrate.driver import Gpu
    from sectorwise.calibrate.fit import Constants
    from sectorwise.measurements import MemoryTiming, PaceBehaviour

SOURCE: Final = "calibrate"
_BITS_IN_BYTE: Final = 8


def write_device(gpu: Gpu, constants: Constants) -> str:
    """A device file: the numbers of the device that the GPU's name means, and over them those that were measured.

    Raises:
        UnsupportedDeviceError: no device of this compute capability is known.
    """
    base, data = _find_base(gpu)
    title = f"sectorwise calibrate on {gpu.name}, driver {gpu.driver_version // 1000}.{gpu.driver_version % 1000 // 10}"
    numbers = data["numbers"]
    bandwidth = 2 * gpu.attributes["memory_clock_khz"] * gpu.attributes["memory_bus_bits"] / _BITS_IN_BYTE / 1e6
    for name, value in (
        ("sm_count", gpu.attributes["sm_count"]),
        ("boost_mhz", round(gpu.attributes["clock_khz"] / 1000)),
        ("l2_bytes", gpu.attributes["l2_bytes"]),
        ("l2_read_gbs", round(constants.l2_read_gbs)),
        ("memory_bandwidth_gbs", round(bandwidth, 1)),
    ):
        numbers[name] = {"value": value, "source": SOURCE}
    data |= {
        "name": gpu.name,
        "latencies": [
            {
                "source": SOURCE,
                "clock_mhz": constants.clock_mhz,
                "l1_cycles": round(constants.l1_cycles, 1),
                "l2_cycles": round(constants.l2_cycles, 1),
                "dram_cycles": round(constants.dram_cycles, 1),
            }
        ],
        "bandwidths": [
            {"operation": "copy", "gbs": round(constants.copy_gbs), "source": SOURCE},
            {"operation": "read", "gbs": round(constants.read_gbs), "source": SOURCE},
        ],
        "memory_timing": _write_timing(constants, data),
        "caches": _write_caches(constants),
        "pace": _write_pace(constants, _find_pace()),
        "sources": data["sources"] | {SOURCE: {"title": title, "basis": "measured"}},
        "notes": [*data.get("notes", ()), *_say_borrowed(base)],
    }
    return write_toml(data)


def _say_borrowed(base: str) -> Iterator[str]:
    """What is not measured here, and of which device it is."""
    yield f"what was not measured is that of {base}"
    lenders = [device.id for device in list_devices() if device.memory_timing and device.caches and device.pace]
    if lenders and base != lenders[0]:
        yield (
            f"but launch_ns, same_address_float_ns, atomic_sector_ns, write_wait_ns and what only a profiler sees of "
            f"caches are those of {lenders[0]}"
        )


def _write_timing(constants: Constants, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "source": SOURCE,
        "clock_mhz": constants.clock_mhz,
        "probabilities": list(constants.probabilities),
        "latency_cycles": [round(cycles) for cycles in constants.latency_cycles],
        "further_line_cycles": round(max(0.0, constants.further_line_cycles), 1),
        "queue_span_bytes": data.get("memory_timing", {}).get("queue_span_bytes", 256),
        "queue_service_ns": round(constants.queue_service_ns, 1),
        "write_wait_ns": _find_timing().write_wait_ns,
    }


def _write_caches(constants: Constants) -> dict[str, Any]:
    """The caches; what only a profiler sees is that of the device whose caches are known."""
    known = next(device.caches for device in list_devices() if device.caches is not None)
    caches = {each.name: getattr(known, each.name) for each in fields(known)} | {"source": SOURCE}
    if constants.sm_groups:
        caches["sm_groups"] = list(constants.sm_groups)
    if constants.l1_ways is not None:
        caches["l1_ways"] = constants.l1_ways
    return caches


def _write_pace(constants: Constants, base: PaceBehaviour) -> dict[str, Any]:
    """The pace; what only a profiler sees is that of the device whose pace is known."""
    return {
        "source": SOURCE,
        "launch_ns": base.launch_ns,
        "block_start_ns": round(constants.block_start_ns, 3),
        "block_turnaround_ns": round(constants.block_turnaround_ns),
        "store_line_cycles": round(constants.store_line_cycles, 2),
        "l2_store_lines_per_ns": round(constants.l2_store_lines_per_ns, 1),
        "lone_read_gbs": round(constants.lone_read_gbs),
        "same_address_ns": round(constants.same_address_ns, 3),
        "same_address_float_ns": base.same_address_float_ns,
        "atomic_sector_ns": base.atomic_sector_ns,
        "atomic_sectors_per_ns": round(constants.atomic_sectors_per_ns, 1),
        "l2_lone_per_ns": round(constants.l2_lone_per_ns),
    }


def _find_timing() -> MemoryTiming:
    return next(device.memory_timing for device in list_devices() if device.memory_timing is not None)


def _find_pace() -> PaceBehaviour:
    return next(device.pace for device in list_devices() if device.pace is not None)


def _find_base(gpu: Gpu) -> tuple[str, dict[str, Any]]:
    """The known device that has this name, else the first of its compute capability, and its data."""
    architecture = f"{gpu.attributes['major']}.{gpu.attributes['minor']}"
    alike = [device for device in list_devices() if device.architecture == architecture]
    if not alike:
        raise UnsupportedDeviceError(
            f"{gpu.name} has compute capability {architecture}, of which sectorwise knows no limits"
        )
    words = set(gpu.name.casefold().replace("-", " ").split())
    best = max(alike, key=lambda device: len(words & set(device.id.split("-"))))
    return best.id, read_device_data(best.id)


def write_toml(data: Mapping[str, Any]) -> str:
    """TOML of tables, arrays of tables and plain values, two levels deep: tables within tables are written inline."""
    plain = {key: value for key, value in data.items() if not _is_table(value) and not _is_array_of_tables(value)}
    parts = [[f"{key} = {_write_value(value)}" for key, value in plain.items()]]
    for key, value in data.items():
        if _is_table(value):
            parts.append([f"[{key}]", *(f"{name} = {_write_value(item)}" for name, item in value.items())])
        elif _is_array_of_tables(value):
            parts += [
                [f"[[{key}]]", *(f"{name} = {_write_value(item)}" for name, item in row.items())] for row in value
            ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _write_value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{', '.join(_write_value(item) for item in value)}]"
        case dict():
            return f"{{ {', '.join(f'{key} = {_write_value(item)}' for key, item in value.items())} }}"
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a device file")
