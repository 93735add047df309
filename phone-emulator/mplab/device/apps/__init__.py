"""List the scripted apps in this folder. It also has the programs that some of them run."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mplab.device.screen.load import load_script
from mplab.device.screen.script import AppScript

FOLDER = Path(__file__).resolve().parent


def ready_apps() -> tuple[AppScript, ...]:
    """Return all apps in this folder."""
    return tuple(load_script(path) for path in sorted(FOLDER.glob("*.yaml")))


def lab_services(apps: Iterable[AppScript] | None = None) -> tuple[str, ...]:
    """Return the names of the services of a lab's origin that apps use, sorted."""
    return tuple(sorted({service for app in _all(apps) for service in app.lab}))


def lab_variables(
    facts: Mapping[str, Mapping[str, str]], *, cacert: str, apps: Iterable[AppScript] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return values for `DeviceSettings.app_variables`, so that the apps use the servers of a lab.

    Args:
        facts: service → its facts (`RunningServices.facts`). If a service is missing, its apps keep their default
            addresses.
        cacert: the lab's certificate authority, PEM (`LabAuthority.ca_pem`).
        apps: the apps; by default all in this folder.

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
