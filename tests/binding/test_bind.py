from __future__ import annotations

import dataclasses
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sectorwise.binary.ir import External, Kernel, Variable
from sectorwise.binding import CONSTANT_WINDOW, BoundLaunch, bind
from sectorwise.device import load_device
from sectorwise.errors import ArchitectureMismatchError, LaunchError, UnsupportedDeviceError
from sectorwise.launch.contents import materialise
from sectorwise.launch.notation import parse_launch
from sectorwise.launch.packing import measure_member
from tests.binding.kernels import make_kernel
from tests.launch.strategies import launches

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.config import LaunchConfig

H200 = load_device("h200")


def bind_text(kernel: Kernel, text: str, device: str = "h200", types: tuple[str, ...] | None = None) -> BoundLaunch:
    return bind(kernel, parse_launch(text), load_device(device), types)


def test_bank_zero_holds_what_the_driver_writes_for_sm_90() -> None:
    bound = bind_text(make_kernel(8, 8, 4), "k<<<(16, 8), (32, 4, 2), 256>>>(f32[64], a=f32[64], n=512)")
    bank = bound.banks[0]
    assert struct.unpack_from("<6I", bank, 0x0) == (32, 4, 2, 16, 8, 1)
    assert struct.unpack_from("<I", bank, 0x28) == (1 << 24,)
    assert struct.unpack_from("<I", bank, 0x2C) == (256,)
    assert struct.unpack_from("<Q", bank, 0x20) == (bound.local_window,)
    first, second = bound.allocations
    assert struct.unpack_from("<QQi", bank, 0x210) == (first.base, second.base, 512)
    assert len(bank) == 0x210 + 20
    assert (first.argument, first.size_bytes, second.argument) == ("argument 0", 256, "a")
    assert bound.shared_bytes == 1024 + 256


@pytest.mark.parametrize(
    ("target", "device", "block_at", "parameters_at", "reserved_bytes"),
    [
        ("sm_75", "t4", 0x0, 0x160, 0),
        ("sm_80", "a100-80-sxm", 0x0, 0x160, 0),
        ("sm_90", "h100", 0x0, 0x210, 1024),
        ("sm_100", "b200", 0x360, 0x380, 1024),
        ("sm_120", "rtx5090", 0x360, 0x380, 1024),
    ],
)
def test_places_follow_the_target(
    target: str, device: str, block_at: int, parameters_at: int, reserved_bytes: int
) -> None:
    kernel = make_kernel(4, target=target, base=parameters_at, static_shared_bytes=64)
    bound = bind_text(kernel, "k<<<3, 96>>>(7)", device)
    assert struct.unpack_from("<I", bound.banks[0], block_at) == (96,)
    assert struct.unpack_from("<I", bound.banks[0], parameters_at) == (7,)
    assert bound.shared_bytes == reserved_bytes + 64


def test_aliases_share_the_buffer() -> None:
    bound = bind_text(make_kernel(8, 8, 16), "k<<<1, 32>>>(a=f32[64], ptr(a, 16), {ptr(a), 3})")
    (allocation,) = bound.allocations
    expected = (allocation.base, allocation.base + 16, allocation.base, 3)
    assert struct.unpack_from("<QQQi", bound.banks[0], 0x210) == expected


def test_types_decide_what_a_plain_number_is() -> None:
    kernel = make_kernel(8, 4, 4)
    bound = bind_text(kernel, "k<<<1, 32>>>(f32[64], 1, 1)", types=("float *", "float", "int"))
    assert struct.unpack_from("<fi", bound.banks[0], 0x218) == (1.0, 1)
    untyped = bind_text(kernel, "k<<<1, 32>>>(f32[64], 1, 1)")
    assert struct.unpack_from("<ii", untyped.banks[0], 0x218) == (1, 1)


