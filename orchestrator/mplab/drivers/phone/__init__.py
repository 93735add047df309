"""Phones: the protocol that every kind of phone implements."""

from mplab.drivers.phone.protocol import Phone, PhoneIdentity

__all__ = ["Phone", "PhoneIdentity"]
