"""Score the uploads of the scenario `drive`."""

from mplab.scenarios.base.scoring.upload import METRICS, score

__all__ = ["METRICS", "score"]
