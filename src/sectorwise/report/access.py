"""Turns what an access costs into text for a terminal, with the picture of its lanes, or a JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sectorwise.advise.access import LineCost, describe_access
from sectorwise.report.json import to_plain
from sectorwise.report.page import Role, fold, paint
from sectorwise.report.pictures import draw_picture

if TYPE_CHECKING:
    from sectorwise.advise.access import AccessCost
    from sectorwise.report.page import Page

SCHEMA: Final = "sectorwise.access/1"


def render(cost: AccessCost | LineCost, page: Page) -> str:
    """The report for people."""
    if isinstance(cost, LineCost):
        return "".join(f"{line}\n" for text in str(cost).splitlines() for line in fold(page, text))
    head, *rest = describe_access(cost)
    lines = [paint(page, Role.TITLE, line) for line in fold(page, head)]
    lines += [line for text in rest for line in fold(page, text)]
    lines += ["", *(f"  {line}" for line in draw_picture(cost.picture, page))]
    return "".join(f"{line}\n" for line in lines)


def render_json(cost: AccessCost | LineCost) -> str:
    """The same for programs."""
    document = {"schema": SCHEMA, "access": {**_plain(cost), "efficiency": cost.efficiency}}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _plain(cost: AccessCost | LineCost) -> dict[str, object]:
    plain = to_plain(cost)
    return dict(plain) if isinstance(plain, dict) else {}
