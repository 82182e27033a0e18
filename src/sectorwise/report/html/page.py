"""Turns an analysis into one page for browsers, with its data, style and scripts inside."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from sectorwise.report.html.payload import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from sectorwise.analysis.data import Analysis

MODULES: Final = tuple(
    f"{name}.js" for name in ("dom", "theme", "figures", "model", "warp", "charts", "code", "inspector", "main")
)
"""The scripts of a report, each after those that it imports from."""

_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:function|const) (\w+))", re.MULTILINE)


def render(analysis: Analysis) -> str:
    """The page as text, with a final newline; it loads nothing, and shows whatever the source holds as text."""
    data = json.dumps(gather(analysis), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body = render_body("report.html", MODULES, analysis=analysis, data=_quote(data))
    return wrap(f"{analysis.source} · sectorwise", body)


def render_body(template: str, modules: Sequence[str], **values: object) -> str:
    """What stands in the body of a page: a template with its values, and scripts."""
    from markupsafe import Markup

    script = Markup(bundle(modules))  # noqa: S704 - our own
    return _make_environment().get_template(template).render(script=script, **values)


def render_fragment(template: str, **values: object) -> str:
    """A piece of markup that stands in a page of somebody else, such as a notebook."""
    return _make_environment().get_template(template).render(**values)


def wrap(title: str, body: str) -> str:
    """A whole page of the style of all pages around a body, which is markup already."""
    from markupsafe import Markup

    page = _make_environment().get_template("page.html")
    return page.render(title=title, style=Markup(read_asset("style.css")), body=Markup(body)) + "\n"  # noqa: S704


def bundle(modules: Sequence[str] = MODULES) -> str:
    """The scripts as one: each module a function that gives what it exports, so that the page loads no second file."""
    parts = []
    for name in modules:
        text = read_asset(name)
        exported = ", ".join(found[2] for found in _EXPORT.finditer(text))
        body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = \2Module;", text))
        parts.append(f"const {name.removesuffix('.js')}Module = (() => {{\n{body}return {{ {exported} }};\n}})();\n")
    return f'"use strict";\n{"".join(parts)}'


@cache
def read_asset(name: str) -> str:
    """The text of a file beside this module."""
    return resources.files("sectorwise.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def _quote(data: str) -> object:
    """JSON that can stand in a script element: no character of it can end the element or begin a comment."""
    from markupsafe import Markup

    return Markup(data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


@cache
def _make_environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
