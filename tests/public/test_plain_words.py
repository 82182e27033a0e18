"""What people get wrong is answered with what was expected and what was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

import sectorwise as sw
from sectorwise.cli.main import cli
from sectorwise.errors import ArgumentError, LaunchError

if TYPE_CHECKING:
    from pathlib import Path

LANES = np.arange(32) * 4
KERNEL = """// sectorwise: launch set<<<1, 32>>>(i32[32])
extern "C" __global__ void set(int* out) { out[threadIdx.x] = 1; }
"""


@pytest.mark.parametrize("mask", [0xFFFF, [*range(32)], [2] * 32])
def test_masks_are_no_numbers_of_bits(mask: int | list[int]) -> None:
    with pytest.raises(ArgumentError, match="mask has a bool for each address, not a number whose bits are lanes"):
        sw.sectors(LANES, mask=mask)
    assert sw.sectors(LANES, mask=[1] * 8 + [0] * 24) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((256.5, 40, 0), "threads_per_block is 256.5; it must be a whole number"),
        (("256", 40, 0), "threads_per_block is '256'; it must be a whole number"),
        ((256, 40.0, 0), "registers_per_thread is 40.0; it must be a whole number"),
        ((256, 40, True), "shared_bytes_per_block is True; it must be a whole number"),
    ],
)
def test_occupancy_takes_whole_numbers(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        sw.occupancy(*arguments)  # type: ignore[arg-type]
    threads, registers = np.array([256, 40])
    assert sw.occupancy(threads, registers).blocks_per_sm == 6


def test_an_analysis_is_not_a_source(tmp_path: Path) -> None:
    path = tmp_path / "set.cu"
    path.write_text(KERNEL)
    analysis = sw.assert_clean(path)
    with pytest.raises(TypeError, match="assert_clean takes what analyze takes, a source and its launches, not an"):
        sw.assert_clean(analysis)  # type: ignore[arg-type]


def test_folders_and_macros_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "set.cu"
    path.write_text(KERNEL)
    with pytest.raises(ArgumentError, match=r"--include: there is no folder .*nowhere"):
        sw.analyze(path, include_folders=(tmp_path / "nowhere",))
    for macro in ("", "=1", "2X", "A B"):
        with pytest.raises(ArgumentError, match="defines no macro; write NAME or NAME=VALUE"):
            sw.analyze(path, macros=(macro,))
    for macro in ("A", "B=1", "C(x)=x"):
        sw.analyze(path, macros=(macro,))


def test_launch_file_without_a_case(tmp_path: Path) -> None:
    path = tmp_path / "launches.json"
    path.write_text('{"source": "set.cu", "cases": []}')
    with pytest.raises(LaunchError, match="expected at least one case, got none"):
        sw.analyze(tmp_path / "set.cu", path)


def test_misspelled_command_and_half_a_byte() -> None:
    result = CliRunner().invoke(cli, ["chek", "a.cu"])
    assert (result.exit_code, "Did you mean 'check'?" in result.output) == (2, True)
    assert "No such command 'frobnicate'" in CliRunner().invoke(cli, ["frobnicate"]).output
    result = CliRunner().invoke(cli, ["occupancy", "--threads", "256", "--registers", "40", "--shared", "1.5"])
    assert isinstance(result.exception, ArgumentError)
    assert str(result.exception) == "--shared: '1.5' is no whole number of bytes"
