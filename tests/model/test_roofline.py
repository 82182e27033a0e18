from __future__ import annotations

import pytest

from sectorwise.device import DeviceSpec, list_devices, load_device
from sectorwise.errors import ArgumentError, UnsupportedDeviceError
from sectorwise.model.roofline import Level, draw_roofline, place_kernel


def test_the_h200_has_its_measured_ceilings() -> None:
    roofline = draw_roofline(load_device("h200"))
    assert {ceiling.level: ceiling.per_ns for ceiling in roofline.ceilings} == {
        Level.DRAM: 4510,
        Level.L2: 8767,
        Level.L1: pytest.approx(132 * 128 * 1.98),
        Level.ISSUE: pytest.approx(132 * 4 * 1.98),
    }
    assert [ceiling.assumed for ceiling in roofline.ceilings] == [None] * 4


def test_ridges_are_peak_over_bandwidth_for_each_data_type_and_boundary() -> None:
    roofline = draw_roofline(load_device("h200"))
    assert roofline.ridge("fp32", Level.DRAM) == pytest.approx(66_900 / 4510)
    assert roofline.ridge("fp16", Level.DRAM) == pytest.approx(989_400 / 4510)
    assert roofline.ridge("fp16", Level.L2) == pytest.approx(989_400 / 8767)
    assert roofline.ridge("fp8", Level.L1) == pytest.approx(1_978_900 / (132 * 128 * 1.98))
    # One FMA a lane is 64 operations an instruction: a kernel of nothing else is as compute-bound as can be.
    assert roofline.ridge("fp32", Level.ISSUE) == pytest.approx(64, rel=0.001)


def test_a_half_precision_gemm_in_tiles_of_128_is_held_up_at_the_l2_not_at_dram() -> None:
    size, tile = 8192, 128
    operations = 2.0 * size**3
    amounts = {Level.DRAM: 3 * 2 * size**2, Level.L2: 2 * 2 * size**3 / tile + 2 * size**2}
    found = place_kernel(draw_roofline(load_device("h200")), amounts, operations, "fp16")
    dram, l2 = found.places
    assert dram.intensity is not None
    assert dram.intensity > 2000
    assert dram.attainable_gflops == 989_400
    assert l2.intensity == pytest.approx(64, rel=0.02)
    assert l2.attainable_gflops == pytest.approx(64 * 8767, rel=0.02)
    assert found.bound == "l2"
    assert found.least_ns == l2.least_ns > found.compute_ns


def test_a_copy_is_bound_by_dram_and_has_no_intensity() -> None:
    found = place_kernel(draw_roofline(load_device("h200")), {Level.DRAM: 2.0**30, Level.ISSUE: 1e6}, operations=0)
    assert (found.bound, found.compute_ns) == ("dram", 0)
    assert found.least_ns == pytest.approx(2**30 / 4510)
    assert found.places[0].intensity == 0
    assert [place.level for place in found.places] == [Level.DRAM, Level.ISSUE]


def test_nothing_moved_is_no_division_by_zero() -> None:
    found = place_kernel(draw_roofline(load_device("h200")), {Level.DRAM: 0}, operations=1e9)
    assert found.places[0].intensity is None
    assert found.places[0].attainable_gflops == 66_900
    assert found.bound == "compute"


@pytest.mark.parametrize("device", [d for d in list_devices() if d.capability], ids=lambda d: d.id)
def test_every_nvidia_device_has_ceilings_that_fall_outwards(device: DeviceSpec) -> None:
    roofline = draw_roofline(device)
    dram, l2, l1, issue = (ceiling.per_ns for ceiling in roofline.ceilings)
    assert 0 < dram < l2 < l1
    assert issue > 0


def test_a_borrowed_ceiling_says_so() -> None:
    ceilings = draw_roofline(load_device("rtx4090")).ceilings
    assert [ceiling.assumed for ceiling in ceilings] == [
        "read ceiling 94 % of 1,008 GB/s, as on h200-sxm",
        "L2 bandwidth as many bytes a cycle and SM as on h200-sxm",
        None,
        None,
    ]


def test_bad_input_is_named() -> None:
    roofline = draw_roofline(load_device("a100"))
    with pytest.raises(ArgumentError, match="no peak rate for 'fp8'; it has fp32, tf32, fp16, bf16, int8"):
        roofline.peak("fp8")
    with pytest.raises(ArgumentError, match="cannot be negative"):
        place_kernel(roofline, {Level.L2: -1}, operations=1)
    with pytest.raises(UnsupportedDeviceError, match="MI300X"):
        draw_roofline(load_device("mi300x"))
