"""What an experiment file can name: the transports, scenarios and link conditions that are there."""

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from orchestrator.errors import LabNotReadyError
from orchestrator.programs import CHECKOUT
from orchestrator.scenario import Scenario
from orchestrator.spec.resolve import Catalog
from orchestrator.transport.registry import INFOS

SCENARIOS_DIR = CHECKOUT / "ui-scenarios"
LINKS_DIR = CHECKOUT / "router-configs" / "links"
EXPERIMENTS_DIR = CHECKOUT / "experiments"

_NAMESPACE = "mplab_scenarios"


def _namespace_package() -> None:
    """Make ``mplab_scenarios`` find its folders; it may be there already, made by the analysis."""
    package = sys.modules.setdefault(_NAMESPACE, ModuleType(_NAMESPACE))
    path = list(getattr(package, "__path__", ()))
    if str(SCENARIOS_DIR) not in path:
        package.__path__ = [*path, str(SCENARIOS_DIR)]


def load_scenario(name: str) -> Scenario:
    """The scenario in the folder ``ui-scenarios/<name>``.

    Raises:
        LabNotReadyError: its ``scenario.py`` cannot be imported, or has no SCENARIO.
    """
    _namespace_package()
    try:
        module = importlib.import_module(f"{_NAMESPACE}.{name}.scenario")
    except ImportError as error:
        raise LabNotReadyError(f"{SCENARIOS_DIR / name}: the scenario cannot be loaded: {error}") from error
    scenario: Scenario | None = getattr(module, "SCENARIO", None)
    if scenario is None:
        raise LabNotReadyError(f"{SCENARIOS_DIR / name / 'scenario.py'}: no SCENARIO in it")
    return scenario


def scenario_names(directory: Path = SCENARIOS_DIR) -> list[str]:
    """Folders that hold a scenario."""
    return sorted(path.parent.name for path in directory.glob("*/scenario.py"))


@cache
def catalog() -> Catalog:
    """Everything that is there."""
    return Catalog(
        transports=INFOS,
        scenarios={name: load_scenario(name) for name in scenario_names()},
        links_dir=LINKS_DIR,
    )
