"""Score recordings of a phone's sound: time to first sound, silences, and jumps of the playback position."""

from mplab.scenarios.base.scoring.sound.melody import Melody
from mplab.scenarios.base.scoring.sound.playback import METRICS, Playback, listen, playback, score, values, waits
from mplab.scenarios.base.scoring.sound.recording import Recording, read_wav

__all__ = ["METRICS", "Melody", "Playback", "Recording", "listen", "playback", "read_wav", "score", "values", "waits"]
