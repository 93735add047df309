"""Scripted apps of the emulated device, and the programs that some of them run."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mplab.device.screen.load import load_script
from mplab.device.screen.script import AppScript

FOLDER = Path(__file__).resolve().parent


def ready_apps() -> tuple[AppScript, ...]:
    """All that are here."""
    return tuple(load_script(path) for path in sorted(FOLDER.glob("*.yaml")))


def lab_services(apps: Iterable[AppScript] | None = None) -> tuple[str, ...]:
    """The services of a lab's origin that apps want to know of, in the order of their names."""
    return tuple(sorted({service for app in _all(apps) for service in app.lab}))


def lab_variables(
    facts: Mapping[str, Mapping[str, str]], *, cacert: str, apps: Iterable[AppScript] | None = None
) -> tuple[tuple[str, str], ...]:
    """What `DeviceSettings.app_variables` has to be, so that the apps find the servers of a lab.

    Args:
        facts: service → its facts (`RunningServices.facts`). A service that is not there leaves its apps where they
            look by themselves.
        cacert: the lab's certificate authority, PEM (`LabAuthority.ca_pem`).
        apps: which; by default all that are here.

    Raises:
        KeyError: a service has no such fact.
    """
    found = {"cacert": cacert}
    for app in _all(apps):
        for service, values in app.lab.items():
            if service in facts:
                found |= {name: text.format_map(facts[service]) for name, text in values.items()}
    return tuple(found.items())


def _all(apps: Iterable[AppScript] | None) -> Iterable[AppScript]:
    return ready_apps() if apps is None else apps
