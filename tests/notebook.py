"""Run the code cells of a notebook, and store their outputs in it, without Jupyter.

``python -m tests.notebook docs/examples/NAME.ipynb FOLDER`` runs it in FOLDER, and stores the outputs. For
``results.ipynb`` the folder has ``runs``; for ``traces.ipynb`` it has ``captures``, and ``mptrace`` is in the PATH.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Output = dict[str, Any]
_MIMES = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def read(notebook: Path) -> dict[str, Any]:
    """Return the content of a notebook."""
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    return content


def code(content: dict[str, Any]) -> list[str]:
    """Return the source of each code cell."""
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def outputs(sources: Sequence[str]) -> list[list[Output]]:
    """Run code cells in one namespace, and return the outputs of each: its text, and the value of its last expression.

    An exception of a cell ends the run.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [_outputs_of(source, namespace, count) for count, source in enumerate(sources, 1)]


def _outputs_of(source: str, namespace: dict[str, Any], count: int) -> list[Output]:
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)  # noqa: S102 - a notebook of this repository
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)  # noqa: S307 - as above
    found: list[Output] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        shown = {mime: getattr(value, name)() for mime, name in _MIMES.items() if hasattr(value, name)}
        data: dict[str, Any] = {mime: _lines(text) for mime, text in shown.items() if text is not None}
        if isinstance(value, Figure) and not data:
            data["image/png"] = _png(value)
        data["text/plain"] = _lines(repr(value))
        found.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return found


def _png(figure: Figure) -> str:
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=80)
    return base64.b64encode(image.getvalue()).decode()


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(notebook: Path, folder: Path) -> None:
    """Run a notebook in a folder, and store its outputs."""
    content = read(notebook)
    target = notebook.resolve()
    os.chdir(folder)
    stored = outputs(code(content))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for count, (cell, found) in enumerate(zip(cells, stored, strict=True), 1):
        cell.update(execution_count=count, outputs=found)
    target.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
