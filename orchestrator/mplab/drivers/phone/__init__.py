"""Phones: what the orchestrator can ask of one, whatever it is made of."""

from mplab.drivers.phone.protocol import Phone, PhoneIdentity

__all__ = ["Phone", "PhoneIdentity"]
