"""Origin services: what apps need behind the proxy, one folder each in ``proxy-docker/``."""

from orchestrator.services.fetch import fetch
from orchestrator.services.protocol import Host, Service, ServiceContext
from orchestrator.services.registry import load_service, service_names
from orchestrator.services.running import LogMark, RunningServices

__all__ = [
    "Host",
    "LogMark",
    "RunningServices",
    "Service",
    "ServiceContext",
    "fetch",
    "load_service",
    "service_names",
]
