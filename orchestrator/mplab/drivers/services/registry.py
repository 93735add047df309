"""Finds services by their entry points."""

from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import SERVICES
from mplab.drivers.services.protocol import Service


def load_service(name: str) -> Service:
    """Load ``SERVICE`` of a service's ``service.py``.

    Raises:
        InputError: there is no service of this name.
        LabNotReadyError: its ``service.py`` cannot be imported, has no SERVICE, or one of another class.
    """
    service = SERVICES.load(name, "SERVICE")
    if not isinstance(service, Service):
        raise LabNotReadyError(
            f"service {name}: SERVICE is of type {type(service).__name__}. "
            "Derive its class from mplab.drivers.services.Service"
        )
    return service


def service_names() -> list[str]:
    """Return the names of all services, sorted."""
    return list(SERVICES)
