"""Shaping with the kernel's own traffic control, wherever a root shell leads: a router, a server, a phone."""

from orchestrator.shaper.tc.place import Place
from orchestrator.shaper.tc.shaper import TcShaper
from orchestrator.shaper.tc.shell import PlaceError

__all__ = ["Place", "PlaceError", "TcShaper"]
