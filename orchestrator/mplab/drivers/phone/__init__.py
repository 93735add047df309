"""Define the protocol `Phone`, which every kind of phone implements."""

from mplab.drivers.phone.protocol import Phone, PhoneIdentity

__all__ = ["Phone", "PhoneIdentity"]
