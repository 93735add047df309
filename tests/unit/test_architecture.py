"""Every name in ARCHITECTURE.md exists."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
PACKAGES = ("analysis", "base", "campaign", "cell", "cli", "device", "drivers", "format", "lab", "run", "scenarios")
MORE_PACKAGES = ("dashboard", "results", "testing", "userfiles")
NAMES = [span for span in SPANS if re.fullmatch(rf"({'|'.join((*PACKAGES, *MORE_PACKAGES))})(\.\w+)+", span)]
NO_NAMES = {"cell.json"}
"""Files of the run directory whose names look like dotted names."""
FOLDERS = {"report/", "attempts/"}
"""Starts of paths in a run directory."""
PATHS = [span for span in SPANS if re.fullmatch(r"[\w.-]+/[\w./-]*", span) and span.split("/")[0] + "/" not in FOLDERS]
MOST_TERMS = 40


def resolve(name: str) -> object:
    """Import the longest prefix of a name that is a module, and look up the rest in that module."""
    parts = ["mplab", *name.split(".")]
    for length in range(len(parts), 1, -1):
        try:
            resolved: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            resolved = getattr(resolved, attribute)
        return resolved
    raise AttributeError(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NO_NAMES])
def test_a_name_exists(name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_names_are_found_in_the_text() -> None:
    assert len(NAMES) > 60
    assert len(PATHS) > 20
    with pytest.raises(AttributeError):
        resolve("run.planning.no_such_function")


def test_the_glossary_is_short_and_in_order() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", TEXT[TEXT.index("## Glossary") :], re.MULTILINE)[2:]
    assert rows == sorted(rows, key=str.lower)
    assert len(rows) <= MOST_TERMS


def test_no_public_class_name_occurs_twice() -> None:
    """One name means one thing, so that it can be searched for and read without its module."""
    places: dict[str, list[str]] = {}
    for part in ("orchestrator", "analysis", "ui-scenarios", "proxy-docker", "phone-emulator"):
        for file in (ROOT / part / "mplab").rglob("*.py"):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 500, "the folders were found"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
