"""The registry finds scenarios; a scenario's folder imports no other scenario."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.plugins import SCENARIOS
from mplab.lab.catalog import load_android_scenario, load_scenario, scenario_names
from mplab.scenarios.base import Scenario

LOWER = {"analysis", "base", "drivers", "format", "scenarios", "userfiles"}
"""Layers that a scenario may import."""


def test_every_folder_with_a_scenario_is_found() -> None:
    assert {"download", "web"} <= set(scenario_names())
    assert load_scenario("download").name == "download"


def imported(path: Path, package: str) -> Iterator[str]:
    """Yield the absolute names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            parents = parents[: len(parents) - node.level + 1] if node.level else []
            yield ".".join([*parents, *([node.module] if node.module else [])])


@pytest.mark.parametrize("name", scenario_names())
def test_a_folder_stands_alone(name: str) -> None:
    """Allow only the folder's own modules, the scenarios' shared base, and lower layers."""
    package = SCENARIOS[name].module
    for path in SCENARIOS[name].folder().glob("*.py"):
        ours = [module for module in imported(path, package) if module.startswith("mplab.")]
        assert {module.split(".")[1] for module in ours} <= LOWER, path.name
        shared = ("mplab.scenarios.base", package)
        scenarios = [module for module in ours if module.startswith("mplab.scenarios")]
        assert [
            module for module in scenarios if not f"{module}.".startswith(tuple(f"{prefix}." for prefix in shared))
        ] == []


@pytest.mark.parametrize("name", scenario_names())
def test_every_folder_has_the_base_class(name: str) -> None:
    for scenario in (load_scenario(name), load_android_scenario(name)):
        assert isinstance(scenario, Scenario)
        assert scenario.name == name
        assert issubclass(scenario.parameters, load_scenario(name).parameters)


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="unknown scenario 'nosuch'"):
        load_scenario("nosuch")


def test_an_object_without_the_base_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mplab.scenarios.web.scenario")
    module.SCENARIO = object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(
        LabNotReadyError, match=r"scenario web: SCENARIO of mplab.scenarios.web.scenario is of type object"
    ):
        load_scenario("web")


def test_orchestrator_and_analysis_share_the_folders_in_one_process() -> None:
    code = (
        "from mplab.analysis.scores.plugins import load; load('web');"
        "from mplab.lab.catalog import load_scenario; load_scenario('web'); load_scenario('download');"
        "load('download')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
