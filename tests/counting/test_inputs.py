"""What the counting rules can look at: the form of an instruction, addresses and masks, and no kernel's name."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import sectorwise.counting
from sectorwise.counting.request import Access, Requests

MODULES = sorted(Path(sectorwise.counting.__file__).parent.glob("*.py"))


def test_requests_hold_form_addresses_sizes_and_masks_only() -> None:
    assert {field.name for field in fields(Access)} == {
        "space",
        "operation",
        "width_bytes",
        "opcode",
        "modifiers",
        "matrices",
        "guard_negated",
        "taken_to_read",
    }
    assert {field.name for field in fields(Requests)} == {
        "access",
        "addresses",
        "mask",
        "shared_addresses",
        "source_bytes",
        "generic_spaces",
        "issued",
    }


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_rules_know_nothing_but_requests(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in imported if name.startswith("sectorwise")}
    assert all(name.startswith("sectorwise.counting") or name == "sectorwise.errors" for name in ours)
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not read & {"kernel", "kernel_name", "readable_name", "name"}
