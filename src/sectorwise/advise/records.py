"""Turns a record, and who touches which of its fields, into the layout that costs least: structs, arrays or blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.plan import Plan, estimate
from sectorwise.advise.ranking import Ranking, compare_costs, rank
from sectorwise.advise.steps import SECTOR_BYTES, WARP_LANES, Step, load, store, work
from sectorwise.counting.patterns import count_distinct
from sectorwise.device import load_device
from sectorwise.errors import ArgumentError
from sectorwise.layout.reader import open_reader, read_number, suggest
from sectorwise.model.latency import MEASURED_DEVICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.advise.plan import Cost
    from sectorwise.tokens import Cursor

    Lanes = npt.NDArray[np.int64]

_TYPES: Final = {
    "f8": 8, "i8": 8, "u8": 8, "double": 8, "long": 8, "f4": 4, "i4": 4, "u4": 4, "float": 4, "int": 4,
    "f2": 2, "i2": 2, "u2": 2, "half": 2, "short": 2, "i1": 1, "u1": 1, "char": 1, "bool": 1,
}  # fmt: skip
BLOCKS: Final = (4, 8, 16, 32, 64, 128)
"""Records a block of the array of structs of arrays."""

ACCESSES: Final = ("stream", "random")
_SAMPLE_WARPS: Final = 256
_THREADS: Final = 256
_PAGE_BYTES: Final = 1 << 21
_MOST_FIELDS: Final = 64
_RESULT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: its size, and where it lies in a C struct."""

    name: str
    size_bytes: int
    offset: int


@dataclass(frozen=True, slots=True)
class Record:
    """Fields laid out as C does: each at a multiple of its size, the whole padded to that of the largest."""

    fields: tuple[Field, ...]
    size_bytes: int

    def find(self, name: str) -> Field:
        """The field of that name; raises `ArgumentError` with the nearest."""
        for each in self.fields:
            if each.name == name:
                return each
        raise ArgumentError(f"the record has no field '{name}'{suggest(name, [each.name for each in self.fields])}")


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """What one layout costs all kernels together.

    `sectors_per_warp` are those that a warp's loads of one record a lane touch, `distinct_sectors` without those that
    an earlier load of it has fetched. `streams` are places read in turn, `pages` of 2 MiB what one record touches.
    """

    name: str
    cost: Cost
    sectors_per_warp: float
    distinct_sectors: float
    dram_bytes_per_record: float
    streams: int
    pages: int
    block: int | None
    kernels: tuple[Cost, ...]


