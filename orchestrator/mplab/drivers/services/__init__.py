"""Services that apps need, such as XMPP; they run behind the proxy. Folder: ``proxy-docker/mplab/services/NAME``."""

from mplab.drivers.services.protocol import (
    DRIVERS,
    Service,
    ServiceContext,
    ServiceHost,
    fetch,
    load_service,
    service_names,
)
from mplab.drivers.services.running import LogMark, RunningServices

__all__ = [
    "DRIVERS",
    "LogMark",
    "RunningServices",
    "Service",
    "ServiceContext",
    "ServiceHost",
    "fetch",
    "load_service",
    "service_names",
]
