from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sectorwise.advise.tables import PATTERNS, make_table, tabulate_access_patterns, tabulate_devices
from sectorwise.device import load_device
from tests.cli.commands import run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


@pytest.mark.parametrize("name", ["access-patterns", "tiling", "devices"])
def test_the_tables(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, name: str) -> None:
    device = () if name == "devices" else ("--device", "h100-sxm")  # that table has all of them
    outcome = run(capsys, "table", name, *device)
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert outcome.out == snapshot


def test_strides_are_the_closed_form() -> None:
    rows = {row[0]: row for row in tabulate_access_patterns().rows[: len(PATTERNS)]}
    for name, _, _, _ in PATTERNS[4:9]:
        step = 4 * int("".join(filter(str.isdigit, name.split(":")[0])))
        assert rows[name][1] == str(min(32, 32 * step // 32))
        assert rows[name][3] == str(min(32, 32 * step // 128))
        assert rows[name][4].replace(",", "") == f"{max(32 * min(step, 64), 128)} B"


def test_devices_need_bytes_in_flight_as_measured() -> None:
    row = next(each for each in tabulate_devices().rows if each[0] == "h200-sxm")
    assert 20 < float(row[-1].split()[0]) < 32  # 24 to 32 KB an SM were measured for 95 %
    assert row[1] == str(load_device("h200").sm_count)


def test_documents_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "table", "tiling", "--format", "json").out)
    assert document["rows"][4]["tile"] == "128 x 128"
    outcome = run(capsys, "table", "tilings")
    assert (outcome.code, outcome.err) == (2, "error: there is no table 'tilings'; did you mean 'tiling'?\n")
    assert make_table("tiling").to_records()[0]["FLOP/B"] == "8.00"
