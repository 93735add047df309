"""Find the names that an experiment file can use: installed transports, scenarios and link conditions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from pydantic import BaseModel

from mplab.base.drivers import Drivers
from mplab.base.places import ROOT
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import FIREFOX, Program
from mplab.drivers.services import load_service
from mplab.drivers.transport import DRIVERS
from mplab.scenarios.base import AnyScenario, Scenario
from mplab.userfiles.experiments.app import AndroidApp, chosen_app
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog
from mplab.userfiles.labs.labuse import LabUse
from mplab.userfiles.labs.machines import abilities

LINKS_DIR = ROOT / "router-configs" / "links"
_SCENARIOS = Drivers(SCENARIOS, Scenario, "SCENARIO", "scenario")  # type: ignore[type-abstract]
_ON_ANDROID = Drivers(SCENARIOS, Scenario, "ANDROID", "android")  # type: ignore[type-abstract]


def load_scenario(name: str) -> AnyScenario:
    """Import ``scenario.py`` of the scenario `name`, and return its ``SCENARIO``.

    Raises:
        InputError: there is no scenario of this name.
        LabNotReadyError: its ``scenario.py`` cannot be imported, or has no SCENARIO of the right class.
    """
    return _SCENARIOS.load(name)


def load_android_scenario(name: str) -> AnyScenario:
    """Return the variant of a scenario for an Android app: ``ANDROID`` of its ``android.py``.

    Without ``android.py``, return the scenario itself, for example `download`, which needs no app.

    Raises:
        LabNotReadyError: the module cannot be imported, or has no `ANDROID` of the right class.
    """
    if not SCENARIOS[name].has("android"):
        return load_scenario(name)
    return _ON_ANDROID.load(name)


def can_android(name: str) -> bool:
    """Return whether a scenario can run on a phone on adb: it has ``android.py``, or needs no user interface."""
    return SCENARIOS[name].has("android") or not load_scenario(name).needs_ui


def android_app(lab: LabUse, scenario: str) -> AndroidApp | None:
    """Return the Android app for a scenario: the one set in the lab file, or the first in ``app.yaml``.

    Returns:
        The app; None: the scenario has no Android app, or the phone has no apps.

    Raises:
        InputError: its ``app.yaml`` is wrong.
    """
    return chosen_app(scenario, lab.chosen_apps) if lab.android else None


def programs_of(scenario: AnyScenario, parameters: BaseModel | None = None) -> list[Program]:
    """Return the programs that a scenario needs, without duplicates; those that every lab needs are not added.

    They are its browser, the programs that it declares, and those of its services.

    Args:
        scenario: the scenario.
        parameters: its parameters, which can choose the browser; None: the scenario's usual browser.
    """
    browser = scenario.browser if parameters is None else scenario.browser_of(parameters)
    programs = [FIREFOX] if browser == "firefox" else []
    programs += scenario.programs
    programs += [program for name in scenario.services for program in load_service(name).programs]
    return list({program.name: program for program in programs}.values())


def services_of(experiment: Experiment) -> list[str]:
    """Return the names of the origin services that an experiment's scenarios use, sorted."""
    scenarios = catalog().on(experiment.lab)
    return sorted({name for use in experiment.scenarios for name in scenarios[use.name].services})


def scenario_names() -> list[str]:
    """Return the names of all scenarios, sorted."""
    return list(SCENARIOS)


def _android_names() -> list[str]:
    return [name for name in scenario_names() if can_android(name)]


class _OnDemand(Mapping[str, AnyScenario]):
    """Scenario name → scenario. A scenario is imported on access, because some import slow libraries."""

    def __init__(self, find: Callable[[], list[str]], load: Callable[[str], AnyScenario]) -> None:
        self._find = find
        self._load = load

    @cached_property
    def _names(self) -> list[str]:
        return self._find()

    def __getitem__(self, name: str) -> AnyScenario:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class LabCatalog(Catalog):
    """Catalog whose scenarios are the objects that a run executes, not only facts about scenarios."""

    scenarios: Mapping[str, AnyScenario]
    android: Mapping[str, AnyScenario] = field(default_factory=dict)

    def on(self, lab: LabUse) -> Mapping[str, AnyScenario]:
        """Return name → scenario for a lab: the Android variants if its phone runs Android apps."""
        return self.android if lab.android else self.scenarios


@cache
def catalog() -> LabCatalog:
    """Return the catalog of all installed transports, scenarios, link conditions and shapers."""
    return LabCatalog(
        transports=DRIVERS,
        scenarios=_OnDemand(scenario_names, load_scenario),
        links_dir=LINKS_DIR,
        shapers=abilities(),
        android=_OnDemand(_android_names, load_android_scenario),
    )
