"""Proxies, the remote end of every transport: one package for each kind."""

from mplab.drivers.proxy.driver import (
    DRIVERS,
    HostedResources,
    HostSettings,
    ProxyDriver,
    ServerSettings,
    by_hand_drivers,
    driver_of,
)
from mplab.drivers.proxy.protocol import Proxy

__all__ = [
    "DRIVERS",
    "HostSettings",
    "HostedResources",
    "Proxy",
    "ProxyDriver",
    "ServerSettings",
    "by_hand_drivers",
    "driver_of",
]
