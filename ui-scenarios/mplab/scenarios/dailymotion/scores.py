"""Score what the user of a video site notices: startup delay, stalls and picture quality."""

from mplab.scenarios.base.scoring.playback import METRICS, score

__all__ = ["METRICS", "score"]
