"""Transports under test: one registry that fixes each one's name, colour and marker in every figure."""

from orchestrator.transport.protocol import AgentSettings, Evidence, Transport
from orchestrator.transport.registry import INFOS, make_transport, missing_reason

__all__ = ["INFOS", "AgentSettings", "Evidence", "Transport", "make_transport", "missing_reason"]
