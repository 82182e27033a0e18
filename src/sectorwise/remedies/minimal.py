"""Turns conflicting accesses to an array that cannot be rewritten into a small kernel of the same, and its layouts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.errors import SectorwiseError
from sectorwise.launch.config import BufferArgument, Contents, LaunchConfig
from sectorwise.remedies.workshop import Change, Gain, Refusal, make_remedy, prove
from sectorwise.rules.requests import WAVEFRONTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.machine.execution import Site
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop

PROVEN_ON: Final = "a small kernel that makes the first request of each access to shared memory"

_LANES: Final = 32
_LINE_BYTES: Final = 128
_MOST_SITES: Final = 24
_MOST_BYTES: Final = 40_000
_PADS_BYTES: Final = (4, 8, 16, 32)
_TYPES: Final = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}
_STORES: Final = frozenset({Operation.STORE, Operation.ASYNC_COPY})
_KERNEL: Final = """\
// The accesses of {name} to shared memory, one request of each, in rows of {pitch} bytes.
//
// sectorwise: launch {launch}

__device__ int place(int row, int column) {{ return {place}; }}  // in bytes
{tables}
extern "C" __global__ void accesses(unsigned* seen) {{
    __shared__ __align__(128) unsigned char tile[{size}];
    const int lane = threadIdx.x;
    for (int word = lane; word < {words}; word += 32)
        *reinterpret_cast<unsigned*>(&tile[place(word / {row_words}, word % {row_words} * 4)]) = word;
    __syncwarp();
{accesses}
    __syncwarp();
    for (int word = lane; word < {words}; word += 32)
        seen[word] = *reinterpret_cast<unsigned*>(&tile[place(word / {row_words}, word % {row_words} * 4)]);
}}
"""


@dataclass(frozen=True, slots=True)
class _Access:
    """One request of an instruction: where its active lanes go, as rows and columns of bytes."""

    operation: Operation
    width_bytes: int
    matrices: int
    mask: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Sketch:
    """The accesses of a kernel to an array of so many rows of `pitch` bytes."""

    name: str
    pitch: int
    rows: int
    accesses: tuple[_Access, ...]

    @property
    def launch(self) -> LaunchConfig:
        words = max(self.rows * self.pitch // 4, _LANES * 4 * len(self.accesses)) * 2
        return LaunchConfig("accesses", (1, 1, 1), (32, 1, 1), 0, (BufferArgument("u32", words, Contents()),))


def find_minimal(workshop: Workshop, original: KernelModel, conflicts: Sequence[Finding]) -> tuple[Remedy, ...]:
    """The best padding and the best swizzle for conflicting accesses, proven on a kernel that makes the same ones.

    It makes the first request of every shared-memory instruction, to an array whose rows are as far apart as the lanes
    that meet in a bank; counts are of that kernel. Empty where no row is to be seen, or nothing helps.
    """
    sketch = _sketch(original, conflicts)
    if sketch is None:
        return ()
    apart = replace(workshop, time=None)
    text, lines = _write(sketch, "row * {pitch} + column", sketch.pitch)
    try:
        base = apart.run(text, sketch.launch)
    except SectorwiseError:
        return ()
    before = _count(base, lines)
    remedies = []
    for layouts in (_list_paddings(sketch), _list_swizzles(sketch)):
        best: tuple[int, Change] | None = None
        refused: list[str] = []
        for title, place, pitch in layouts:
            changed, _ = _write(sketch, place, pitch)
            code = f"{place.format(pitch=pitch)}  // in bytes, for row * {sketch.pitch} + column"
            change = Change(title, code, changed, sketch.launch)
            outcome = prove(apart, change, base)
            if isinstance(outcome, Refusal):
                refused.append(f"{title}: {outcome.because}")
                continue
            after = _count(outcome.model, lines)
            if after < before and (best is None or after < best[0]):
                best = after, change
        if best is not None:
            gain = Gain(WAVEFRONTS, before, best[0])
            remedy = make_remedy(apart, original, best[1], gain, refused=tuple(refused))
            remedies.append(replace(remedy, proven_on=PROVEN_ON))
    return tuple(remedies)


def _sketch(model: KernelModel, conflicts: Sequence[Finding]) -> _Sketch | None:
    """Accesses to shared memory with rows and columns; None where they are too many, or no pitch is to be seen."""
    meeting = {index for finding in conflicts for index in finding.instructions}
    sites = [site for site in model.execution.sites if _is_drawn(site)]
    pitch = _find_pitch([site for site in sites if site.instruction in meeting])
    if not sites or len(sites) > _MOST_SITES or pitch is None:
        return None
    start = min(address for site in sites for address in _list_active(site))
    accesses = tuple(_place(site, start, pitch) for site in sites)
    rows = 1 + max(row for access in accesses for row in access.rows)
    if rows * (pitch + max(_PADS_BYTES)) > _MOST_BYTES:
        return None
    return _Sketch(model.bound.launch.kernel, pitch, rows, accesses)


def _is_drawn(site: Site) -> bool:
    shared = site.access.space is Space.SHARED and site.first is not None and site.first.mask
    return bool(shared) and site.access.operation in {*_STORES, Operation.LOAD, Operation.MATRIX_LOAD}


def _list_active(site: Site) -> list[int]:
    first = site.first
    return [] if first is None else [first.addresses[lane] for lane in range(_LANES) if first.mask >> lane & 1]


def _find_pitch(sites: Sequence[Site]) -> int | None:
    """The greatest common divisor of the distances of addresses in one bank: the distance of rows."""
    addresses = sorted({address for site in sites for address in _list_active(site)})
    pitch = 0
    for low, high in combinations(addresses[:256], 2):
        if (high - low) % _LINE_BYTES == 0:
            pitch = gcd(pitch, high - low)
    return pitch or None


def _place(site: Site, start: int, pitch: int) -> _Access:
    first = site.first
    addresses, mask = ((start,) * _LANES, 0) if first is None else (first.addresses, first.mask)
    offsets = [addresses[lane] - start if mask >> lane & 1 else 0 for lane in range(_LANES)]
    return _Access(
        operation=site.access.operation,
        width_bytes=site.access.width_bytes,
        matrices=site.access.matrices,
        mask=mask,
        rows=tuple(offset // pitch for offset in offsets),
        columns=tuple(offset % pitch for offset in offsets),
    )


def _list_paddings(sketch: _Sketch) -> Iterator[tuple[str, str, int]]:
    """Titles, places as an expression of row and column, and pitches."""
    for pad in _PADS_BYTES:
        yield f"pad rows of {sketch.pitch} B by {pad} B", "row * {pitch} + column", sketch.pitch + pad


def _list_swizzles(sketch: _Sketch) -> Iterator[tuple[str, str, int]]:
    if sketch.pitch % _LINE_BYTES:
        return
    yield "exchange chunks of 16 B by the row", "row * {pitch} + (column ^ row % 8 * 16)", sketch.pitch
    yield "exchange words by the row", "row * {pitch} + (column ^ row % 32 * 4)", sketch.pitch


def _write(sketch: _Sketch, place: str, pitch: int) -> tuple[str, range]:
    """The kernel under a layout, and the lines on which the accesses stand."""
    from sectorwise.launch.formatting import format_launch

    tables: list[str] = []
    accesses = [line for number in range(len(sketch.accesses)) for line in _write_access(sketch, number, tables)]
    words = sketch.rows * sketch.pitch // 4
    text = _KERNEL.format(
        name=sketch.name,
        pitch=sketch.pitch,
        launch=format_launch(sketch.launch),
        place=place.format(pitch=pitch),
        tables="\n".join(tables),
        size=sketch.rows * pitch,
        words=words,
        row_words=sketch.pitch // 4,
        accesses="\n".join(accesses),
    )
    first = text[: text.index("    __syncwarp();")].count("\n") + 2
    return text, range(first, first + len(accesses))


def _write_access(sketch: _Sketch, number: int, tables: list[str]) -> Iterator[str]:
    access = sketch.accesses[number]
    row = _write_lanes(access.rows, access.mask, f"rows_{number}", tables)
    column = _write_lanes(access.columns, access.mask, f"columns_{number}", tables)
    guard = "" if access.mask == (1 << _LANES) - 1 else f"if (0x{access.mask:08x}u >> lane & 1) "
    at = f"&tile[place({row}, {column})]"
    slot = f"seen[{sketch.rows * sketch.pitch // 4 + number * _LANES * 4} + lane * 4"
    if access.operation is Operation.MATRIX_LOAD:
        yield "    {"
        yield f"        unsigned from = static_cast<unsigned>(__cvta_generic_to_shared({at})), part[4];"
        parts = ", ".join(f'"=r"(part[{part}])' for part in range(access.matrices))
        names = ", ".join(f"%{part}" for part in range(access.matrices))
        form = f"ldmatrix.sync.aligned.m8n8.x{access.matrices}.shared.b16 {{{names}}}, [%{access.matrices}];"
        yield f'        asm volatile("{form}" : {parts} : "r"(from) : "memory");'
        yield f"        for (int k = 0; k < {access.matrices}; ++k) {slot} + k] = part[k];"
        yield "    }"
        return
    kind = _TYPES[access.width_bytes]
    words = max(1, access.width_bytes // 4)
    target = f"*reinterpret_cast<{'volatile ' if words == 1 else ''}{kind}*>"
    if access.operation in _STORES:
        value = f"lane * 64u + {number}"
        made = value if words == 1 else f"make_{kind}({', '.join([value] * words)})"
        yield f"    {guard}{target}({at}) = {made};"
    else:
        yield f"    {guard}*reinterpret_cast<{'unsigned' if words == 1 else kind}*>(&{slot}]) = {target}({at});"
    yield "    __syncwarp();"


def _write_lanes(values: Sequence[int], mask: int, name: str, tables: list[str]) -> str:
    """The values of the active lanes as an expression of the lane, or as a table that is added to `tables`."""
    active = [(lane, values[lane]) for lane in range(_LANES) if mask >> lane & 1]
    for group in (1, 2, 4, 8, 16, 32):
        for inner in (True, False):
            parts = [(lane % group if inner else lane // group, value) for lane, value in active]
            index = f"lane % {group}" if inner else f"lane / {group}"
            expression = _fit(parts, "lane" if index == "lane / 1" else index)
            if expression is not None:
                return expression
    tables.append(f"__constant__ int {name}[32] = {{{', '.join(map(str, values))}}};")
    return f"{name}[lane]"


def _fit(parts: Sequence[tuple[int, int]], index: str) -> str | None:
    """`start + index * step` where that gives every value."""
    low = min(parts)
    high = max(parts)
    step = 0 if high[0] == low[0] else (high[1] - low[1]) // (high[0] - low[0])
    start = low[1] - step * low[0]
    if any(value != start + step * part for part, value in parts):
        return None
    if step == 0:
        return str(start)
    scaled = index if step == 1 else f"{index} * {step}"
    return f"{start} + {scaled}" if start else scaled


def _count(model: KernelModel, lines: range) -> int:
    """Wavefronts of the instructions on these lines."""
    total = 0
    for site in model.execution.sites:
        location = model.bound.kernel.instructions[site.instruction].location
        outer = None if location is None else (location.inlined_at or (location,))[-1]
        if outer is not None and outer.line in lines:
            total += site.wavefronts
    return total
