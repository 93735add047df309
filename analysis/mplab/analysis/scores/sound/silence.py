"""Where a recording is silent."""

from dataclasses import dataclass

import numpy as np

from mplab.analysis.scores.sound.recording import FRAME_S, Recording

THRESHOLD_DB = -50.0
"""A frame of 10 ms whose RMS is below this is silent, dB of full scale. What the services send is 36 dB above it all
the time, and a sound card without anything to play gives zeros, so the exact value decides nothing."""
SILENCE_S = 0.1
"""From this length on, a pause is a silence that a listener notices; baerts2015 §6.2 marks them by eye, as "blanks"."""
GLITCH_S = 0.02
"""From this length on, and up to `SILENCE_S`, it is a glitch: "tiny, almost non perceptible" (baerts2015 §6.2.1)."""


@dataclass(frozen=True)
class Pause:
    """A part of a recording in which nothing is heard; seconds from its start."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """How long it lasts."""
        return self.end_s - self.start_s


def first_sound_s(recording: Recording) -> float | None:
    """When the first frame is not silent; None: there is no sound."""
    sounding = np.flatnonzero(recording.level_db() >= THRESHOLD_DB)
    return float(sounding[0]) * FRAME_S if len(sounding) else None


def pauses(recording: Recording, *, since_s: float = 0.0) -> list[Pause]:
    """Every pause of `GLITCH_S` or longer, from `since_s` on; the last may reach the recording's end."""
    silent = recording.level_db() < THRESHOLD_DB
    first = round(since_s / FRAME_S)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent[first:], [False]]).astype(np.int8)))
    found = [
        Pause(round(float(first + start) * FRAME_S, 6), round(float(first + end) * FRAME_S, 6))
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    ]
    return [pause for pause in found if pause.duration_s >= GLITCH_S - FRAME_S / 2]
