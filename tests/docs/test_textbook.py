"""Every row of the page "Textbook numbers, checked" is true, and the page is what the claims say."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from sectorwise.cli.main import COMMANDS
from tests.cli.commands import run
from tools.measure_textbook import CUBINS, FOLDER, compare, read_times
from tools.write_textbook import PAGE, SECTIONS, write_page

if TYPE_CHECKING:
    from tools.textbook.claim import Claim

CLAIMS = [claim for _, claims in SECTIONS for claim in claims]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.code)
def test_the_numbers_of_a_claim_hold(claim: Claim) -> None:
    assert claim.computed or claim.measured
    assert bool(claim.measured) != bool(claim.unmeasured)
    for number in (*claim.computed, *claim.measured):
        assert number.holds(), (number.name, number.find(), number.stated)


def test_no_statement_is_left_out() -> None:
    counts = {"C": 13, "L": 5, "S": 8, "T": 13, "N": 5}
    assert [claim.code for claim in CLAIMS] == [
        f"{letter}{number}" for letter, last in counts.items() for number in range(1, last + 1)
    ]


def test_commands_are_commands() -> None:
    for claim in CLAIMS:
        words = shlex.split(claim.command)
        measures = words[:3] == ["python", "-m", "tools.measure_textbook"] and words[3] in CUBINS
        assert measures or (words[0] == "sectorwise" and words[1] in COMMANDS), claim.code


def test_quick_commands_run(capsys: pytest.CaptureFixture[str]) -> None:
    refused = {"T3", "T11"}
    for claim in CLAIMS:
        words = shlex.split(claim.command)
        if words[0] == "sectorwise" and words[1] != "advise":
            assert run(capsys, *words[1:]).code == (2 if claim.code in refused else 0), claim.command


def test_the_page_is_what_the_claims_say() -> None:
    assert write_page() == PAGE.read_text(encoding="utf-8")


def test_what_was_measured_can_be_measured_again() -> None:
    for family, cubin in CUBINS.items():
        assert (FOLDER / cubin).is_file()
        assert (FOLDER / f"{family}.cu").is_file()
        recorded = read_times(FOLDER / f"{family}.json")
        lines = compare(recorded, {name: 2 * time_us for name, time_us in recorded.items()}).splitlines()
        assert len(lines) == len(recorded) + 1
        assert all(line.endswith("  2.00") for line in lines[1:])
