"""Finds services by their folders, ``proxy-docker/<name>/service.py``."""

from pathlib import Path
from typing import cast

from orchestrator.plugins import folders_with, load_folder
from orchestrator.programs import CHECKOUT
from orchestrator.services.protocol import Service

SERVICES_DIR = CHECKOUT / "proxy-docker"

_PACKAGE = "mplab_services"


def load_service(name: str) -> Service:
    """The service in the folder ``proxy-docker/<name>``, imported as the package ``mplab_services.<name>``.

    Raises:
        LabNotReadyError: its ``service.py`` cannot be imported, or has no SERVICE.
    """
    found = load_folder(SERVICES_DIR, name, package=_PACKAGE, module="service", attribute="SERVICE", what="service")
    return cast("Service", found)


def service_names(directory: Path = SERVICES_DIR) -> list[str]:
    """Folders that hold a service."""
    return folders_with(directory, "service")
