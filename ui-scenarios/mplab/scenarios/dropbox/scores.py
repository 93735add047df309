"""Score uploads."""

from mplab.analysis.scores.upload import METRICS, score

__all__ = ["METRICS", "score"]
