"""Every row of the page "Textbook numbers, checked" is true, and the page is what the claims say."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from sectorwise.cli.main import COMMANDS
from tests.cli.commands import run
from tools.write_textbook import PAGE, SECTIONS, write_page

if TYPE_CHECKING:
    from tools.textbook.claim import Claim

CLAIMS = [claim for _, claims in SECTIONS for claim in claims]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.code)
def test_the_numbers_of_a_claim_hold(claim: Claim) -> None:
    assert claim.computed or claim.measured
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
        assert words[0].startswith("tests/") or (words[0] == "sectorwise" and words[1] in COMMANDS), claim.code


def test_quick_commands_run(capsys: pytest.CaptureFixture[str]) -> None:
    refused = {"T3", "T11"}
    for claim in CLAIMS:
        words = shlex.split(claim.command)
        if words[0] == "sectorwise" and words[1] != "advise":
            assert run(capsys, *words[1:]).code == (2 if claim.code in refused else 0), claim.command


def test_the_page_is_what_the_claims_say() -> None:
    assert write_page() == PAGE.read_text(encoding="utf-8")
