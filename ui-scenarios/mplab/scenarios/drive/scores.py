"""How well uploads went."""

from mplab.analysis.upload import METRICS, score

__all__ = ["METRICS", "score"]
