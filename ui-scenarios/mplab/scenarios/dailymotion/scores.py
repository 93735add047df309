"""Score the startup delay, stalls and picture quality of the scenario `dailymotion`."""

from mplab.scenarios.base.scoring.playback import METRICS, score

__all__ = ["METRICS", "score"]
