"""Turns a device into the tables that people memorise: access patterns, tilings, devices side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.advise.access import AccessCost, access
from sectorwise.advise.dtypes import find_dtype
from sectorwise.advise.tabulate import make_frame, write_digits, write_size, write_table
from sectorwise.device import list_devices, load_device, require_capability
from sectorwise.errors import ArgumentError
from sectorwise.layout.reader import suggest
from sectorwise.model.latency import describe_memory
from sectorwise.model.roofline import Level, draw_roofline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PATTERNS: Final = (
    ("lanes side by side", "i*4", 4, None),
    ("the same, shuffled within 128 B", "(i*13%32)*4", 4, None),
    ("all lanes at one address", "0*i", 4, None),
    ("one element off", "i*4+4", 4, None),
    ("every 2nd element", "i*8", 4, None),
    ("every 4th", "i*16", 4, None),
    ("every 8th: a sector each", "i*32", 4, None),
    ("every 16th", "i*64", 4, None),
    ("every 32nd: a line each", "i*128", 4, None),
    ("a field of a 12-byte record", "i*12", 4, None),
    ("a field of a 48-byte record", "i*48", 4, None),
    ("2-byte elements", "i*2", 2, None),
    ("2-byte, a row of 4,096 a lane", "i*8192", 2, None),
    ("8-byte elements", "i*8", 8, None),
    ("16-byte vectors", "i*16", 16, None),
    ("16-byte, every 2nd", "i*32", 16, None),
    ("half of the lanes", "i*4", 4, "i < 16"),
    ("every other lane", "i*4", 4, "i % 2"),
)
"""What is accessed, the byte offset of a lane, bytes a lane, lanes that access."""

SHARED_PATTERNS: Final = (
    ("a row", "i*4", 4, "load"),
    ("one word for all", "0*i", 4, "load"),
    ("every 2nd word", "i*8", 4, "load"),
    ("every 3rd", "i*12", 4, "load"),
    ("every 16th", "i*64", 4, "load"),
    ("column of tile[32][32]", "i*128", 4, "load"),
    ("column of tile[32][33]", "i*132", 4, "load"),
    ("column, XOR by the row", "i*128+(i^5)*4", 4, "load"),
    ("8-byte row", "i*8", 8, "load"),
    ("16-byte row", "i*16", 16, "load"),
    ("16-byte, pitch 128", "(i%8)*128+(i/8)*16", 16, "load"),
    ("16-byte, pitch 144", "(i%8)*144+(i/8)*16", 16, "load"),
    ("16-byte, Swizzle<3,4,3>", "Swizzle<3,4,3>((i%8)*128+(i/8)*16)", 16, "load"),
    ("ldmatrix, pitch 128", "(i%8)*128+(i/8)*16", 16, "matrix_load"),
    ("ldmatrix, Swizzle<3,4,3>", "Swizzle<3,4,3>((i%8)*128+(i/8)*16)", 16, "matrix_load"),
    ("stores to one word", "0*i", 4, "store"),
)
_SIDES: Final = (16, 32, 64, 96, 128, 192, 256, 512)
_DEPTH: Final = 64
_BUSY: Final = 0.95


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text under heads; `notes` below."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def to_records(self) -> list[dict[str, str]]:
        """A dictionary for each row, by the heads."""
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]

    def to_dataframe(self) -> Any:  # noqa: ANN401 - pandas is not installed where types are checked
        """A pandas DataFrame, a line for each row."""
        return make_frame(self.to_records())

    def __str__(self) -> str:
        """At most 80 columns."""
        notes = [f"  {note}" for note in self.notes]
        return "\n".join([self.title, "", *write_table(self.heads, self.rows), *([""] if notes else []), *notes])


def tabulate_access_patterns(device: str = "h200") -> Table:
    """Sectors and DRAM bytes of a warp's access to global memory, and wavefronts of those to shared memory."""
    spec = load_device(device)
    rows = [_write_global(name, access(where, width, mask=mask)) for name, where, width, mask in PATTERNS]
    rows.append(("shared memory", "", "", "", "", ""))
    rows += [
        _write_shared(name, access(where, width, space="shared", operation=operation))
        for name, where, width, operation in SHARED_PATTERNS
    ]
    return Table(
        f"A warp's access, on {spec.id}",
        ("", "sectors", "ideal", "lines", "DRAM", "wavefronts"),
        tuple(rows),
        ("sectors of 32 B, lines of 128 B; wavefronts are passes over the 32 banks",),
    )


