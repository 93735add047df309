"""Transports under test: one registry that fixes each one's name, colour and marker in every figure."""

from mplab.drivers.transport.protocol import AgentSettings, Evidence, Transport
from mplab.drivers.transport.registry import INFOS, NAMES, make_transport, missing_reason, transport_named

__all__ = [
    "INFOS",
    "NAMES",
    "AgentSettings",
    "Evidence",
    "Transport",
    "make_transport",
    "missing_reason",
    "transport_named",
]
