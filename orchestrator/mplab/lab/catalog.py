"""What an experiment file can name: the transports, scenarios and link conditions that are there."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from mplab.base.drivers import Drivers
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import CHECKOUT, FIREFOX, Program
from mplab.drivers.services import load_service
from mplab.drivers.transport import DRIVERS
from mplab.scenarios.base import AnyScenario, Scenario
from mplab.userfiles import appuse
from mplab.userfiles.app import AndroidApp
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import LabUse
from mplab.userfiles.machines import abilities
from mplab.userfiles.resolve import Catalog

LINKS_DIR = CHECKOUT / "router-configs" / "links"
_SCENARIOS = Drivers(SCENARIOS, Scenario, "SCENARIO", "scenario")  # type: ignore[type-abstract]
_ON_ANDROID = Drivers(SCENARIOS, Scenario, "ANDROID", "android")  # type: ignore[type-abstract]


def load_scenario(name: str) -> AnyScenario:
    """Load ``SCENARIO`` of a scenario's ``scenario.py``.

    Raises:
        InputError: there is no scenario of this name.
        LabNotReadyError: its ``scenario.py`` cannot be imported, has no SCENARIO, or one of another class.
    """
    return _SCENARIOS.load(name)


def load_android_scenario(name: str) -> AnyScenario:
    """Load the scenario as it is done with an Android app: ``ANDROID`` of its ``android.py``.

    Where there is none (what needs no app: `download`), it is the scenario itself.

    Raises:
        LabNotReadyError: its module cannot be imported, has no such object, or one of another class.
    """
    if not SCENARIOS[name].has("android"):
        return load_scenario(name)
    return _ON_ANDROID.load(name)


def can_android(name: str) -> bool:
    """Whether a scenario can be done on a phone on adb: with an app of it, or without any."""
    return SCENARIOS[name].has("android") or not load_scenario(name).needs_ui


def android_app(lab: LabUse, scenario: str) -> AndroidApp | None:
    """The Android app that a scenario is done with in a lab: what the lab file says, or the first in ``app.yaml``.

    Returns:
        None: it is done without one, or the phone has no apps of its own.

    Raises:
        InputError: its ``app.yaml`` is wrong.
    """
    return appuse.chosen_app(scenario, lab.chosen_apps) if lab.android else None


def programs_of(scenario: AnyScenario) -> list[Program]:
    """What must be installed for a scenario, beside what every lab needs: its browser, what it declares, and what its
    services run; each once.
    """
    found = [FIREFOX] if scenario.browser == "firefox" else []
    found += scenario.programs
    found += [program for name in scenario.services for program in load_service(name).programs]
    return list({program.name: program for program in found}.values())


def services_of(experiment: Experiment) -> list[str]:
    """The origin services that the scenarios of an experiment use, as they are done with its phone; sorted."""
    there = catalog().on(experiment.lab)
    return sorted({name for use in experiment.scenarios for name in there[use.name].services})


def scenario_names() -> list[str]:
    """Return the names of all scenarios, sorted."""
    return list(SCENARIOS)


def _android_names() -> list[str]:
    return [name for name in scenario_names() if can_android(name)]


class _OnDemand(Mapping[str, AnyScenario]):
    """Scenarios that are loaded when they are asked for: some need libraries that are slow to import."""

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
    """A catalog whose scenarios can be run."""

    scenarios: Mapping[str, AnyScenario]
    android: Mapping[str, AnyScenario] = field(default_factory=dict)

    def on(self, lab: LabUse) -> Mapping[str, AnyScenario]:
        """Return the scenarios of a lab, as they are done with its phone."""
        return self.android if lab.android else self.scenarios


@cache
def catalog() -> LabCatalog:
    """Everything that is there."""
    return LabCatalog(
        transports=DRIVERS,
        scenarios=_OnDemand(scenario_names, load_scenario),
        links_dir=LINKS_DIR,
        shapers=abilities(),
        android=_OnDemand(_android_names, load_android_scenario),
    )