def tabulate_tiling(device: str = "h200", dtype: str = "fp16") -> Table:
    """Square tiles of a matrix product: intensity, shared memory, accumulator, against the device's ridges."""
    spec, element = load_device(device), find_dtype(dtype)
    capability = require_capability(spec)
    roofline = draw_roofline(spec)
    ridges = {level: roofline.ridge(element.peak, level) for level in (Level.DRAM, Level.L2)}
    rows = []
    for side in _SIDES:
        size = element.bits / 8
        intensity = side / size
        slices = round(2 * side * _DEPTH * size)
        accumulator = side * side * 4
        rows.append(
            (
                f"{side} x {side}",
                write_digits(intensity),
                f"{100 * min(1.0, intensity / ridges[Level.L2]):.3g} %",
                write_size(slices),
                f"{capability.shared_per_block_optin_bytes // slices}",
                write_size(accumulator),
                "yes" if accumulator <= capability.regs_per_sm * 4 - 128 * 40 * 4 else "no",
            )
        )
    whole = ridges[Level.DRAM] * element.bits / 8
    return Table(
        f"Tiles of {element.name} products, K in slices of {_DEPTH}, on {spec.id}",
        ("tile", "FLOP/B", "of the L2 ridge", "a slice", "stages", "accumulator", "fits"),
        tuple(rows),
        (
            f"ridges: {ridges[Level.L2]:.4g} FLOP/B at the L2, {ridges[Level.DRAM]:.4g} at DRAM (T = {whole:.0f})",
            f"a block has {capability.shared_per_block_optin_bytes:,} B of shared memory",
            f"an SM has {capability.regs_per_sm * 4:,} B of registers",
        ),
    )


def tabulate_devices() -> Table:
    """NVIDIA devices side by side: SMs, memory, ridge, and the bytes that must be in flight."""
    rows = []
    for device in list_devices():
        capability = device.capability
        if capability is None:
            continue
        memory = describe_memory(device)
        roofline = draw_roofline(device)
        half = device.peaks.fp16_tflops
        ridge = f"{roofline.ridge('fp16', Level.DRAM):.3g}" if half is not None else "-"
        needed = memory.needed_bytes(_BUSY) / device.sm_count
        rows.append(
            (
                device.id,
                f"{device.sm_count}",
                f"{device.memory_bandwidth_gbs:,.0f}",
                f"{device.l2_bytes / 2**20:,.0f}",
                f"{capability.shared_per_sm_bytes // 1024}",
                f"{capability.shared_per_block_optin_bytes // 1024}",
                f"{capability.max_threads_per_sm}",
                ridge,
                write_size(needed),
            )
        )
    return Table(
        "Devices: GB/s by the datasheet, L2 in MiB, shared KiB an SM and a block",
        ("device", "SMs", "GB/s", "L2", "SM", "block", "threads", "ridge", "in flight"),
        tuple(rows),
        (
            "ridge: half-precision FLOP a byte of what reads reach; in flight: an SM, for",
            "95 % of that, with latencies measured on the device or its nearest relative",
        ),
    )


TABLES: Final[Mapping[str, Callable[[str], Table]]] = {
    "access-patterns": tabulate_access_patterns,
    "tiling": tabulate_tiling,
    "devices": lambda _: tabulate_devices(),
}


def make_table(name: str, device: str = "h200") -> Table:
    """The table of that name: access-patterns, tiling or devices; raises `ArgumentError` with the nearest."""
    if name not in TABLES:
        raise ArgumentError(f"there is no table '{name}'{suggest(name, TABLES)}")
    # That of devices has all of them; one that does not exist is refused all the same.
    return TABLES[name](load_device(device).id)


def _write_global(name: str, cost: AccessCost) -> tuple[str, ...]:
    return (name, str(cost.sectors), str(cost.sectors_ideal), str(cost.lines), f"{cost.dram_bytes:,} B", "-")


def _write_shared(name: str, cost: AccessCost) -> tuple[str, ...]:
    return (name, "-", str(cost.wavefronts_ideal), "-", "-", str(cost.wavefronts))
