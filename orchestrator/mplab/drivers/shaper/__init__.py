"""Shapers: what makes a link condition real, and what proves that it is."""

from mplab.drivers.shaper.protocol import PathMeasurement, ProbeError, Shaper

__all__ = ["PathMeasurement", "ProbeError", "Shaper"]
