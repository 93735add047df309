"""Services behind the proxy that apps need, one folder each in ``proxy-docker/``."""

from mplab.drivers.services.protocol import DRIVERS, Host, Service, ServiceContext, fetch, load_service, service_names
from mplab.drivers.services.running import LogMark, RunningServices

__all__ = [
    "DRIVERS",
    "Host",
    "LogMark",
    "RunningServices",
    "Service",
    "ServiceContext",
    "fetch",
    "load_service",
    "service_names",
]
