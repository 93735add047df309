"""Score what the user of a video site notices: startup delay, stalls and picture quality."""

from mplab.analysis.scores.playback import METRICS, score

__all__ = ["METRICS", "score"]
