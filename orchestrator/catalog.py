"""What an experiment file can name: the transports, scenarios and link conditions that are there."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import cast

from orchestrator.plugins import folders_with, load_folder
from orchestrator.programs import CHECKOUT, FIREFOX, Program
from orchestrator.scenario import Scenario, browser_of, programs_declared_by
from orchestrator.services import load_service
from orchestrator.shaper.abilities import SHAPERS
from orchestrator.spec import appuse
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.labuse import LabUse
from orchestrator.spec.resolve import Catalog
from orchestrator.transport.registry import INFOS
from orchestrator.ui.app import AndroidApp

SCENARIOS_DIR = appuse.SCENARIOS_DIR
LINKS_DIR = CHECKOUT / "router-configs" / "links"

_PACKAGE = "mplab_scenarios"


def load_scenario(name: str) -> Scenario:
    """The scenario in the folder ``ui-scenarios/<name>``.

    Raises:
        LabNotReadyError: its ``scenario.py`` cannot be imported, or has no SCENARIO.
    """
    found = load_folder(SCENARIOS_DIR, name, package=_PACKAGE, module="scenario", attribute="SCENARIO", what="scenario")
    return cast("Scenario", found)


def load_android_scenario(name: str) -> Scenario:
    """The scenario as it is done with an Android app: ``ANDROID`` in ``ui-scenarios/<name>/android.py``; where there is
    none (what needs no app: `download`), the scenario itself.

    Raises:
        LabNotReadyError: its module cannot be imported, or has no such object.
    """
    if not (SCENARIOS_DIR / name / "android.py").exists():
        return load_scenario(name)
    found = load_folder(SCENARIOS_DIR, name, package=_PACKAGE, module="android", attribute="ANDROID", what="scenario")
    return cast("Scenario", found)


def can_android(name: str) -> bool:
    """Whether a scenario can be done on a phone on adb: with an app of it, or without any."""
    return (SCENARIOS_DIR / name / "android.py").exists() or not load_scenario(name).needs_ui


def android_app(lab: LabUse, scenario: str) -> AndroidApp | None:
    """The Android app that a scenario is done with in a lab: what the lab file says, or the first in ``app.yaml``.

    Returns:
        None: it is done without one, or the phone has no apps of its own.

    Raises:
        InputError: its ``app.yaml`` is wrong.
    """
    return None if lab.android is None else appuse.chosen_app(scenario, lab.android.app_of)


def programs_of(scenario: Scenario) -> list[Program]:
    """What must be installed for a scenario, beside what every lab needs: its browser, what it declares, and what its
    services run; each once.
    """
    found = [FIREFOX] if browser_of(scenario) == "firefox" else []
    found += programs_declared_by(scenario)
    found += [program for name in scenario.services for program in load_service(name).programs]
    return list({program.name: program for program in found}.values())


def services_of(experiment: Experiment) -> list[str]:
    """The origin services that the scenarios of an experiment use, as they are done with its phone; sorted."""
    there = catalog().on(experiment.lab)
    return sorted({name for use in experiment.scenarios for name in there[use.name].services})


def scenario_names(directory: Path = SCENARIOS_DIR) -> list[str]:
    """Folders that hold a scenario."""
    return folders_with(directory, "scenario")


def _android_names() -> list[str]:
    return [name for name in scenario_names() if can_android(name)]


class _OnDemand(Mapping[str, Scenario]):
    """Scenarios that are loaded when they are asked for: some need libraries that are slow to import."""

    def __init__(self, find: Callable[[], list[str]], load: Callable[[str], Scenario]) -> None:
        self._find = find
        self._load = load

    @cached_property
    def _names(self) -> list[str]:
        return self._find()

    def __getitem__(self, name: str) -> Scenario:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def catalog() -> Catalog:
    """Everything that is there."""
    return Catalog(
        transports=INFOS,
        scenarios=_OnDemand(scenario_names, load_scenario),
        links_dir=LINKS_DIR,
        shapers=SHAPERS,
        android=_OnDemand(_android_names, load_android_scenario),
    )
