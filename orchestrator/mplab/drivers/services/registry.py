"""Finds services by their entry points."""

from pathlib import Path
from typing import cast

from mplab.base.plugins import SERVICES
from mplab.drivers.services.protocol import Service


def load_service(name: str) -> Service:
    """Load ``SERVICE`` of a service's ``service.py``.

    Raises:
        InputError: there is no service of this name.
        LabNotReadyError: its ``service.py`` cannot be imported, or has no SERVICE.
    """
    return cast("Service", SERVICES.load(name, "SERVICE"))


def service_names() -> list[str]:
    """Return the names of all services, sorted."""
    return list(SERVICES)


def service_folder(name: str) -> Path:
    """Return the folder of a service: its pages and its files."""
    return SERVICES[name].folder()
