"""Drivers of shapers, which apply link conditions (rate, delay, loss, queue) to the network paths of phones."""

from mplab.drivers.shaper.protocol import PathMeasurement, ProbeError, Shaper

__all__ = ["PathMeasurement", "ProbeError", "Shaper"]
