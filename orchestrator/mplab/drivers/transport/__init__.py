"""Transports under test, one package each. Each driver defines the transport's name, colour and marker in figures."""

from mplab.drivers.transport.driver import (
    DRIVERS,
    TransportChance,
    TransportDriver,
    chances,
    default_over,
    make_transport,
    names,
    options_as,
    transport_named,
)
from mplab.drivers.transport.protocol import AgentSettings, Evidence, Transport

__all__ = [
    "DRIVERS",
    "AgentSettings",
    "Evidence",
    "Transport",
    "TransportChance",
    "TransportDriver",
    "chances",
    "default_over",
    "make_transport",
    "names",
    "options_as",
    "transport_named",
]