def parse_record(text: str) -> Record:
    """The record of `x:f4,y:f4,id:i8`; a type is f, i or u and its bytes, or a name of C; `pos:f4[3]` is three fields.

    Raises `ArgumentError` with a caret.

    >>> parse_record("a:f4,b:f8").size_bytes
    16
    """
    reader = open_reader(text, "record")
    sizes: list[tuple[str, int]] = []
    while True:
        first = reader.token
        if first.kind != "name":
            raise reader.error(f"expected the name of a field, such as x:f4, got {first}")
        reader.take()
        reader.expect(":", f"':' and the type of {first.text}")
        size, count = _read_type(reader)
        names = [first.text] if count is None else [f"{first.text}{number}" for number in range(count)]
        if any(name == known for name in names for known, _ in sizes):
            raise reader.error(f"the field {first} is there twice", first)
        sizes += [(name, size) for name in names]
        if not reader.accept(","):
            break
    reader.expect_end()
    if len(sizes) > _MOST_FIELDS:
        raise ArgumentError(f"the record has {len(sizes)} fields, more than {_MOST_FIELDS}")
    fields, offset = [], 0
    for name, size in sizes:
        offset = -(-offset // size) * size
        fields.append(Field(name, size, offset))
        offset += size
    align = max(size for _, size in sizes)
    return Record(tuple(fields), -(-offset // align) * align)


def advise_records(
    record: str | Record,
    touch: str | Sequence[str],
    *,
    elements: int = 1 << 22,
    pattern: str = "stream",
    device: str = "h200",
    result_bytes: int = _RESULT_BYTES,
) -> Ranking[RecordLayout]:
    """Layouts of an array of records for kernels that touch these fields, the cheapest for all together first.

    Each of `touch` is one kernel, fields with commas between (`*`: all); each thread reads those of one record, of
    `elements`, one after the other or at random places, and stores `result_bytes`. Raises `ArgumentError`.

    >>> particle = "x:f4,y:f4,z:f4,vx:f4,vy:f4,vz:f4,m:f4,q:f4,r:f4,s:f4,t:f4,u:f4"
    >>> advise_records(particle, "x").find("array of structs").sectors_per_warp
    32.0
    """
    shape = parse_record(record) if isinstance(record, str) else record
    if pattern not in ACCESSES:
        raise ArgumentError(f"access must be stream or random, got {pattern!r}")
    if not WARP_LANES <= elements <= 1 << 36:
        raise ArgumentError(f"elements is {elements:,}; it must be 32 to 64G")
    kernels = [_find_fields(shape, text) for text in ([touch] if isinstance(touch, str) else touch)]
    layouts: list[tuple[str, int | None]] = [("array of structs", None), ("struct of arrays", elements)]
    layouts += [(f"blocks of {block}", block) for block in BLOCKS if block < elements]
    judged = [_judge(name, block, shape, kernels, (elements, pattern, result_bytes), device) for name, block in layouts]
    return rank(
        f"{elements:,} records of {shape.size_bytes} B, {_name_kernels(kernels)}, {pattern}, on {device}",
        judged,
        reason=_explain,
        notes=_conclude(judged),
    )


def _read_type(reader: Cursor) -> tuple[int, int | None]:
    token = reader.token
    if token.kind != "name" or token.text not in _TYPES:
        near = suggest(token.text, _TYPES) if token.kind == "name" else ""
        raise reader.error(f"expected a type, such as f4 or i8, got {token}{near}")
    reader.take()
    if not reader.accept("["):
        return _TYPES[token.text], None
    count_token = reader.token
    count = read_number(reader, "the number of elements")
    if not 1 <= count <= _MOST_FIELDS:
        raise reader.error(f"expected 1 to {_MOST_FIELDS} elements, got {count}", count_token)
    reader.expect("]")
    return _TYPES[token.text], count


def _find_fields(record: Record, text: str) -> tuple[Field, ...]:
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise ArgumentError(f"touch: {text!r} names no field, or leaves one out; write x,y, or * for all")
    if names == ["*"]:
        return record.fields
    return tuple(dict.fromkeys(record.find(name) for name in names))


def _name_kernels(kernels: Sequence[tuple[Field, ...]]) -> str:
    parts = [
        f"{len(fields)} fields" if len(fields) > 3 else ",".join(each.name for each in fields) for fields in kernels
    ]
    return f"touching {' | '.join(parts)}"


def _place(record: Record, field: Field, block: int | None, elements: int, index: Lanes) -> Lanes:
    """Byte addresses of a field of records: of structs (None), or of blocks of so many records, fields contiguous."""
    if block is None:
        return index * record.size_bytes + field.offset
    if block >= elements:
        # Arrays of their own, apart from each other by whole pages.
        number = record.fields.index(field)
        before = sum(-(-each.size_bytes * elements // _PAGE_BYTES) * _PAGE_BYTES for each in record.fields[:number])
        return before + index * field.size_bytes
    packed = sorted(record.fields, key=lambda each: -each.size_bytes)
    before = sum(each.size_bytes for each in packed[: packed.index(field)])
    total = sum(each.size_bytes for each in packed)
    return index // block * (total * block) + before * block + index % block * field.size_bytes


def _judge(
    name: str,
    block: int | None,
    record: Record,
    kernels: Sequence[tuple[Field, ...]],
    launch: tuple[int, str, int],
    device: str,
) -> RecordLayout:
    elements, pattern, result_bytes = launch
    costs, touched, distinct, dram = [], 0.0, 0.0, 0.0
    for fields in kernels:
        cost, counts = _judge_kernel(name, block, record, fields, launch, device)
        costs.append(cost)
        touched, distinct, dram = touched + counts[0], distinct + counts[1], dram + counts[2]
    every = tuple(dict.fromkeys(each for fields in kernels for each in fields))
    middle = np.asarray([elements // 2], dtype=np.int64)
    places = [int(_place(record, each, block, elements, middle)[0]) for each in every]
    del pattern, result_bytes
    return RecordLayout(
        name=name,
        cost=_add_up(name, costs),
        sectors_per_warp=touched,
        distinct_sectors=distinct,
        dram_bytes_per_record=dram,
        streams=len(every) if block == elements else 1,
        pages=len({place // _PAGE_BYTES for place in places}),
        block=block if block != elements else None,
        kernels=tuple(costs),
    )


def _judge_kernel(
    name: str,
    block: int | None,
    record: Record,
    fields: Sequence[Field],
    launch: tuple[int, str, int],
    device: str,
) -> tuple[Cost, tuple[float, float, float]]:
    elements, pattern, result_bytes = launch
    index = _choose_records(elements, pattern)
    addresses = {each: _place(record, each, block, elements, index) for each in fields}
    together = np.concatenate([addresses[each] for each in fields], axis=1)
    active = np.ones(together.shape, dtype=np.bool_)
    distinct = float(count_distinct(together // SECTOR_BYTES, active).mean())
    fetch_bytes = load_device(MEASURED_DEVICE).dram_fetch_bytes or SECTOR_BYTES
    if pattern == "stream":
        # Neighbouring warps use what is left of a block that DRAM fetches.
        dram = np.unique(together // fetch_bytes).size * fetch_bytes / index.size
    else:
        dram = float(count_distinct(together // fetch_bytes, active).mean()) * fetch_bytes / WARP_LANES
    loads, touched = [], 0.0
    seen = 0.0
    for number, each in enumerate(fields):
        step = load(each.name, addresses[each], each.size_bytes)
        touched += step.sectors
        before = np.concatenate([addresses[other] for other in fields[: number + 1]], axis=1)
        reached = float(count_distinct(before // SECTOR_BYTES, np.ones(before.shape, dtype=np.bool_)).mean())
        share = (reached - seen) / step.sectors
        seen = reached
        loads.append(load(each.name, addresses[each], each.size_bytes, dram_share=min(1.0, share)))
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    results = [store("result", lane * result_bytes, result_bytes)] if result_bytes else []
    steps: tuple[Step, ...] = (work("index", 8), *loads, work("use", len(fields), pipe="fp32", waits=True), *results)
    plan = Plan(
        name,
        -(-elements // _THREADS),
        _THREADS,
        loop=(),
        once=steps,
        registers=min(255, 16 + 2 * len(fields)),
        dram_read_bytes=dram * elements,
        lone_bytes=dram * elements if pattern == "random" else 0.0,
        dram_write_bytes=float(result_bytes * elements),
    )
    return estimate(plan, device), (touched, distinct, dram)


def _choose_records(elements: int, pattern: str) -> Lanes:
    warps = min(_SAMPLE_WARPS, elements // WARP_LANES)
    if pattern == "stream":
        return np.arange(warps * WARP_LANES, dtype=np.int64).reshape(warps, WARP_LANES)
    return np.random.default_rng(0).integers(0, elements, (warps, WARP_LANES))


def _add_up(name: str, costs: Sequence[Cost]) -> Cost:
    from dataclasses import replace

    first = max(costs, key=lambda cost: cost.time_ns)
    requests, sectors = sum(cost.requests for cost in costs), sum(cost.sectors for cost in costs)
    return replace(
        first,
        name=name,
        time_ns=sum(cost.time_ns for cost in costs),
        requests=requests,
        sectors=sectors,
        sectors_per_request=sectors / requests,
        efficiency=sum(cost.efficiency * cost.sectors for cost in costs) / sectors,
        instructions=sum(cost.instructions for cost in costs),
        dram_bytes=sum(cost.dram_bytes for cost in costs),
    )


def _explain(winner: RecordLayout, loser: RecordLayout) -> str:
    if loser.dram_bytes_per_record > 1.02 * winner.dram_bytes_per_record:
        more, fewer = loser.dram_bytes_per_record, winner.dram_bytes_per_record
        return f"DRAM fetches {more:.4g} B a record, of the winner's {fewer:.4g}"
    if loser.distinct_sectors > 1.02 * winner.distinct_sectors:
        return f"a warp touches {loser.distinct_sectors:.4g} sectors, the winner's {winner.distinct_sectors:.4g}"
    return compare_costs(winner.cost, loser.cost)


def _conclude(judged: Sequence[RecordLayout]) -> tuple[str, ...]:
    blocks = [each for each in judged if each.name.startswith("blocks")]
    notes = []
    if blocks:
        sectors = min(each.distinct_sectors for each in judged)
        dram = min(each.dram_bytes_per_record for each in judged)
        enough = next((each.block for each in blocks if each.distinct_sectors <= 1.01 * sectors), None)
        for_dram = next((each.block for each in blocks if each.dram_bytes_per_record <= 1.01 * dram), None)
        if enough is not None:
            notes.append(f"an inner block of {enough} records is enough for sectors")
        if for_dram is not None:
            notes.append(f"an inner block of {for_dram} records is enough for DRAM, which fetches 64 B")
    structs, arrays = judged[0], judged[1]
    notes.append(
        f"structs are {structs.streams} stream, arrays {arrays.streams}; a record touches {structs.pages} page (2 MiB) "
        f"as a struct, {arrays.pages} in arrays"
    )
    return tuple(notes)
