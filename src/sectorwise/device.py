"""Turns the name of a GPU into what is known of it: counts, sizes, rates and limits, each with its source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from sectorwise.errors import ArgumentError, UnknownDeviceError, UnsupportedDeviceError
from sectorwise.measurements import Bandwidth, CacheBehaviour, Latency, MemoryTiming, PaceBehaviour
from sectorwise.provenance import Alternative, Basis, Provenance, Source

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Capability:
    """What every device of one NVIDIA compute capability shares: the limits of an SM and of a block.

    `reg_granularity_per_warp` is the unit in which a warp gets registers; `warp_granularity` the unit to which a
    block's warps are rounded up in the test whether one block can start at all. `shared_reserved_per_block_bytes` is
    what the driver takes of each block's shared memory; `carveouts_bytes` are the sizes that shared memory can be
    configured to, ascending, and L1 has what it leaves of `unified_l1_shared_bytes`. `barriers_per_sm` is the pool
    that resident blocks share, None where it is not a limit. `carveout_ample_bytes` is the largest configuration of
    shared memory that the driver picks for more blocks than can be resident, `taken_branch_cycles` what a taken branch
    costs beyond its stated stall; None where that was not measured. The `*_lanes` are how many lanes an SM's pipes
    serve a cycle: float, double, integer and comparison, special functions and conversions, memory.
    """

    compute_capability: tuple[int, int]
    warp_size: int
    max_threads_per_block: int
    max_threads_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    sub_partitions: int
    regs_per_sm: int
    regs_per_block: int
    max_regs_per_thread: int
    reg_granularity_per_warp: int
    warp_granularity: int
    shared_per_sm_bytes: int
    shared_per_block_default_bytes: int
    shared_per_block_optin_bytes: int
    shared_reserved_per_block_bytes: int
    shared_granularity_bytes: int
    unified_l1_shared_bytes: int
    carveouts_bytes: tuple[int, ...]
    shared_banks: int
    shared_bank_bytes: int
    line_bytes: int
    sector_bytes: int
    barriers_per_sm: int | None = None
    carveout_ample_bytes: int | None = None
    taken_branch_cycles: int | None = None
    fp32_lanes: int | None = None
    fp64_lanes: int | None = None
    int_lanes: int | None = None
    special_lanes: int | None = None
    memory_lanes: int | None = None
    notes: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class LanePasses:
    """The lanes that shared memory serves together, one tuple a pass; `access` is `load_4`, `store_16`, ..."""

    access: str
    lanes: tuple[tuple[int, ...], ...]
    source: Source
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """What every device of one AMD architecture shares: the limits of a compute unit and of a workgroup."""

    gfx: str
    wave_size: int
    max_threads_per_block: int
    simds_per_cu: int
    max_waves_per_simd: int
    vgprs_per_simd_lane: int
    vgpr_granularity: int
    vgpr_bytes_per_cu: int
    lds_bytes_per_cu: int
    lds_granularity_bytes: int
    lds_banks: int
    lds_bank_bytes: int
    l1_bytes_per_cu: int
    l2_line_bytes: int
    lds_passes: tuple[LanePasses, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Peaks:
    """Dense peak rates (no sparsity), TFLOP/s, for int8 TOP/s; half precision accumulates in fp32. None: has none."""

    fp32_tflops: float
    fp16_tflops: float | None = None
    bf16_tflops: float | None = None
    tf32_tflops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    int8_tops: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One GPU of `vendor` NVIDIA or AMD.

    `architecture` is the compute capability (`9.0`) or AMD's name (`gfx942`); exactly one of `capability` and
    `compute_unit` is set. `sm_count` counts streaming multiprocessors, or compute units. `memory_gb` is the figure
    of the product's name; `memory_bandwidth_gbs` the theoretical 1e9 bytes/s. `dram_fetch_bytes` is what one missed
    sector fetches; `l2_read_gbs` what all SMs together were seen to read from the L2. `latency_from` names the nearest
    device whose latencies were measured, if this one's were not; `memory_timing` is None where bytes in flight were
    not measured, `caches` and `pace` where they were not.
    """

    id: str
    name: str
    vendor: str
    aliases: tuple[str, ...]
    architecture: str
    compile_targets: tuple[str, ...]
    capability: Capability | None
    compute_unit: ComputeUnit | None
    sm_count: int
    boost_mhz: int
    memory_type: str
    memory_gb: int
    memory_bandwidth_gbs: float
    l2_bytes: int
    peaks: Peaks
    confidence: str
    fp32_cores_per_sm: int | None = None
    l2_partitions: int | None = None
    mall_bytes: int | None = None
    dram_fetch_bytes: int | None = None
    l2_read_gbs: float | None = None
    memory_clock_mhz: int | None = None
    memory_bus_bits: int | None = None
    latencies: tuple[Latency, ...] = ()
    latency_from: str | None = None
    bandwidths: tuple[Bandwidth, ...] = ()
    memory_timing: MemoryTiming | None = None
    caches: CacheBehaviour | None = None
    pace: PaceBehaviour | None = None
    notes: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = field(default=(), repr=False)

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Major and minor; None for AMD."""
        return None if self.capability is None else self.capability.compute_capability

    @property
    def supports_sass(self) -> bool:
        """Whether kernels can be compiled for it, and so executed."""
        return bool(self.compile_targets)


def load_device(name: str | DeviceSpec) -> DeviceSpec:
    """What is known of the device that goes by this id or alias; case, spaces, dashes and maker's names are ignored.

    A name that ends in `.toml` is the path of a device file, such as `sectorwise calibrate` writes. A device that is
    loaded already is given back.

    Raises `UnknownDeviceError`, with the nearest ids, or what is wrong with the file; `ArgumentError` for what is no
    name.
    """
    if isinstance(name, DeviceSpec):
        return name
    if not isinstance(name, str):
        raise ArgumentError(f"device is {name!r}; it must be the name of a device, such as 'h200', or a DeviceSpec")
    if name.endswith(".toml"):
        return _load_file(name)
    identifier = _names().get(_normalise(name))
    if identifier is None:
        raise UnknownDeviceError(_explain_unknown(name))
    return _load(identifier)


def list_devices() -> tuple[DeviceSpec, ...]:
    """All devices, in the order of `devices/index.toml`."""
    return tuple(_load(identifier) for identifier in _index())


def find_provenance(of: DeviceSpec | Capability | ComputeUnit, name: str) -> Provenance | None:
    """Where the value of a field comes from; None for fields that are no number (`id`, `aliases`, ...)."""
    return next((entry for entry in of.provenance if entry.field == name), None)


def require_sass(device: DeviceSpec) -> str:
    """The target to compile for (`sm_90`); raises `UnsupportedDeviceError` where kernels cannot be executed."""
    if device.compile_targets:
        return device.compile_targets[0]
    reason = (
        "AMD kernels are not SASS"
        if device.capability is None
        else f"CUDA 13 no longer compiles for compute capability {device.architecture}"
    )
    raise UnsupportedDeviceError(
        f"kernels for {device.name} ({device.id}) cannot be executed: {reason}. "
        "What still works are the calculators: sectors, wavefronts, occupancy."
    )


def require_capability(device: DeviceSpec) -> Capability:
    """The limits of an NVIDIA device; raises `UnsupportedDeviceError` for others."""
    if device.capability is None:
        raise UnsupportedDeviceError(
            f"{device.name} ({device.id}, {device.architecture}) has no compute capability: "
            "only NVIDIA devices have SM limits, warps of 32 lanes and SASS."
        )
    return device.capability


_MAKER_WORDS = frozenset({"nvidia", "geforce", "tesla", "amd", "instinct", "radeon"})


def _normalise(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", name.casefold())
    return "".join(word for word in words if word not in _MAKER_WORDS)


@cache
def _index() -> Mapping[str, tuple[str, ...]]:
    return {identifier: tuple(aliases) for identifier, aliases in _read("index.toml").items()}


@cache
def _names() -> Mapping[str, str]:
    """Normalised ids and aliases, to ids."""
    return {_normalise(name): identifier for identifier, names in _index().items() for name in (identifier, *names)}


def _explain_unknown(name: str) -> str:
    import difflib

    having = [device.id for device in list_devices() if name.casefold().strip() in device.compile_targets]
    if having:
        return f"{name!r} is a compile target, not a device; devices that have it: {', '.join(having)}"
    close = difflib.get_close_matches(_normalise(name), _names(), n=6, cutoff=0.5)
    nearest = list(dict.fromkeys(_names()[match] for match in close))[:3]
    if nearest:
        return f"no device is named {name!r}; the nearest are {', '.join(nearest)}"
    return f"no device is named {name!r}; known are {', '.join(_index())}"


def _read(path: str) -> dict[str, Any]:
    import tomllib
    from importlib import resources

    with resources.files("sectorwise").joinpath("devices", path).open("rb") as file:
        return tomllib.load(file)


def read_device_data(identifier: str) -> dict[str, Any]:
    """The data of the device file of an id, as TOML has them; a copy to change."""
    return _read(f"{identifier}.toml")


@cache
def _load_file(path: str) -> DeviceSpec:
    """The device of a file that a person names; its id is the path."""
    import tomllib
    from pathlib import Path

    try:
        return _make(path, tomllib.loads(Path(path).read_text(encoding="utf-8")), ())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnknownDeviceError(f"the device file {path} cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownDeviceError(f"{path} is no device file as sectorwise calibrate writes them: {error}") from None


@cache
def _load(identifier: str) -> DeviceSpec:
    return _make(identifier, _read(f"{identifier}.toml"), _index()[identifier])


def _make(identifier: str, data: Mapping[str, Any], aliases: tuple[str, ...]) -> DeviceSpec:
    architecture = data["architecture"]
    shared = _read(f"architectures/{architecture}.toml")
    sources = _read_sources(data)
    return DeviceSpec(
        id=identifier,
        name=data["name"],
        vendor=data["vendor"],
        aliases=aliases,
        architecture=architecture,
        compile_targets=tuple(shared["compile_targets"]),
        capability=_read_capability(architecture, shared) if data["vendor"] == "NVIDIA" else None,
        compute_unit=_read_compute_unit(architecture, shared) if data["vendor"] == "AMD" else None,
        peaks=Peaks(**_values(data["peaks"])),
        confidence=data["confidence"],
        latencies=tuple(Latency(**_resolve(row, sources)) for row in data.get("latencies", ())),
        latency_from=data.get("latency_from"),
        bandwidths=tuple(Bandwidth(**_resolve(row, sources)) for row in data.get("bandwidths", ())),
        memory_timing=MemoryTiming(**_resolve(data["memory_timing"], sources)) if "memory_timing" in data else None,
        caches=CacheBehaviour(**_resolve(data["caches"], sources)) if "caches" in data else None,
        pace=PaceBehaviour(**_resolve(data["pace"], sources)) if "pace" in data else None,
        notes=tuple(data.get("notes", ())),
        provenance=_read_provenance(data),
        **_values(data["numbers"]),
    )


def _read_capability(architecture: str, data: Mapping[str, Any]) -> Capability:
    major, minor = architecture.split(".")
    return Capability(
        compute_capability=(int(major), int(minor)),
        notes=tuple(data.get("notes", ())),
        provenance=_read_provenance(data),
        **_values(data["numbers"]),
    )


def _read_compute_unit(architecture: str, data: Mapping[str, Any]) -> ComputeUnit:
    return ComputeUnit(
        gfx=architecture,
        lds_passes=tuple(
            LanePasses(
                **_resolve(row, _read_sources(data)) | {"lanes": tuple(_read_lanes(lanes) for lanes in row["lanes"])}
            )
            for row in data.get("lds_passes", ())
        ),
        notes=tuple(data.get("notes", ())),
        provenance=_read_provenance(data),
        **_values(data["numbers"]),
    )


def _read_lanes(text: str) -> tuple[int, ...]:
    """Lanes of `0-3,20-23`."""
    ranges = (part.split("-") for part in text.split(","))
    return tuple(lane for first, last in ranges for lane in range(int(first), int(last) + 1))


def _read_sources(data: Mapping[str, Any]) -> dict[str, Source]:
    return {key: Source(entry["title"], Basis(entry["basis"])) for key, entry in data["sources"].items()}


def _read_provenance(data: Mapping[str, Any]) -> tuple[Provenance, ...]:
    sources = _read_sources(data)
    return tuple(
        Provenance(
            field=name,
            source=sources[entry["source"]],
            note=entry.get("note"),
            alternatives=tuple(Alternative(**_resolve(other, sources)) for other in entry.get("also", ())),
        )
        for name, entry in (data["numbers"] | data.get("peaks", {})).items()
    )


def _resolve(row: Mapping[str, Any], sources: Mapping[str, Source]) -> dict[str, Any]:
    frozen = {key: _freeze(value) for key, value in row.items()}
    return frozen | {"source": sources[row["source"]]}


def _values(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _freeze(entry["value"]) for name, entry in numbers.items()}


def _freeze(value: Any) -> Any:  # noqa: ANN401 - TOML's values: arrays become tuples, all else stays
    return tuple(value) if isinstance(value, list) else value
