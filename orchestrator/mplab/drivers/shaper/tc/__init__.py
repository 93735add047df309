"""Shaping with the kernel's own traffic control, wherever a root shell leads: a router, a server, a phone."""

from mplab.drivers.shaper.tc.place import Place
from mplab.drivers.shaper.tc.shaper import TcShaper
from mplab.drivers.shaper.tc.shell import PlaceError

__all__ = ["Place", "PlaceError", "TcShaper"]