ERRORS = [
    ((8, 4), "k<<<1, 32>>>(f32[4])", "k takes 2 arguments (8, 4 bytes), got 1", ")"),
    ((8,), "k<<<1, 32>>>(f32[4], 5, 6)", "k takes 1 argument (8 bytes), got 3", "5"),
    ((), "k<<<1, 32>>>(5)", "k takes 0 arguments, got 1", "5"),
    ((8,), "k<<<1, 32>>>(i32(5))", "argument 0: expected 8 bytes, got i32, which has 4", "i32(5)"),
    ((4,), "k<<<1, 32>>>(f32[4])", "argument 0: expected 4 bytes, got an address, which has 8", "f32[4]"),
    ((4,), "k<<<1, 32>>>(n=1 << 40)", "argument 0: 1099511627776 does not fit u32 (0 to 4294967295)", "n=1 << 40"),
    ((24,), "k<<<1, 32>>>({f32[4], 5})", "argument 0: expected 24 bytes, got a struct of 16", "{f32[4], 5}"),
    ((8,), "k<<<1, 32>>>(ptr(a))", "no buffer is named 'a'; name one as in a=f32[1024]", "ptr(a)"),
    ((8, 8), "k<<<1, 32>>>(b=f32[4], ptr(a))", "no buffer is named 'a'; named are b", "ptr(a)"),
    (
        (8, 8),
        "k<<<1, 32>>>(a=f32[4], ptr(a, 17))",
        "expected an offset of 0 to 16 bytes into 'a', got 17",
        "ptr(a, 17)",
    ),
    ((16, 8), "k<<<1, 32>>>({a=f32[4], a=f32[4]}, ptr(a))", "2 buffers are named 'a'", "ptr(a)"),
    ((), "k<<<0, 32>>>()", "expected 1 to 2,147,483,647 blocks along x of the grid, got 0", "0"),
    ((), "k<<<(1, 65536), 32>>>()", "expected 1 to 65,535 blocks along y of the grid, got 65,536", "(1, 65536)"),
    ((), "k<<<1, -3>>>()", "expected 1 to 1,024 threads along x of the block, got -3", "-3"),
    ((), "k<<<1, (8, 1, 65)>>>()", "expected 1 to 64 threads along z of the block, got 65", "(8, 1, 65)"),
    (
        (),
        "k<<<1, (64, 32)>>>()",
        "the block has 2,048 threads (64 x 32 x 1), more than the 1,024 that H200 SXM 141GB allows",
        "(64, 32)",
    ),
    ((), "k<<<1, 32, -1>>>()", "expected 0 or more shared bytes, got -1", "-1"),
    (
        (),
        "k<<<1, 32, 240000>>>()",
        "the block needs 240,000 bytes of shared memory (0 static, 240,000 dynamic), more than the 232,448",
        "240000",
    ),
    (
        (8, 8),
        "k<<<1, 32>>>(f32[4], f32[64G])",
        "the buffers take 274.9 GB, more than the 141 GB of H200 SXM 141GB",
        "f32[64G]",
    ),
    ((), "k<<<1, 32>>>() with tab=i32[4]", "no module variable of k named 'tab'; it has none", "tab=i32[4]"),
]


@pytest.mark.parametrize(("sizes_bytes", "text", "message", "pointed"), ERRORS)
def test_launches_that_do_not_fit_are_told_with_a_caret(
    sizes_bytes: tuple[int, ...], text: str, message: str, pointed: str
) -> None:
    with pytest.raises(LaunchError) as caught:
        bind_text(make_kernel(*sizes_bytes), text)
    first, shown, carets = str(caught.value).split("\n")
    assert first.startswith(f"launch: {message}")
    assert shown == f"  {text}"
    assert shown[carets.index("^") : len(carets)] == pointed


def test_the_limits_of_the_device_are_reached_but_not_passed() -> None:
    assert bind_text(make_kernel(static_shared_bytes=1000), "k<<<1, 1024, 231448>>>()").shared_bytes == 233_472
    with pytest.raises(LaunchError, match=r"232,449 bytes of shared memory \(1,000 static, 231,449 dynamic\)"):
        bind_text(make_kernel(static_shared_bytes=1000), "k<<<1, 1024, 231449>>>()")
    with pytest.raises(LaunchError, match="more than the 65,536 that"):
        bind_text(make_kernel(target="sm_75", base=0x160), "k<<<1, 32, 65537>>>()", "t4")


