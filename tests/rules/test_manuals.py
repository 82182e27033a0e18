"""The examples of every manual page are compiled and run: the bad one is found, the good one is silent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from sectorwise.rules.table import RULES
from tests.rules.manuals import analyze_example, read_sections

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from sectorwise.rules.rule import Rule

SECTIONS = ["What it does", "Why it costs", "Example", "Use instead", "How it is computed"]


def name_rule(rule: Rule) -> str:
    return rule.code


def test_codes_and_names_are_distinct_and_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)


def mask_numbers(message: str) -> str:
    """Numbers that the model of the caches gives are held by its own tests; here the sentence counts."""
    return re.sub(r"\d[\d,.]*", "#", message)


@pytest.mark.parametrize("rule", RULES, ids=name_rule)
def test_manual_has_every_section_and_fits_a_terminal(rule: Rule) -> None:
    assert list(read_sections(rule)) == SECTIONS
    assert all(len(line) <= 120 for line in rule.manual.splitlines())


@pytest.mark.parametrize("rule", RULES, ids=name_rule)
def test_example_is_found(rule: Rule, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (kernel,) = analyze_example(rule, "Example", tmp_path).kernels
    assert kernel.limitations == ()
    found = [finding for finding in kernel.findings if finding.code == rule.code]
    assert found
    assert {finding.severity for finding in found} == {rule.severity}
    assert all(finding.location is not None for finding in found)
    hide = mask_numbers if rule.follows_caches else str
    assert [(finding.code, hide(finding.message), finding.advice) for finding in kernel.findings] == snapshot


@pytest.mark.parametrize("rule", RULES, ids=name_rule)
def test_what_is_advised_is_silent_for_all_rules(rule: Rule, tmp_path: Path) -> None:
    (kernel,) = analyze_example(rule, "Use instead", tmp_path).kernels
    assert (kernel.findings, kernel.limitations, kernel.faults, kernel.hangs) == ((), (), (), ())
