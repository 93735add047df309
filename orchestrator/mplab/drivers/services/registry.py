"""Finds services by their entry points."""

from mplab.base.drivers import Drivers
from mplab.base.plugins import SERVICES
from mplab.drivers.services.protocol import Service

DRIVERS = Drivers(SERVICES, Service, "SERVICE")  # type: ignore[type-abstract]
"""Name → service, of all that are installed."""


def load_service(name: str) -> Service:
    """Load ``SERVICE`` of a service's ``service.py``.

    Raises:
        InputError: there is no service of this name.
        LabNotReadyError: its ``service.py`` cannot be imported, has no SERVICE, or one of another class or name.
    """
    return DRIVERS.load(name)


def service_names() -> list[str]:
    """Return the names of all services, sorted."""
    return list(DRIVERS)
