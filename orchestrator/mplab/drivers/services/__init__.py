"""Origin services that apps need behind the proxy, one folder each in ``proxy-docker/``."""

from mplab.drivers.services.fetch import fetch
from mplab.drivers.services.protocol import Host, Service, ServiceContext
from mplab.drivers.services.registry import DRIVERS, load_service, service_names
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
