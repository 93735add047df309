"""Shapers: apply link conditions to paths, and verify them."""

from mplab.drivers.shaper.protocol import PathMeasurement, ProbeError, Shaper

__all__ = ["PathMeasurement", "ProbeError", "Shaper"]
