"""Shapers: what makes a link condition real, and what proves that it is."""

from orchestrator.shaper.protocol import PathConditions, PathMeasurement, ProbeError, Shaper

__all__ = ["PathConditions", "PathMeasurement", "ProbeError", "Shaper"]
