"""Turns an index expression, a layout or 32 addresses into what one access of a warp costs: the pocket calculator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.expressions import evaluate
from sectorwise.advise.tabulate import make_dataframe, make_records
from sectorwise.counting.calculator import LANES, count_global, count_shared
from sectorwise.counting.patterns import count_distinct
from sectorwise.device import load_device
from sectorwise.errors import ArgumentError
from sectorwise.findings import Picture, Scene, show
from sectorwise.layout.algebra import Layout
from sectorwise.layout.interchange import from_tensor_layouts
from sectorwise.layout.notation import parse_layout
from sectorwise.layout.reader import open_reader, read_number
from sectorwise.layout.swizzle import Swizzle, SwizzledLayout
from sectorwise.model.latency import MEASURED_DEVICE
from sectorwise.rules.shapes import describe_shape, find_shape

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    Lanes = npt.NDArray[np.int64]

_LINE_BYTES: Final = 128
_PASS_BYTES: Final = 128
_SECTOR_BYTES: Final = 32
_MATRIX_LANES: Final = 8
_CPU_LINE_BYTES: Final = 64
_MOST_WARPS: Final = 4096
_LARGEST_UNIT: Final = 4096
SPACES: Final = ("global", "shared")
OPERATIONS: Final = ("load", "store", "atomic", "matrix_load", "matrix_store")


@dataclass(frozen=True, slots=True)
class AccessCost:
    """What one memory instruction costs `requests` warps; counts are summed over them.

    `useful_bytes` are distinct bytes that lanes ask for. Of global memory `sectors`, `lines` (L1 tags) and
    `dram_bytes` (what an H200's DRAM fetches, if nothing else uses the same bytes) count; of shared memory the
    wavefronts. `efficiency` is ideal over real. `picture` shows the first request.
    """

    text: str
    space: str
    operation: str
    width_bytes: int
    requests: int
    active_lanes: int
    useful_bytes: int
    sectors: int
    sectors_ideal: int
    lines: int
    dram_bytes: int
    wavefronts: int
    wavefronts_ideal: int
    wavefronts_hardware: int
    pattern: str
    picture: Picture = field(metadata={"document": False}, repr=False)

    @property
    def efficiency(self) -> float:
        """Ideal over real, of sectors or wavefronts; 1 where nothing is accessed."""
        real, ideal = (
            (self.sectors, self.sectors_ideal) if self.space == "global" else (self.wavefronts, self.wavefronts_ideal)
        )
        return ideal / real if real else 1.0

    def to_records(self) -> list[dict[str, object]]:
        """One record."""
        return make_records([self])

    def to_dataframe(self) -> Any:  # noqa: ANN401 - as `make_dataframe`
        """One line of a pandas DataFrame."""
        return make_dataframe([self])

    def _repr_html_(self) -> str:
        return str(show("write_advice", self))

    def __str__(self) -> str:
        """In words, several lines."""
        return "\n".join(describe_access(self))


@dataclass(frozen=True, slots=True)
class LineCost:
    """What `accesses` of a single CPU core cost, one after the other: cache lines of `line_bytes` each."""

    text: str
    width_bytes: int
    line_bytes: int
    accesses: int
    useful_bytes: int
    lines: int
    lines_ideal: int
    split_accesses: int
    step_bytes: int | None

    @property
    def efficiency(self) -> float:
        """Useful bytes over bytes of the lines."""
        return self.useful_bytes / (self.lines * self.line_bytes) if self.lines else 1.0

    def to_records(self) -> list[dict[str, object]]:
        """One record."""
        return make_records([self])

    def to_dataframe(self) -> Any:  # noqa: ANN401 - as `make_dataframe`
        """One line of a pandas DataFrame."""
        return make_dataframe([self])

    def __str__(self) -> str:
        """In words, several lines."""
        split = f"; {self.split_accesses} of them cross from line to line" if self.split_accesses else ""
        lines = f"  {self.lines} lines of {self.line_bytes} B, {self.lines_ideal} if packed"
        return (
            f"{self.accesses} accesses of {self.width_bytes} B by one core{split}\n"
            f"{lines}: {100 * self.efficiency:.4g} % of {self.lines * self.line_bytes:,} B are used"
        )


def access(
    where: str | Layout | SwizzledLayout | npt.ArrayLike,
    width: int = 4,
    *,
    space: str = "global",
    operation: str = "load",
    mask: str | int | npt.ArrayLike | None = None,
    unit: int = 1,
    warps: int = 1,
    block: int = 0,
) -> AccessCost:
    """What a global or shared access costs: `access("i*12")`, `access("(32,4):(4,128)", unit=4)`.

    `where` is an expression over `i` (the lane), `warp`, `thread` (32 warp + i) and `block`, a layout of the thread
    index (ours or one of tensor-layouts), or addresses [32] or [n, 32]; its value times `unit` is a byte offset from a
    place that 256 divides. `width` bytes a lane; `mask` a condition over the same names, bits of lanes, or booleans.
    Raises `ArgumentError` with the place in the text.

    >>> access("i*12").sectors
    12
    >>> access("i*128", space="shared").wavefronts
    32
    """
    if space not in SPACES:
        raise ArgumentError(f"space must be one of {', '.join(SPACES)}, got {space!r}")
    names = _name_lanes(warps, block)
    text, offsets = _find_offsets(where, names)
    offsets = offsets * _check_unit(unit)
    active = _find_mask(mask, names, offsets.shape)
    _require_no_negative(offsets, active)
    counts = (
        count_global(offsets, width, active) if space == "global" else count_shared(offsets, width, operation, active)
    )
    if space == "global" and operation not in {"load", "store", "atomic"}:
        raise ArgumentError(f"{operation} is an operation on shared memory; say space='shared'")
    fetch_bytes = load_device(MEASURED_DEVICE).dram_fetch_bytes or _SECTOR_BYTES
    in_global = space == "global"
    first = int(np.flatnonzero(active.any(axis=1))[0]) if active.any() else 0
    shape = find_shape(offsets[first].tolist(), _pack(active[first]), width)
    return AccessCost(
        text=text,
        space=space,
        operation=operation,
        width_bytes=width,
        requests=len(offsets),
        active_lanes=int(active.sum()),
        useful_bytes=sum(
            find_shape(row.tolist(), _pack(lanes), width).useful_bytes
            for row, lanes in zip(offsets, active, strict=True)
        ),
        sectors=int(counts.sectors.sum()),
        sectors_ideal=int(counts.sectors_ideal.sum()),
        lines=int(counts.tag_requests.sum()),
        dram_bytes=int(count_distinct(offsets // fetch_bytes, active).sum()) * fetch_bytes if in_global else 0,
        wavefronts=int(counts.wavefronts.sum()),
        wavefronts_ideal=int(counts.wavefronts_ideal.sum()),
        wavefronts_hardware=int(counts.wavefronts_hardware.sum()),
        pattern=describe_shape(shape) if shape.lanes else "no lane accesses",
        picture=draw_lanes(offsets[first], active[first], width, in_global=in_global, matrix="matrix" in operation),
    )


def access_cpu(
    where: str | Layout | SwizzledLayout | npt.ArrayLike, width: int = 4, *, unit: int = 1, count: int = 32
) -> LineCost:
    """What `count` accesses of one CPU core cost, `i` counting them: the lines of 64 bytes that they touch.

    >>> access_cpu("i*48").lines
    24
    """
    if count < 1 or count > _MOST_WARPS * LANES:
        raise ArgumentError(f"count is {count}; it must be 1 to {_MOST_WARPS * LANES:,}")
    if width < 1:
        raise ArgumentError(f"width is {width}; it must be at least 1 byte")
    index = np.arange(count, dtype=np.int64)
    text, offsets = _find_offsets(where, {"i": index})
    offsets = offsets.reshape(-1) * _check_unit(unit)
    _require_no_negative(offsets, np.ones(offsets.shape, dtype=np.bool_))
    first, last = offsets // _CPU_LINE_BYTES, (offsets + width - 1) // _CPU_LINE_BYTES
    lines = {line for one, other in zip(first.tolist(), last.tolist(), strict=True) for line in range(one, other + 1)}
    useful = np.unique(offsets[:, None] + np.arange(width)).size
    steps = set(np.diff(offsets).tolist())
    return LineCost(
        text=text,
        width_bytes=width,
        line_bytes=_CPU_LINE_BYTES,
        accesses=len(offsets),
        useful_bytes=int(useful),
        lines=len(lines),
        lines_ideal=-(-int(useful) // _CPU_LINE_BYTES),
        split_accesses=int((first != last).sum()),
        step_bytes=steps.pop() if len(steps) == 1 else None,
    )


def draw_lanes(offsets: Lanes, active: npt.NDArray[np.bool_], width: int, *, in_global: bool, matrix: bool) -> Picture:
    """The picture of one request."""
    base = int(offsets[active].min()) // _LINE_BYTES * _LINE_BYTES if active.any() else 0
    lanes = tuple(
        int(offset) - base if on else None for offset, on in zip(offsets.tolist(), active.tolist(), strict=True)
    )
    together = _MATRIX_LANES if matrix else min(LANES, _PASS_BYTES // max(width, 4))
    return Picture(Scene.SECTORS if in_global else Scene.BANKS, width, lanes, LANES if in_global else together, 1)


def describe_access(cost: AccessCost) -> list[str]:
    """Lines of text: what is accessed, how the lanes lie, and what that costs a request."""
    lanes = f"{cost.active_lanes / cost.requests:.4g} lanes" if cost.active_lanes != 32 * cost.requests else "32 lanes"
    head = f"{cost.space} {cost.operation.replace('_', ' ')} of {cost.width_bytes} B by {lanes}: {cost.pattern}"
    many = f", summed over {cost.requests:,} requests" if cost.requests > 1 else ""
    if cost.space == "shared":
        conflict = cost.wavefronts - cost.wavefronts_ideal
        lines = [f"  wavefronts  {cost.wavefronts:,} ({cost.wavefronts_ideal:,} without conflicts){many}"]
        if cost.wavefronts_hardware != cost.wavefronts:
            lines.append(f"              {cost.wavefronts_hardware:,} as the L1 pipe counts them")
        lines.append(f"  conflicts   {f'{conflict:,} of those wavefronts' if conflict else 'none'}")
    else:
        lines = [
            f"  sectors     {cost.sectors:,} of 32 B ({cost.sectors_ideal:,} if packed){many}",
            f"  lines       {cost.lines:,} of 128 B",
            f"  DRAM        {cost.dram_bytes:,} B for {cost.useful_bytes:,} useful bytes",
        ]
    return [head, *lines, f"  efficiency  {100 * cost.efficiency:.4g} %"]


def _check_unit(unit: int) -> int:
    if not 1 <= unit <= _LARGEST_UNIT:
        raise ArgumentError(f"unit is {unit}; it must be 1 to {_LARGEST_UNIT:,} bytes")
    return unit


def _name_lanes(warps: int, block: int) -> dict[str, Lanes]:
    if not 1 <= warps <= _MOST_WARPS:
        raise ArgumentError(f"warps is {warps}; it must be 1 to {_MOST_WARPS:,}")
    lane = np.arange(LANES, dtype=np.int64)[None, :]
    warp = np.arange(warps, dtype=np.int64)[:, None]
    return {"i": lane, "lane": lane, "warp": warp, "thread": warp * LANES + lane, "block": np.full((1, 1), block)}


def _find_offsets(where: str | Layout | SwizzledLayout | npt.ArrayLike, names: dict[str, Lanes]) -> tuple[str, Lanes]:
    if isinstance(where, str):
        if not _reads_as_layout(where):
            return where, evaluate(where, names)
        return where, _apply_layout(parse_layout(where), names)
    if isinstance(where, Layout | SwizzledLayout):
        return str(where), _apply_layout(where, names)
    if type(where).__module__.partition(".")[0] == "tensor_layouts":
        layout = from_tensor_layouts(where)
        if isinstance(layout, Swizzle):
            raise ArgumentError(f"{layout} is no layout by itself: compose it with one")
        return str(layout), _apply_layout(layout, names)
    given = np.asarray(where)
    if given.dtype.kind not in "iu":
        raise ArgumentError(f"addresses must be integers, got {given.dtype}")
    return "addresses", np.atleast_2d(given.astype(np.int64))


def _apply_layout(layout: Layout | SwizzledLayout, names: dict[str, Lanes]) -> Lanes:
    threads = names.get("thread", names["i"])
    if layout.size < threads.size:
        raise ArgumentError(
            f"{layout} has {layout.size} coordinates, fewer than the {threads.size} threads that access"
        )
    return layout.offsets(threads)


def _reads_as_layout(text: str) -> bool:
    """Whether a text is a layout rather than an expression: it has a colon without a question mark, or names none."""
    tokens = open_reader(text, "expression").tokens
    symbols = [token.text for token in tokens if token.kind == "symbol"]
    composed = any(token.kind == "name" and token.text == "o" for token in tokens)
    return composed or (":" in symbols and "?" not in symbols and "[" not in symbols)


def _find_mask(
    mask: str | int | npt.ArrayLike | None, names: dict[str, Lanes], shape: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    if mask is None:
        return np.ones(shape, dtype=np.bool_)
    if isinstance(mask, str):
        tokens = open_reader(mask, "mask").tokens
        if len(tokens) > 2:
            return np.broadcast_to(evaluate(mask, names, "mask") != 0, shape).copy()
        mask = read_number(open_reader(mask, "mask"), "a condition such as 'i < 24', or bits such as 0xffff")
    if isinstance(mask, int):
        if mask >> LANES:
            raise ArgumentError(f"mask {mask:#x} has bits beyond lane {LANES - 1}")
        return np.broadcast_to((mask >> np.arange(LANES)) & 1 != 0, shape).copy()
    return np.broadcast_to(np.asarray(mask).astype(np.bool_), shape).copy()


def _require_no_negative(offsets: Lanes, active: npt.NDArray[np.bool_]) -> None:
    faults = np.argwhere(active & (offsets < 0))
    if len(faults):
        place = tuple(int(index) for index in faults[0])
        raise ArgumentError(f"lane {place[-1]} accesses byte {int(offsets[place])}, before the beginning")


def _pack(lanes: npt.NDArray[np.bool_]) -> int:
    return sum(1 << lane for lane in np.flatnonzero(lanes).tolist())
