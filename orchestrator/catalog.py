"""What an experiment file can name: the transports, scenarios and link conditions that are there."""

from functools import cache
from pathlib import Path
from typing import cast

from orchestrator.plugins import folders_with, load_folder
from orchestrator.programs import CHECKOUT, FIREFOX, Program
from orchestrator.scenario import Scenario, browser_of, programs_declared_by
from orchestrator.services import load_service
from orchestrator.shaper.abilities import SHAPERS
from orchestrator.spec.resolve import Catalog
from orchestrator.transport.registry import INFOS

SCENARIOS_DIR = CHECKOUT / "ui-scenarios"
LINKS_DIR = CHECKOUT / "router-configs" / "links"

_PACKAGE = "mplab_scenarios"


def load_scenario(name: str) -> Scenario:
    """The scenario in the folder ``ui-scenarios/<name>``.

    Raises:
        LabNotReadyError: its ``scenario.py`` cannot be imported, or has no SCENARIO.
    """
    found = load_folder(SCENARIOS_DIR, name, package=_PACKAGE, module="scenario", attribute="SCENARIO", what="scenario")
    return cast("Scenario", found)


def programs_of(scenario: Scenario) -> list[Program]:
    """What must be installed for a scenario, beside what every lab needs: its browser, what it declares, and what its
    services run; each once.
    """
    found = [FIREFOX] if browser_of(scenario) == "firefox" else []
    found += programs_declared_by(scenario)
    found += [program for name in scenario.services for program in load_service(name).programs]
    return list({program.name: program for program in found}.values())


def scenario_names(directory: Path = SCENARIOS_DIR) -> list[str]:
    """Folders that hold a scenario."""
    return folders_with(directory, "scenario")


@cache
def catalog() -> Catalog:
    """Everything that is there."""
    return Catalog(
        transports=INFOS,
        scenarios={name: load_scenario(name) for name in scenario_names()},
        links_dir=LINKS_DIR,
        shapers=SHAPERS,
    )
