"""Turns the facts that were collected by hand into checks of the device data files."""

from __future__ import annotations

from dataclasses import fields

import pytest

from sectorwise.device import (
    Capability,
    ComputeUnit,
    DeviceSpec,
    Peaks,
    find_provenance,
    list_devices,
    load_device,
    require_capability,
    require_sass,
)
from sectorwise.errors import UnknownDeviceError, UnsupportedDeviceError
from sectorwise.provenance import Basis

KIB = 1024
MIB = 1024 * KIB

# id, architecture, SMs or CUs, boost MHz, GB/s, L2 MiB, fp32 TFLOP/s, fp16 TFLOP/s
TABLE = [
    ("v100-sxm2", "7.0", 80, 1530, 900, 6, 15.7, 125),
    ("t4", "7.5", 40, 1590, 320, 4, 8.1, 65),
    ("a100-40-sxm", "8.0", 108, 1410, 1555, 40, 19.5, 312),
    ("a100-80-sxm", "8.0", 108, 1410, 2039, 40, 19.5, 312),
    ("a10", "8.6", 72, 1695, 600, 6, 31.2, 125),
    ("a30", "8.0", 56, 1440, 933, 24, 10.3, 165),
    ("rtx3090", "8.6", 82, 1695, 936, 6, 35.6, 71),
    ("l4", "8.9", 58, 2040, 300, 48, 30.3, 121),
    ("l40s", "8.9", 142, 2520, 864, 96, 91.6, 362),
    ("rtx4090", "8.9", 128, 2520, 1008, 72, 82.6, 165.2),
    ("rtx6000-ada", "8.9", 142, 2505, 960, 96, 91.1, 364),
    ("h100-sxm", "9.0", 132, 1980, 3350, 50, 66.9, 989.4),
    ("h100-pcie", "9.0", 114, 1755, 2039, 50, 51.2, 756),
    ("h100-nvl", "9.0", 132, 1785, 3938, 50, 60.3, 835.5),
    ("gh200", "9.0", 132, 1980, 4023, 60, 66.9, 989.4),
    ("h200-sxm", "9.0", 132, 1980, 4800, 60, 66.9, 989.4),
    ("b200", "10.0", 148, 1965, 7672, 126.5, 75, 2250),
    ("gb200", "10.0", 148, 1965, 8000, 126.5, 80, 2500),
    ("b300", "10.3", 148, 1965, 8000, 126.5, 75, 2250),
    ("rtx5090", "12.0", 170, 2407, 1792, 96, 104.8, 209.5),
    ("rtxpro6000-bw", "12.0", 188, 2617, 1792, 128, 125, 503),
    ("jetson-agx-orin-64", "8.7", 16, 1301, 204.8, 4, 5.3, 42.5),
    ("dgx-spark-gb10", "12.1", 48, 2418, 273, 24, 29.7, None),
    ("mi210", "gfx90a", 104, 1700, 1638, 8, 22.6, 181),
    ("mi250x", "gfx90a", 220, 1700, 3277, 16, 47.9, 383),
    ("mi300x", "gfx942", 304, 2100, 5325, 32, 163.4, 1307.4),
    ("mi325x", "gfx942", 304, 2100, 6000, 32, 163.4, 1307.4),
    ("mi355x", "gfx950", 256, 2400, 8000, 32, 157.3, 2516.6),
    ("rx7900xtx", "gfx1100", 96, 2500, 960, 6, 61.4, 122.8),
]

