"""Scenarios are found by folder, whoever imports them first."""

import re
import subprocess
import sys

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import SCENARIOS
from mplab.lab.catalog import load_scenario, scenario_names


def test_every_folder_with_a_scenario_is_found() -> None:
    assert {"download", "web"} <= set(scenario_names())
    assert load_scenario("download").name == "download"


@pytest.mark.parametrize("name", scenario_names())
def test_a_folder_stands_alone(name: str) -> None:
    for path in SCENARIOS[name].folder().glob("*.py"):
        assert re.findall(r"(?m)^\s*(?:from \.\.|(?:from|import) mplab.scenarios).*", path.read_text()) == [], path.name


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(LabNotReadyError, match="nosuch"):
        load_scenario("nosuch")


def test_orchestrator_and_analysis_share_the_folders_in_one_process() -> None:
    code = (
        "from mplab.analysis.plugins import load; load('web');"
        "from mplab.lab.catalog import load_scenario; load_scenario('web'); load_scenario('download');"
        "load('download')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
