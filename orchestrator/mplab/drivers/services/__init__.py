"""Services behind the proxy that apps need, one folder each in ``proxy-docker/``."""

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