def test_registers_times_threads_must_be_launchable() -> None:
    bind_text(make_kernel(registers=64), "k<<<1, 1024>>>()")
    with pytest.raises(
        LaunchError, match=r"73,728 registers \(1,024 threads of 65\), more than the 65,536 that H200 SXM"
    ):
        bind_text(make_kernel(registers=65), "k<<<1, 1024>>>()")
    # 9 warps count as 12 in this test: 12 x 255 registers of 32 lanes, in units of 256, are too many.
    bind_text(make_kernel(registers=255), "k<<<1, 256>>>()")
    with pytest.raises(LaunchError, match="98,304 registers"):
        bind_text(make_kernel(registers=255), "k<<<1, 288>>>()")


def test_launch_bounds_are_a_limit() -> None:
    bind_text(make_kernel(max_threads=256), "k<<<1, 256>>>()")
    with pytest.raises(LaunchError, match=r"has 257 threads.*the 256 that the kernel is compiled for"):
        bind_text(make_kernel(max_threads=256), "k<<<1, 257>>>()")


def test_mismatched_types_are_told() -> None:
    types = ("const float *", "int")
    with pytest.raises(LaunchError, match=r"argument 0: expected a buffer of f32 for 'const float \*', got one of f64"):
        bind_text(make_kernel(8, 4), "k<<<1, 32>>>(f64[4], 3)", types=types)
    with pytest.raises(LaunchError, match=r"takes 2 arguments \(const float \*, int\), got 1"):
        bind_text(make_kernel(8, 4), "k<<<1, 32>>>(f32[4])", types=types)


@pytest.mark.parametrize(
    ("target", "device"),
    [
        ("sm_80", "rtx3090"),
        ("sm_86", "l4"),
        ("sm_90", "h200"),
        ("sm_90a", "h200"),
        ("sm_100", "b300"),
        ("sm_120", "dgx-spark-gb10"),
    ],
)
def test_code_runs_on_its_own_and_later_minor_versions(target: str, device: str) -> None:
    bind_text(make_kernel(target=target), "k<<<1, 32>>>()", device)


@pytest.mark.parametrize(
    ("target", "device"),
    [
        ("sm_80", "h200"),
        ("sm_90", "a100"),
        ("sm_90", "b200"),
        ("sm_89", "rtx3090"),
        ("sm_100a", "b300"),
        ("sm_80", "jetson-agx-orin-64"),
        ("sm_87", "l4"),
        ("gfx942", "h200"),
    ],
)
def test_code_for_another_architecture_is_told(target: str, device: str) -> None:
    with pytest.raises(
        ArchitectureMismatchError, match=f"k is compiled for {target}, which .* does not run; it runs sm_"
    ):
        bind_text(make_kernel(target=target), "k<<<1, 32>>>()", device)


@pytest.mark.parametrize("device", ["v100", "mi300x"])
def test_devices_without_sass_say_what_still_works(device: str) -> None:
    with pytest.raises(UnsupportedDeviceError, match="calculators: sectors, wavefronts, occupancy"):
        bind_text(make_kernel(), "k<<<1, 32>>>()", device)


def test_a_file_that_does_not_fit_is_told_before_the_run(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(5, np.float32))
    launch = parse_launch("k<<<1, 32>>>(f32[4]=@a.npy)", folder=tmp_path)
    with pytest.raises(LaunchError, match=r"expected 4 elements, got 5 in .*a\.npy"):
        bind(make_kernel(8), launch, H200)


@given(launch=launches, sizes_bytes=st.lists(st.sampled_from([1, 2, 4, 8, 12, 16, 24]), max_size=5), fits=st.booleans())
def test_any_launch_binds_or_is_told(launch: LaunchConfig, sizes_bytes: list[int], *, fits: bool) -> None:
    if fits:
        launch = dataclasses.replace(launch, grid=(1, 1, 1), block=(32, 1, 1), dynamic_shared_bytes=0)
        sizes_bytes = [measure_member(argument).size_bytes for argument in launch.arguments]
    kernel = make_kernel(*sizes_bytes)
    trouble = ""
    try:
        bound = bind(kernel, launch, H200)
    except LaunchError as error:
        trouble = str(error)
    else:
        end = max((each.offset_bytes + each.size_bytes for each in kernel.parameters), default=0)
        assert len(bound.banks[0]) == 0x210 + end
    assert trouble.startswith("launch" if trouble else "")


