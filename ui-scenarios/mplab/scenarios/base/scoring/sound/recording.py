"""Read WAV files, compute their sound level over time, and find their silent parts."""

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FRAME_S = 0.01
"""Length of the frames in which recordings are analysed, s."""
THRESHOLD_DB = -50.0
"""Smallest RMS level of a frame that is not silent, dB relative to full scale. The exact value does not matter: the
services' sound is always 36 dB above it, and an idle sound card delivers zeros."""
SILENCE_S = 0.1
"""Minimum length of a silence, which a listener notices, s; baerts2015 §6.2 marks silences by eye, as "blanks"."""
GLITCH_S = 0.02
"""Minimum length of a glitch, s. It is shorter than `SILENCE_S`: "tiny, almost non perceptible", baerts2015 §6.2.1."""

_SAMPLE_BYTES = 2
_FULL_SCALE = 32768.0
_FLOOR_DB = -120.0


@dataclass(frozen=True)
class Recording:
    """A recording of mono sound.

    Attributes:
        samples: the samples, each from −1 to 1.
        rate_hz: number of samples per second.
    """

    samples: NDArray[np.float32]
    rate_hz: int

    @property
    def duration_s(self) -> float:
        """Return the length of the recording, s."""
        return len(self.samples) / self.rate_hz

    @property
    def frame_samples(self) -> int:
        """Return the number of samples in a frame of `FRAME_S`."""
        return round(FRAME_S * self.rate_hz)

    def between(self, start_s: float, end_s: float) -> "Recording":
        """Return the part from `start_s` to `end_s`, s from the start; only as much of it as was recorded."""
        first, last = (max(0, round(time * self.rate_hz)) for time in (start_s, end_s))
        return Recording(self.samples[first:last], self.rate_hz)

    def level_db(self) -> NDArray[np.float64]:
        """Return the RMS level of each complete frame, dB relative to full scale; −120 for digital silence."""
        size = self.frame_samples
        frames = self.samples[: len(self.samples) // size * size].reshape(-1, size).astype(np.float64)
        power = np.mean(frames**2, axis=1)
        return np.asarray(10 * np.log10(np.maximum(power, 10 ** (_FLOOR_DB / 10))))


def read_wav(path: Path) -> Recording:
    """Read a WAV file with 16-bit PCM samples. Several channels are averaged to mono.

    Raises:
        ValueError: the file is not a WAV file, or its samples have another size.
        FileNotFoundError: the file is missing.
    """
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path}: not a WAV file: {error}") from error
    if width != _SAMPLE_BYTES:
        raise ValueError(f"{path}: samples have {8 * width} bits, 16 are needed")
    samples = np.frombuffer(data[: len(data) // (width * channels) * width * channels], dtype="<i2")
    mono = samples.reshape(-1, channels).mean(axis=1) / _FULL_SCALE
    return Recording(mono.astype(np.float32), rate)


@dataclass(frozen=True)
class Pause:
    """A silent part of a recording; times are s from the recording's start."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Return the length of the pause, s."""
        return self.end_s - self.start_s


def first_sound_s(recording: Recording) -> float | None:
    """Return the start of the first frame that is not silent, s; None if all frames are silent."""
    sounding = np.flatnonzero(recording.level_db() >= THRESHOLD_DB)
    return float(sounding[0]) * FRAME_S if len(sounding) else None


def pauses(recording: Recording, *, since_s: float = 0.0) -> list[Pause]:
    """Return the pauses of at least `GLITCH_S` after `since_s`; the last one can reach the recording's end."""
    silent = recording.level_db() < THRESHOLD_DB
    first = round(since_s / FRAME_S)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent[first:], [False]]).astype(np.int8)))
    all_pauses = [
        Pause(round(float(first + start) * FRAME_S, 6), round(float(first + end) * FRAME_S, 6))
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    ]
    return [pause for pause in all_pauses if pause.duration_s >= GLITCH_S - FRAME_S / 2]
