"""How well uploads went."""

from analysis.upload import METRICS, score

__all__ = ["METRICS", "score"]
