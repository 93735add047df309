"""Modules that the processes of a run import at their start: none that only some verbs, labs or scenarios need."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pkgutil import iter_modules
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner

from mplab.base.places import ROOT
from mplab.cli import verbs as verbs_package
from mplab.cli.main import app
from mplab.cli.verb_loader import short_help
from mplab.cli.verbs import PANELS

SLOW = {
    "PIL", "adbutils", "appium", "cryptography", "dask", "distributed", "docker", "duckdb", "fsspec", "jinja2", "lxml",
    "matplotlib", "numpy", "paramiko", "polars", "requests", "scipy", "selenium", "tornado", "trustme", "uiautomator2",
}  # fmt: skip
PLAN = "from mplab.cli.main import app; app(['plan', 'experiments/demo.yaml'], standalone_mode=False)"
MODULES = [
    f"mplab.cli.verbs.{package}.{module.name}"
    for package in PANELS
    for module in iter_modules([f"{verbs_package.__path__[0]}/{package}"])
]
FROM_PYTHON = "import mplab.run; mplab.run.plan('experiments/demo.yaml'); mplab.run.execute, mplab.run.resume"


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has imported after `code`."""
    code += "; import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(result.stderr.splitlines()[-1]))


def imported_by(code: str) -> set[str]:
    """Return the packages that a new interpreter has imported after `code`."""
    return {name.partition(".")[0] for name in modules_after(code)}


@pytest.mark.parametrize("code", ["import mplab.run.labside.inside", PLAN, FROM_PYTHON])
def test_nothing_slow_is_imported_before_it_is_needed(code: str) -> None:
    modules = imported_by(code)
    assert {"mplab", "pydantic"} <= modules
    assert SLOW & modules == set()


def test_the_analysis_imports_scipy_stats_only_when_it_calls_it() -> None:
    """It would be half of the analysis's start-up time, and a run with few repetitions never calls it."""
    modules = modules_after("import mplab.run.hostside.concluding, mplab.analysis.verdicts.compare")
    assert "scipy" in modules
    assert "scipy.stats" not in modules


def test_runs_from_python_need_nothing_of_the_command_line() -> None:
    modules = modules_after(FROM_PYTHON)
    assert "typer" not in modules
    assert not [name for name in modules if name.startswith("mplab.cli")]


def test_help_imports_no_verb() -> None:
    code = "from mplab.cli.main import app; app(['--help'], standalone_mode=False)"
    imported = {name for name in modules_after(code) if name.startswith("mplab.cli.")}
    packages = {f"mplab.cli.verbs.{name}" for name in PANELS}
    modules = {
        "mplab.cli.command",
        "mplab.cli.failure",
        "mplab.cli.main",
        "mplab.cli.output",
        "mplab.cli.verb_loader",
        "mplab.cli.verbs",
    }
    assert imported == modules | packages


def test_what_is_slow_can_be_imported_here() -> None:
    """Check that the slow packages are installed: without them, the test above proves nothing."""
    assert imported_by(f"import {', '.join(sorted(SLOW))}") >= SLOW


@pytest.mark.parametrize("module", MODULES)
def test_a_verb_is_a_module_with_a_help_and_a_function_or_an_app(module: str) -> None:
    loaded = importlib.import_module(module)
    assert short_help(module) == (loaded.__doc__ or "").splitlines()[0] != ""
    name = module.rpartition(".")[2]
    if hasattr(loaded, "app"):
        assert isinstance(loaded.app, typer.Typer)
        assert loaded.app.info.help == loaded.__doc__ or not isinstance(loaded.app.info.help, str), (
            "it has no other help"
        )
    else:
        assert inspect.getdoc(getattr(loaded, name)) is None, "its help is the docstring of the module"


def test_every_package_of_verbs_is_a_panel() -> None:
    assert {module.name for module in iter_modules(verbs_package.__path__)} == set(PANELS)
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert [title for title in re.findall(r"^╭─ (.*?) ─", shown, re.MULTILINE) if title != "Options"] == [
        *PANELS.values()
    ]


def verbs(group: TyperGroup, context: Any) -> Iterator[tuple[str, ...]]:
    """Yield every verb below a group that its help lists, as the words that lead to it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield (name,)
        if isinstance(inner.command, TyperGroup):
            yield from ((name, *below) for below in verbs(inner.command, inner))


PROGRAM: Any = typer.main.get_command(app)
ALL = list(verbs(PROGRAM, PROGRAM.make_context("mplab", [], resilient_parsing=True)))


def command_of(verb: tuple[str, ...]) -> Any:
    """Return the command of a verb."""
    command = PROGRAM
    for name in verb:
        command = command.get_command(None, name).make_context(name, [], resilient_parsing=True).command
    return command


def test_all_verbs_are_found() -> None:
    assert {("plan",), ("lab", "device"), ("campaign", "run"), ("scenarios", "record")} <= set(ALL)
    assert len(ALL) > 50


@pytest.mark.parametrize("verb", ALL, ids=" ".join)
def test_a_verb_has_a_help_of_its_own(verb: tuple[str, ...]) -> None:
    """Check that the verb's help contains the words that the help of its group shows."""
    *above, name = verb
    shown = CliRunner().invoke(app, [*above, "--help"], env={"COLUMNS": "250"}).stdout
    summary = next(line.strip("│ \n").partition(name)[2].strip() for line in shown.splitlines() if f"│ {name} " in line)
    result = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "250"})
    assert result.exit_code == 0
    assert summary in result.stdout
    assert f"{' '.join(verb)} [OPTIONS]" in result.stdout
    assert not re.findall(r"<(?:bool|str|int|path|list)|\[\[", result.stdout), "names, no types of Python"
    for parameter in command_of(verb).params:
        if not parameter.hidden:
            text = parameter.help or ""
            assert (text[:1].isupper(), text[-1:]) == (True, "."), f"{parameter.name}: a sentence"
