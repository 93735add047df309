"""What the user of a video site feels: waiting before and within clips, and the quality of the picture."""

from mplab.analysis.scores.playback import METRICS, score

__all__ = ["METRICS", "score"]
