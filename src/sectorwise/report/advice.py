"""Turns advice into text for a terminal or a JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sectorwise.report.json import to_plain
from sectorwise.report.page import Role, paint, tidy

if TYPE_CHECKING:
    from sectorwise.advise.ranking import Ranking
    from sectorwise.report.page import Page

SCHEMA: Final = "sectorwise.advice/1"


def render(ranking: Ranking[Any], page: Page) -> str:
    """The advice for people: a table, the fastest first, and why the others are not."""
    return render_text(str(ranking), page)


def render_text(text: str, page: Page) -> str:
    """A text of lines, the first of them its title."""
    head, *rest = [tidy(page, line) for line in text.splitlines()]
    return "\n".join([paint(page, Role.TITLE, head), *rest]) + "\n"


def render_json(ranking: Ranking[Any]) -> str:
    """The same for programs."""
    plain = to_plain(ranking)
    document = {"schema": SCHEMA, "advice": plain}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
