"""Every command that works before there is a kernel refuses what makes no sense, and says what would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sectorwise as sw
from sectorwise.device import load_device
from tests.cli.commands import run

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = "9" * 30
GEMV = ("advise", "gemv", "--shape")
RECORDS = ("advise", "records", "--record", "x:f4,y:f4", "--touch")
OCCUPANCY = ("occupancy", "--threads", "256", "--registers", "40")

REFUSED = [
    (("access", ""), "the text is empty"),
    (("access", "i*π"), "got 'π'\n  i*π\n    ^"),
    (("access", f"i*{HUGE}"), "more than 48 bits"),
    (("access", "i*-4"), "lane 1 accesses byte -4, before the beginning"),
    (("access", "i*4", "--width", HUGE), "width must be one of 1, 2, 4, 8, 16, 32"),
    (("access", "i*4", "--cpu", "-1"), "it must be 1 to 131,072"),
    (("access", "(" * 60 + "i" + ")" * 60), "more than 50 brackets inside one another"),
    ((*GEMV, "-1,4"), "'-1' is no whole number; write 4096, or 4M"),
    ((*GEMV, ""), "write two extents, such as 4096,4096"),
    ((*GEMV, f"{HUGE},4096"), "it must be 1 to 16,777,216"),
    ((*GEMV, "4096,4096", "--batch", "-1"), "batch is -1; it must be 1 to 4,096"),
    ((*GEMV, "4096,4096", "--dtype", ""), "there is no element type ''; known are fp64"),
    ((*GEMV, "4096,4096", "--device", "h300"), "no device is named 'h300'"),
    ((*RECORDS, ""), "names no field, or leaves one out; write x,y, or * for all"),
    ((*RECORDS, "x,"), "names no field, or leaves one out"),
    ((*RECORDS, "z"), "the record has no field 'z'; known are x, y"),
    ((*RECORDS, "x", "--elements", HUGE), "it must be 32 to 64G"),
    (("advise", "records", "--record", "ü:f4", "--touch", "ü"), "expected the name of a field, such as x:f4, got 'ü'"),
    (("advise", "transpose", "--shape", "0,32"), "multiples of 32, from 32 to 16,777,216"),
    (("advise", "transpose", "--shape", f"{HUGE},32"), "from 32 to 16,777,216"),
    (("tile", "0", "8", "8"), "M is 0; it must be 1 to 16,777,216"),
    (("tile", "8", "8", "8", "--from", f"{HUGE},8,8,1"), "an SM's registers hold 262,144"),
    (("tile", "8", "8", "8", "--dtype", "ü"), "there is no element type 'ü'"),
    (("table", "tile"), "there is no table 'tile'; did you mean 'tiling'?"),
    (("table", "devices", "--device", "h300"), "no device is named 'h300'"),
    (("learn", "check", "no/such/file.cu"), "there is no file no/such/file.cu"),
    ((*OCCUPANCY, "--cluster", "8", "--blocks", "12"), "12 blocks are no whole number of clusters of 8"),
    ((*OCCUPANCY, "--cluster", "8", "--blocks", "7"), "the launch fails; a grid of 8 would not"),
    ((*OCCUPANCY, "--blocks", HUGE), "a grid has 1 to"),
    ((*OCCUPANCY, "--blocks", "-1"), "blocks is -1; a grid has 1 to"),
    ((*OCCUPANCY, "--shared", "-5"), "write bytes, or 48K or 48KiB"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_a_command_says_what_was_meant(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], message: str
) -> None:
    outcome = run(capsys, *command)
    assert outcome.code == 2
    assert outcome.out == ""
    assert message in outcome.err


def test_whole_clusters_are_told_that_they_start_whole(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, *OCCUPANCY, "--cluster", "8", "--blocks", "1600")
    assert outcome.code == 0
    assert "clusters of 8 start whole, so some of them later" in outcome.out


@pytest.mark.parametrize(
    "call",
    [
        lambda device: sw.occupancy(256, 40, device=device),
        lambda device: sw.advise_gemv(4096, 4096, device=device),
        lambda device: sw.advise_transpose(64, 64, device=device),
        lambda device: sw.advise_records("x:f4", "x", device=device),
        lambda device: sw.plan_tiles(64, 64, 64, device=device),
    ],
)
@pytest.mark.parametrize("device", [None, 90, b"h200"])
def test_a_device_that_is_no_name_is_refused(call: Callable[[object], object], device: object) -> None:
    with pytest.raises(sw.SectorwiseError, match="it must be the name of a device, such as 'h200', or a DeviceSpec"):
        call(device)


def test_a_device_that_is_loaded_is_taken_as_it_is() -> None:
    spec = load_device("h200")
    assert load_device(spec) is spec
