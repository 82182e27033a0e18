"""Turns the rules of the source tree that no linter knows into checks of its syntax trees."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


NAMES = {_name(path) for path in MODULES}
PACKAGES = {_name(path) for path in MODULES if path.name == "__init__.py"}


def find_long_functions(tree: ast.Module) -> list[tuple[str, int]]:
    """Functions whose statements span too many lines, decorators and docstring not counted."""
    long = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
            lines = (node.end_lineno or node.lineno) - first.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                long.append((node.name, lines))
    return long


def find_facade_imports(tree: ast.Module) -> list[str]:
    """Packages of this project from which something other than a module is imported, or that are imported whole."""
    facades = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module in PACKAGES:
                facades += [module for alias in names if f"{module}.{alias.name}" not in NAMES]
            case ast.Import(names=names):
                facades += [alias.name for alias in names if alias.name in PACKAGES]
    return facades


def is_one_sentence(docstring: str) -> bool:
    """Whether the first paragraph is a single sentence; more paragraphs may follow."""
    paragraph = docstring.split("\n\n", maxsplit=1)[0].replace("\n", " ").strip()
    return paragraph.endswith(".") and re.search(r"[.!?] +[A-Z]", paragraph) is None


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_is_small_and_says_what_it_does(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree)
    assert docstring is not None
    assert is_one_sentence(docstring), docstring
    assert len(text.splitlines()) <= MAX_MODULE_LINES
    assert find_long_functions(tree) == []
    if _name(path) != "sectorwise":
        assert find_facade_imports(tree) == []


def test_long_function_is_found() -> None:
    body = "\n".join("    x = 1" for _ in range(51))
    assert find_long_functions(ast.parse(f'def f():\n    """Long.\n\n    Docs.\n    """\n{body}')) == [("f", 51)]
    assert find_long_functions(ast.parse(f"def f():\n{body}".removesuffix("    x = 1"))) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from sectorwise import __version__",
        "import sectorwise",
        "from sectorwise.binary import Kernel",
        "import sectorwise.binary",
        "def f():\n    from sectorwise.machine import Port",
    ],
)
def test_facade_import_is_found(statement: str) -> None:
    assert len(find_facade_imports(ast.parse(statement))) == 1


@pytest.mark.parametrize(
    "statement",
    ["from sectorwise.binary.ir import Kernel", "from sectorwise.binary import ir", "import sectorwise.device"],
)
def test_defining_module_is_no_facade(statement: str) -> None:
    assert find_facade_imports(ast.parse(statement)) == []


@pytest.mark.parametrize("docstring", ["Turns a into b", "Turns a into b. Also does c.", "", "Why? Because it is."])
def test_loose_docstring_is_found(docstring: str) -> None:
    assert not is_one_sentence(docstring)


def test_sentence_with_dots_inside_is_one() -> None:
    assert is_one_sentence("Turns `a.b` and `c.d`, e.g. two,\nto one.\n\nMore. And more.")
