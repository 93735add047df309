"""Find the silent parts of a recording."""

from dataclasses import dataclass

import numpy as np

from mplab.scenarios.base.scoring.sound.recording import FRAME_S, Recording

THRESHOLD_DB = -50.0
"""A frame of 10 ms with an RMS level below this is silent, dB relative to full scale. The exact value does not matter:
the services' sound is always 36 dB above it, and an idle sound card delivers zeros."""
SILENCE_S = 0.1
"""Minimum length of a silence, which a listener notices; baerts2015 §6.2 marks them by eye, as "blanks"."""
GLITCH_S = 0.02
"""Minimum length of a glitch, which is shorter than `SILENCE_S`: "tiny, almost non perceptible" (baerts2015 §6.2.1)."""


@dataclass(frozen=True)
class Pause:
    """A silent part of a recording; seconds from its start."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Return the length, seconds."""
        return self.end_s - self.start_s


def first_sound_s(recording: Recording) -> float | None:
    """Return the start of the first frame that is not silent, seconds; None if all frames are silent."""
    sounding = np.flatnonzero(recording.level_db() >= THRESHOLD_DB)
    return float(sounding[0]) * FRAME_S if len(sounding) else None


def pauses(recording: Recording, *, since_s: float = 0.0) -> list[Pause]:
    """Return the pauses of `GLITCH_S` or longer from `since_s` on; the last can reach the recording's end."""
    silent = recording.level_db() < THRESHOLD_DB
    first = round(since_s / FRAME_S)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent[first:], [False]]).astype(np.int8)))
    found = [
        Pause(round(float(first + start) * FRAME_S, 6), round(float(first + end) * FRAME_S, 6))
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    ]
    return [pause for pause in found if pause.duration_s >= GLITCH_S - FRAME_S / 2]