# capability, threads an SM, blocks an SM, shared KiB an SM, opt-in KiB, reserved B, granule B, unified KiB, carve-outs
LIMITS = [
    ("7.0", 2048, 32, 96, 96, 0, 256, 128, (0, 8, 16, 32, 64, 96)),
    ("7.5", 1024, 16, 64, 64, 0, 256, 96, (32, 64)),
    ("8.0", 2048, 32, 164, 163, 1024, 128, 192, (0, 8, 16, 32, 64, 100, 132, 164)),
    ("8.6", 1536, 16, 100, 99, 1024, 128, 128, (0, 8, 16, 32, 64, 100)),
    ("8.7", 1536, 16, 164, 163, 1024, 128, 192, (0, 8, 16, 32, 64, 100, 132, 164)),
    ("8.9", 1536, 24, 100, 99, 1024, 128, 128, (0, 8, 16, 32, 64, 100)),
    ("9.0", 2048, 32, 228, 227, 1024, 128, 256, (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
    ("10.0", 2048, 32, 228, 227, 1024, 128, 256, (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
    ("10.3", 2048, 32, 228, 227, 1024, 128, 256, (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
    ("12.0", 1536, 24, 100, 99, 1024, 128, 128, (0, 8, 16, 32, 64, 100)),
    ("12.1", 1536, 24, 100, 99, 1024, 128, 128, (0, 8, 16, 32, 64, 100)),
]

TARGETS = {
    "7.0": None,
    "7.5": "sm_75",
    "8.0": "sm_80",
    "8.6": "sm_86",
    "8.7": "sm_87",
    "8.9": "sm_89",
    "9.0": "sm_90",
    "10.0": "sm_100",
    "10.3": "sm_103",
    "12.0": "sm_120",
    "12.1": "sm_121",
}

NVIDIA = [row[0] for row in TABLE if not row[1].startswith("gfx")]


def test_every_device_is_listed_once_in_order() -> None:
    assert [device.id for device in list_devices()] == [row[0] for row in TABLE]


@pytest.mark.parametrize(("name", "architecture", "sms", "mhz", "gbs", "l2", "fp32", "fp16"), TABLE)
def test_headline_numbers(
    name: str, architecture: str, sms: int, mhz: int, gbs: float, l2: float, fp32: float, fp16: float | None
) -> None:
    device = load_device(name)
    assert device.id == name
    assert device.architecture == architecture
    assert (device.sm_count, device.boost_mhz, device.memory_bandwidth_gbs) == (sms, mhz, gbs)
    assert device.l2_bytes == l2 * MIB
    assert (device.peaks.fp32_tflops, device.peaks.fp16_tflops) == (fp32, fp16)


@pytest.mark.parametrize("limits", LIMITS, ids=[row[0] for row in LIMITS])
def test_limits_of_each_capability(limits: tuple[str, int, int, int, int, int, int, int, tuple[int, ...]]) -> None:
    architecture, threads, blocks, shared, optin, reserved, granule, unified, carveouts = limits
    devices = [device for device in list_devices() if device.architecture == architecture]
    assert devices
    for device in devices:
        capability = require_capability(device)
        assert ".".join(map(str, capability.compute_capability)) == architecture
        assert capability.max_threads_per_sm == threads
        assert capability.max_warps_per_sm * capability.warp_size == threads
        assert capability.max_blocks_per_sm == blocks
        assert capability.shared_per_sm_bytes == shared * KIB
        assert capability.shared_per_block_optin_bytes == optin * KIB
        assert capability.shared_reserved_per_block_bytes == reserved
        assert capability.shared_granularity_bytes == granule
        assert capability.unified_l1_shared_bytes == unified * KIB
        assert capability.carveouts_bytes == tuple(size * KIB for size in carveouts)


def test_what_all_capabilities_share() -> None:
    for name in NVIDIA:
        capability = require_capability(load_device(name))
        assert capability.regs_per_sm == capability.regs_per_block == 65536
        assert (capability.max_regs_per_thread, capability.reg_granularity_per_warp) == (255, 256)
        assert (capability.warp_granularity, capability.sub_partitions) == (4, 4)
        assert (capability.max_threads_per_block, capability.warp_size) == (1024, 32)
        assert capability.shared_per_block_default_bytes == 48 * KIB
        assert (capability.shared_banks, capability.shared_bank_bytes) == (32, 4)
        assert (capability.line_bytes, capability.sector_bytes) == (128, 32)


def test_largest_carveout_is_the_shared_memory_of_an_sm() -> None:
    for name in NVIDIA:
        capability = require_capability(load_device(name))
        assert capability.carveouts_bytes[-1] == capability.shared_per_sm_bytes
        assert list(capability.carveouts_bytes) == sorted(set(capability.carveouts_bytes))
        assert capability.shared_per_sm_bytes < capability.unified_l1_shared_bytes
        reserved = capability.shared_reserved_per_block_bytes
        assert capability.shared_per_block_optin_bytes + reserved == capability.shared_per_sm_bytes


def test_barriers_are_a_limit_from_hopper_on() -> None:
    pools = {d.architecture: d.capability.barriers_per_sm for d in list_devices() if d.capability is not None}
    assert pools == {
        **dict.fromkeys(("7.0", "7.5", "8.0", "8.6", "8.7", "8.9")),
        **dict.fromkeys(("9.0", "10.0", "10.3"), 64),
        **dict.fromkeys(("12.0", "12.1"), 24),
    }


@pytest.mark.parametrize("name", NVIDIA)
def test_fp32_peak_is_cores_times_clock(name: str) -> None:
    """GB200's stated peak implies 2.11 GHz, which its clock does not reach: the one known contradiction."""
    device = load_device(name)
    assert device.fp32_cores_per_sm is not None
    computed = device.sm_count * device.fp32_cores_per_sm * 2 * device.boost_mhz / 1e6
    agrees = abs(computed - device.peaks.fp32_tflops) <= 0.03 * device.peaks.fp32_tflops
    assert agrees == (name != "gb200")


def test_h200_is_as_its_driver_reports_it() -> None:
    """Device attributes read from the card that the truth was measured on."""
    device = load_device("h200")
    capability = require_capability(device)
    assert (device.sm_count, device.boost_mhz, device.l2_bytes) == (132, 1980, 62_914_560)
    assert (device.memory_clock_mhz, device.memory_bus_bits) == (3201, 6016)
    assert capability.shared_per_sm_bytes == 233_472
    assert capability.shared_per_block_optin_bytes == 232_448
    assert device.dram_fetch_bytes == 64
    for name in ("sm_count", "boost_mhz", "l2_bytes", "dram_fetch_bytes"):
        provenance = find_provenance(device, name)
        assert provenance is not None
        assert provenance.source.basis is Basis.MEASURED


def test_disagreeing_sources_are_kept() -> None:
    l2 = find_provenance(load_device("h200"), "l2_bytes")
    assert l2 is not None
    assert [(other.value, other.source.basis) for other in l2.alternatives] == [(50 * MIB, Basis.RECALLED)]
    contested = {
        (device.id, entry.field) for device in list_devices() for entry in device.provenance if entry.alternatives
    }
    assert contested >= {
        ("b200", "memory_bandwidth_gbs"),
        ("b300", "sm_count"),
        ("b300", "int8_tops"),
        ("gh200", "l2_bytes"),
        ("h100-nvl", "l2_bytes"),
        ("l4", "sm_count"),
        ("dgx-spark-gb10", "boost_mhz"),
    }


def _numbers(of: DeviceSpec | Capability | ComputeUnit | Peaks) -> list[str]:
    """Names of the fields that hold a number, or a tuple of numbers."""
    values = {entry.name: getattr(of, entry.name) for entry in fields(of)}
    return [
        name
        for name, value in values.items()
        if isinstance(value, int | float) or (isinstance(value, tuple) and value and isinstance(value[0], int))
    ]


@pytest.mark.parametrize("device", list_devices(), ids=lambda device: device.id)
def test_every_number_has_a_source(device: DeviceSpec) -> None:
    shared = device.capability or device.compute_unit
    assert shared is not None
    owned = [*_numbers(device), *_numbers(device.peaks)]
    assert [name for name in owned if find_provenance(device, name) is None] == []
    named = [name for name in _numbers(shared) if name != "compute_capability"]
    assert [name for name in named if find_provenance(shared, name) is None] == []
    sources = [entry.source for entry in (*device.provenance, *shared.provenance)]
    sources += [latency.source for latency in device.latencies]
    sources += [bandwidth.source for bandwidth in device.bandwidths]
    assert all(source.title for source in sources)


def test_no_source_is_listed_without_use() -> None:
    import tomllib
    from importlib import resources

    root = resources.files("sectorwise") / "devices"
    paths = [path for folder in (root, root / "architectures") for path in folder.iterdir() if path.is_file()]
    for path in paths:
        if path.name == "index.toml":
            continue
        text = path.read_text(encoding="utf-8")
        for key in tomllib.loads(text)["sources"]:
            assert f'source = "{key}"' in text, (path.name, key)
    assert len(paths) == len(TABLE) + len(LIMITS) + 4 + 1


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("h200", "h200-sxm"),
        ("H200-SXM", "h200-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("h100", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("a100", "a100-80-sxm"),
        ("NVIDIA A100-SXM4-40GB", "a100-40-sxm"),
        ("Tesla T4", "t4"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("rtx_4090", "rtx4090"),
        ("4090", "rtx4090"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000-bw"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("Orin", "jetson-agx-orin-64"),
        ("NVIDIA GB10", "dgx-spark-gb10"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Radeon RX 7900 XTX", "rx7900xtx"),
    ],
)
def test_names_that_people_and_drivers_use(name: str, identifier: str) -> None:
    assert load_device(name).id == identifier


def test_no_name_means_two_devices() -> None:
    for device in list_devices():
        for name in (device.id, *device.aliases):
            assert load_device(name) is device


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("h20", "h200-sxm"), ("a100-80-pcie", "a100-80-sxm"), ("rtx4080", "rtx4090"), ("mi300", "mi300x")],
)
def test_unknown_name_gets_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownDeviceError, match=rf"{name}.*{nearest}"):
        load_device(name)


@pytest.mark.parametrize("name", ["", "  ", "!!", "nvidia", "zzzzzz"])
def test_hopeless_name_gets_them_all(name: str) -> None:
    with pytest.raises(UnknownDeviceError) as caught:
        load_device(name)
    assert all(device.id in str(caught.value) for device in list_devices())


def test_compile_target_is_not_a_device() -> None:
    with pytest.raises(UnknownDeviceError, match=r"compile target.*h100-sxm.*h200-sxm"):
        load_device("sm_90a")


@pytest.mark.parametrize("name", NVIDIA)
def test_compile_targets(name: str) -> None:
    device = load_device(name)
    target = TARGETS[device.architecture]
    assert device.supports_sass == (target is not None)
    assert device.compile_targets[:1] == (() if target is None else (target,))
    if target is not None:
        assert require_sass(device) == target


def test_hopper_and_blackwell_have_their_own_instructions() -> None:
    assert load_device("h200").compile_targets == ("sm_90", "sm_90a")
    assert "sm_100a" in load_device("b200").compile_targets


@pytest.mark.parametrize(("name", "reason"), [("v100", "compute capability 7.0"), ("mi300x", "AMD")])
def test_without_sass_the_calculators_remain(name: str, reason: str) -> None:
    device = load_device(name)
    assert not device.supports_sass
    with pytest.raises(UnsupportedDeviceError, match=rf"{device.id}.*{reason}.*sectors, wavefronts, occupancy"):
        require_sass(device)


def test_amd_has_compute_units_instead_of_a_capability() -> None:
    device = load_device("mi300x")
    assert device.compute_capability is None
    assert isinstance(device.compute_unit, ComputeUnit)
    assert (device.compute_unit.wave_size, device.compute_unit.lds_banks) == (64, 32)
    assert device.compute_unit.lds_bytes_per_cu == 64 * KIB
    with pytest.raises(UnsupportedDeviceError, match="gfx942"):
        require_capability(device)


def test_amd_passes_serve_every_lane_once() -> None:
    for device in list_devices():
        unit = device.compute_unit
        for passes in () if unit is None else unit.lds_passes:
            assert unit is not None
            lanes = [lane for group in passes.lanes for lane in group]
            assert sorted(lanes) == list(range(unit.wave_size)), (unit.gfx, passes.access)
    unit = load_device("mi300x").compute_unit
    assert unit is not None
    reads = next(passes for passes in unit.lds_passes if passes.access == "load_16")
    assert reads.lanes[0] == (0, 1, 2, 3, 20, 21, 22, 23)


def test_nearest_measured_latencies_exist() -> None:
    device = load_device("h200")
    assert device.latencies == ()
    assert device.latency_from is not None
    nearest = load_device(device.latency_from).latencies[0]
    assert (nearest.clock_mhz, nearest.l1_cycles, nearest.l2_cycles, nearest.dram_cycles) == (1980, 32, 280, 689)


def test_measured_bandwidth_is_below_the_theoretical() -> None:
    for device in list_devices():
        for bandwidth in device.bandwidths:
            if bandwidth.measured_on is None:
                assert bandwidth.gbs < device.memory_bandwidth_gbs, device.id
    assert {row.operation: row.gbs for row in load_device("h200").bandwidths} == {"copy": 4259, "read": 4510}


def test_specifications_are_values() -> None:
    first, second = load_device("h200"), load_device("h200-sxm")
    assert first == second
    assert hash(first) == hash(second)
    assert isinstance(first.capability, Capability)
