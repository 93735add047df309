"""Phones: what the orchestrator can ask of one, whatever it is made of."""

from mplab.drivers.phone.protocol import CommandResult, Phone, PhoneIdentity

__all__ = ["CommandResult", "Phone", "PhoneIdentity"]
