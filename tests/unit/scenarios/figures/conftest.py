"""Fixtures of the tests of figures of these scores: those of the analysis."""

from tests.unit.analysis.conftest import synthetic, toy

__all__ = ["synthetic", "toy"]
