"""List the scripted apps in this folder. Each app is a YAML file; some apps run a program that is next to it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mplab.device.screen.load import load_script
from mplab.device.screen.script import AppScript

FOLDER = Path(__file__).resolve().parent


def ready_apps() -> tuple[AppScript, ...]:
    """Return all scripted apps in this folder."""
    return tuple(load_script(path) for path in sorted(FOLDER.glob("*.yaml")))


def lab_services(apps: Iterable[AppScript] | None = None) -> tuple[str, ...]:
    """Return the names of a lab's services that the apps (default: all in this folder) use, sorted."""
    return tuple(sorted({service for app in _all(apps) for service in app.lab}))


def lab_variables(
    facts: Mapping[str, Mapping[str, str]], *, cacert: str, apps: Iterable[AppScript] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return values for `DeviceSettings.app_variables`, with which the apps use the servers of a lab.

    Args:
        facts: service → its facts (`RunningServices.facts`). The apps of a missing service keep their default
            addresses.
        cacert: path of the lab's certificate authority, a PEM file (`LabAuthority.ca_pem`).
        apps: the scripted apps; by default all in this folder.

    Raises:
        KeyError: a service lacks a fact.
    """
    variables = {"cacert": cacert}
    for app in _all(apps):
        for service, values in app.lab.items():
            if service in facts:
                variables |= {name: text.format_map(facts[service]) for name, text in values.items()}
    return tuple(variables.items())


def _all(apps: Iterable[AppScript] | None) -> Iterable[AppScript]:
    return ready_apps() if apps is None else apps
