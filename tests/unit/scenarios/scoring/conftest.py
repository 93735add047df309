"""Fixtures of the tests of scores that scenarios share: those of the analysis."""

from tests.unit.analysis.conftest import analyzed, foreign, synthetic, toy

__all__ = ["analyzed", "foreign", "synthetic", "toy"]
