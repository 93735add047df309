"""Score the uploads of the scenario `dropbox`."""

from mplab.scenarios.base.scoring.upload import METRICS, score

__all__ = ["METRICS", "score"]
