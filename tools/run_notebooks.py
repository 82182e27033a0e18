"""Turns the notebooks of docs into executed ones: runs their cells, and keeps what they print and show.

python -m tools.run_notebooks docs/notebooks/*.ipynb
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

Output = dict[str, Any]


def run_cells(sources: list[str]) -> list[list[Output]]:
    """What each cell prints, and what its last expression shows, as a notebook's outputs.

    Cells run in a folder of their own, so that files that they write go away.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [_run_cell(source, names, number) for number, source in enumerate(sources, 1)]
        finally:
            os.chdir(before)


def _run_cell(source: str, names: dict[str, Any], number: int) -> list[Output]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)  # noqa: S102 - our own notebooks
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)  # noqa: S307
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _split(printed.getvalue())})
    if value is not None:
        outputs.append(
            {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": _show(value)}
        )
    return outputs


def _show(value: object) -> Output:
    if hasattr(value, "savefig"):
        import matplotlib as mpl

        drawn = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "sectorwise"}):
            value.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        return {"image/svg+xml": _split(drawn.getvalue()), "text/plain": [type(value).__name__]}
    if hasattr(value, "_repr_html_"):
        return {"text/html": _split(value._repr_html_()), "text/plain": [type(value).__name__]}
    return {"text/plain": _split(repr(value))}


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def read_sources(path: Path) -> list[str]:
    """The code cells of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def execute(path: Path) -> None:
    """Run a notebook, and write it with its outputs."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = run_cells(["".join(cell["source"]) for cell in code])
    for number, (cell, shown) in enumerate(zip(code, outputs, strict=True), 1):
        cell["outputs"], cell["execution_count"] = shown, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        execute(Path(name))
        print(name)
