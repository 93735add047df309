"""Imports inside functions: each one is in a `deferred` block that gives the reason."""

import ast
import importlib
import importlib.metadata
import subprocess
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mplab.base.deferred import deferred
from mplab.base.errors import LabNotReadyError
from mplab.base.extras import MODULES
from mplab.base.places import ROOT

PROGRAMS = {"phone-emulator/mplab/device/apps/chat.py"}
"""Separate programs, which import nothing of mplab."""


def imports_inside(tree: ast.Module) -> Iterator[tuple[int, bool]]:
    """Yield the line of each import inside a function, and whether `deferred` gives the reason."""

    def walk(node: ast.AST, *, inside: bool, why: bool) -> Iterator[tuple[int, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom) and inside:
                yield child.lineno, why
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            says_why = isinstance(child, ast.With) and any(
                isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func) == "deferred"
                for item in child.items
            )
            yield from walk(child, inside=inside or is_function, why=says_why or (why and not is_function))

    yield from walk(tree, inside=False, why=False)


def test_every_import_inside_a_function_says_why() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--", "orchestrator", "analysis", "ui-scenarios", "proxy-docker", "phone-emulator"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    files = [name for name in listed.stdout.split() if name.endswith(".py") and name not in PROGRAMS]
    assert files
    silent = [
        f"{name}:{line}"
        for name in files
        for line, why in imports_inside(ast.parse((ROOT / name).read_text()))
        if not why
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    import x\n", [(2, False)]),
        ("def f():\n    with deferred('slow'):\n        import x\n", [(3, True)]),
        ("import x\n", []),
        ("def f():\n    with other():\n        from x import y\n", [(3, False)]),
    ],
)
def test_the_search_finds_them(source: str, found: list[tuple[int, bool]]) -> None:
    assert list(imports_inside(ast.parse(source))) == found


def test_a_missing_extra_says_how_it_is_installed() -> None:
    message = r"dask is not installed. Run: pip install 'mplab\[cluster\]'"
    with pytest.raises(LabNotReadyError, match=message), deferred("slow"):
        raise ModuleNotFoundError("No module named 'dask.array'", name="dask.array")


def test_every_module_of_an_extra_is_a_dependency_of_it() -> None:
    needed = [Requirement(text) for text in importlib.metadata.requires("mplab") or ()]
    distributions = importlib.metadata.packages_distributions()
    for module, extra in MODULES.items():
        names = {canonicalize_name(name) for name in distributions[module]}
        of_extra = {canonicalize_name(r.name) for r in needed if r.marker and r.marker.evaluate({"extra": extra})}
        always = {canonicalize_name(r.name) for r in needed if not r.marker or r.marker.evaluate({"extra": ""})}
        assert names <= of_extra - always, module


def test_a_missing_module_of_mplab_is_a_defect() -> None:
    with pytest.raises(ModuleNotFoundError), deferred("slow"):
        importlib.import_module("mplab.no_such_module")