def with_variables(*variables: Variable, externals: tuple[External, ...] = ()) -> Kernel:
    return structs.replace(make_kernel(), constants={3: bytes(64)}, variables=variables, externals=externals)


def test_module_variables_get_values_addresses_and_places() -> None:
    kernel = with_variables(
        Variable("tab", "constant", 16, bank=3, offset_bytes=8),
        Variable("_ZN2ns5scaleE", "constant", 4, bank=3, offset_bytes=24, initial=b"\1\2\3\4"),
        Variable("at", "constant", 8, bank=3, offset_bytes=32),
        Variable("table", "global", 8, initial=struct.pack("<2f", 1, 2), relocations=((4, 8),)),
        Variable("link", "global", 8, initial=bytes(8), relocations=((4, 0),), pointers=((0, "table", 4),)),
        Variable("zeros", "global", 1 << 40),
        externals=(External("vprintf", ((4, 16),)),),
    )
    bound = bind_text(kernel, "k<<<1, 32>>>() with tab=i32[4]=arange, scale=0.5, at={a=f32[8]}")
    places = {allocation.argument: allocation for allocation in bound.allocations}
    assert list(places) == ["a", "table", "link", "zeros"]
    assert struct.unpack_from("<4i", bound.banks[3], 8) == (0, 1, 2, 3)
    assert struct.unpack_from("<f4xQ", bound.banks[3], 24) == (0.5, places["a"].base)
    ((name, code),) = bound.externals
    assert name == "vprintf"
    assert struct.unpack("<3Q", bound.banks[4]) == (places["link"].base, places["table"].base, code)
    assert materialise(places["table"].buffer).tobytes() == struct.pack("<2f", 1, 2)
    assert materialise(places["link"].buffer).tobytes() == struct.pack("<Q", places["table"].base + 4)
    assert materialise(places["zeros"].buffer, 0, 4).tolist() == [0, 0, 0, 0]
    untouched = bind_text(kernel, "k<<<1, 32>>>()")
    assert untouched.banks[3][24:28] == b"\1\2\3\4"
    given = bind_text(kernel, "k<<<1, 32>>>() with table=i32[2]=arange")
    table = next(allocation for allocation in given.allocations if allocation.argument == "table")
    assert materialise(table.buffer).tolist() == [0, 1]


def test_a_constant_whose_address_is_taken_lies_in_the_constant_window() -> None:
    kernel = with_variables(Variable("tab", "constant", 16, bank=3, offset_bytes=8, relocations=((4, 0),)))
    bound = bind_text(kernel, "k<<<1, 32>>>() with tab=i32[4]=arange")
    assert struct.unpack("<Q", bound.banks[4]) == (CONSTANT_WINDOW + 8,)
    (window,) = bound.allocations
    assert (window.base, window.argument) == (CONSTANT_WINDOW, "constant bank 3")
    assert materialise(window.buffer, 8, 24).view("<i4").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("with tba=i32[4]", "no module variable of k named 'tba'; did you mean 'tab'?"),
        ("with tab=i32[5]", "tab has 16 bytes, i32[5] has 20"),
        ("with tab=i32(5)", "tab: expected 16 bytes, got i32, which has 4"),
    ],
)
def test_values_that_do_not_fit_a_module_variable_are_told(text: str, message: str) -> None:
    kernel = with_variables(Variable("tab", "constant", 16, bank=3, offset_bytes=8))
    with pytest.raises(LaunchError) as caught:
        bind_text(kernel, f"k<<<1, 32>>>() {text}")
    assert message in str(caught.value)
    assert "\n  k<<<1, 32>>>() with" in str(caught.value)
