"""Find services by their entry points."""

from mplab.base.drivers import Drivers
from mplab.base.plugins import SERVICES
from mplab.drivers.services.protocol import Service

DRIVERS = Drivers(SERVICES, Service, "SERVICE")  # type: ignore[type-abstract]
"""Name → service, for all installed services."""


def load_service(name: str) -> Service:
    """Load ``SERVICE`` of a service's ``service.py``.

    Raises:
        InputError: no service has this name.
        LabNotReadyError: its ``service.py`` cannot be imported, or its SERVICE is missing or has a wrong class or name.
    """
    return DRIVERS.load(name)


def service_names() -> list[str]:
    """Return the names of all services, sorted."""
    return list(DRIVERS)
