"""Turns an analysis into one page for browsers, with its data, style and scripts inside."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from sectorwise.report.html.payload import gather

if TYPE_CHECKING:
    from jinja2 import Environment

    from sectorwise.analysis.data import Analysis

MODULES: Final = ("dom.js", "figures.js", "model.js", "warp.js", "charts.js", "code.js", "inspector.js", "main.js")
"""The scripts, each after those that it imports from."""

_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:function|const) (\w+))", re.MULTILINE)


def render(analysis: Analysis) -> str:
    """The page as text, with a final newline; it loads nothing, and shows whatever the source holds as text."""
    body = _make_environment().get_template("report.html")
    data = json.dumps(gather(analysis), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return wrap(
        f"{analysis.source} · sectorwise",
        body.render(analysis=analysis, data=_quote(data), script=_quote_script(bundle())),
    )


def wrap(title: str, body: str) -> str:
    """A whole page of the style of all pages around a body, which is markup already."""
    from markupsafe import Markup

    page = _make_environment().get_template("page.html")
    return page.render(title=title, style=Markup(read_asset("style.css")), body=Markup(body)) + "\n"  # noqa: S704


def bundle() -> str:
    """The scripts as one: each module a function that gives what it exports, so that the page loads no second file."""
    parts = []
    for name in MODULES:
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


def _quote_script(script: str) -> object:
    from markupsafe import Markup

    return Markup(script)  # noqa: S704 - our own


@cache
def _make_environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(loader=FunctionLoader(read_asset), autoescape=True, undefined=StrictUndefined)
