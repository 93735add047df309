"""Choice of a scenario's app on phones with Android apps, part of a lab file."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator

from mplab.base.errors import InputError
from mplab.base.plugins import SCENARIOS
from mplab.base.suggest import unknown
from mplab.userfiles.app import FILE, AndroidApp, load_android_apps

UiName = Literal["uiautomator2", "appium"]
"""Driver of a phone's screen."""


def android_apps(scenario: str) -> Mapping[str, AndroidApp]:
    """Return the Android apps of a scenario, the default one first.

    Raises:
        InputError: there is no such scenario, or its ``app.yaml`` is wrong.
    """
    folder = SCENARIOS[scenario].folder()
    return load_android_apps(folder) if (folder / FILE).exists() else {}


def app_files(scenario: str) -> dict[str, bytes]:
    """Return the ``app.yaml`` of a scenario under its name in the run directory; {}: the scenario has none."""
    path = SCENARIOS[scenario].folder() / FILE
    return {f"ui-scenarios/{scenario}/{FILE}": path.read_bytes()} if path.exists() else {}


def chosen_app(scenario: str, app_of: Mapping[str, str] | None) -> AndroidApp | None:
    """Return the Android app of a scenario: the choice in `app_of`, or the first in ``app.yaml``; None: there is none.

    Raises:
        InputError: the ``app.yaml`` is wrong.
    """
    apps = android_apps(scenario)
    return apps.get((app_of or {}).get(scenario) or next(iter(apps), ""))


def _parse_app_of(found: object) -> object:
    if not isinstance(found, dict):
        return found
    known = list(SCENARIOS)
    problems = []
    for scenario, app in found.items():
        if scenario not in known:
            problems.append(unknown("scenario", str(scenario), known))
            continue
        try:
            apps = android_apps(scenario)
        except InputError as error:
            problems.append(str(error))
            continue
        if not apps:
            problems.append(f"scenario {scenario!r} has no Android app to choose from")
        elif app not in apps:
            problems.append(unknown(f"app of {scenario}", str(app), apps))
    if problems:
        raise ValueError("; ".join(problems))
    return found


AppOf = Annotated[dict[str, str], BeforeValidator(_parse_app_of)]
"""Scenario → Android app, which is a section of the scenario's ``app.yaml``."""
