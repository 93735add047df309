"""Score a recording of a phone's sound as its listener experiences it.

The scenario writes one observation ``sound``::

    {"event": "sound", "file": "sound.wav", "began": <unix s of its first sample>, "tapped": <unix s>,
     "listened_s": 75.0, "melody": {"note_s": …, "tones_hz": […], "notes": "…"}}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mplab.analysis.files import inside
from mplab.analysis.metric import (
    LOOK_RESOLUTION,
    NOT_NEGATIVE,
    Metric,
    Observation,
    Value,
    interface_bytes,
    look_resolution,
)
from mplab.scenarios.base.scoring.sound.melody import Melody, Skip, align
from mplab.scenarios.base.scoring.sound.recording import SILENCE_S, Pause, Recording, first_sound_s, pauses, read_wav

_NOTICE_S = 0.5
"""Longest time from a player's report that it ran out of sound to the audible silence, s: the sound card's latency."""

_BLANKS = "baerts2015 §6.2.2, figures 6.6, 6.7 and 6.12"
_SKIPS = "baerts2015 §6.2.1"
_SHARE = (0.0, 100.0)
_ACTIVITY = "Playing music"

_metric = partial(Metric, source=_SKIPS, limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "time_to_first_sound",
        "Time from the tap to the first sound",
        "s",
        "lower",
        headline=True,
        source="baerts2015 §4.3, figure 6.4",
        activity=_ACTIVITY,
        outcome="plays the first sound after {value}",
    ),
    _metric(
        "silence_time",
        "Silence after the first sound, total",
        "s",
        "lower",
        headline=True,
        source=f"{_BLANKS}; level and length: docs/scenarios.md",
        activity=_ACTIVITY,
        outcome="is silent for {value}",
    ),
    _metric(
        "silences",
        "Silences of 0.1 s or longer after the first sound",
        "",
        "lower",
        headline=True,
        source=f"{_BLANKS}; level and length: docs/scenarios.md",
        activity=_ACTIVITY,
        outcome="has {value} silences",
    ),
    _metric("silence_longest", "Longest silence after the first sound", "s", "lower", source=_BLANKS),
    _metric(
        "silence_share",
        "Share of the time after the first sound that is silent",
        "%",
        "lower",
        source=_BLANKS,
        limits=_SHARE,
    ),
    _metric("glitches", "Pauses of 0.02 to 0.1 s", "", "lower", source="baerts2015 §6.2.1"),
    _metric("skips", "Jumps of the source time by 0.1 s or more", "", "lower"),
    _metric("skipped_time", "Sound that was left out", "s", "lower"),
    _metric("repeated_time", "Sound that was played again", "s", "lower"),
    _metric(
        "stutter_time",
        "Silence while the player had sound to play (check of the host)",
        "s",
        "lower",
        source="docs/scenarios.md",
    ),
    _metric(
        "recognised",
        "Share of what is heard that was found in what was sent",
        "%",
        "higher",
        source="docs/scenarios.md",
        limits=_SHARE,
    ),
    LOOK_RESOLUTION,
)
"""The metrics that `values` computes, and `LOOK_RESOLUTION`."""


@dataclass(frozen=True)
class Playback:
    """Audible playback after the tap; all times in seconds from the tap.

    Attributes:
        recording: the recording from the tap on.
        first_sound_s: time of the first sound.
        silences: pauses of at least `SILENCE_S` after the first sound; the last one can reach the recording's end.
        glitches: shorter pauses after the first sound, of at least `GLITCH_S`.
        skips: jumps of the playback position in the melody.
        recognised: share of the time without pauses in which the melody was recognised, 0 … 1.
    """

    recording: Recording
    first_sound_s: float
    silences: tuple[Pause, ...]
    glitches: tuple[Pause, ...]
    skips: tuple[Skip, ...]
    recognised: float

    @property
    def silence_s(self) -> float:
        """Return the total length of the silences, s."""
        return sum(pause.duration_s for pause in self.silences)


def playback(recording: Recording, melody: Melody) -> Playback:
    """Find silences, glitches and skips in a recording that begins with the tap.

    Raises:
        ValueError: the recording has no sound.
    """
    first = first_sound_s(recording)
    if first is None:
        raise ValueError(f"the recording of {recording.duration_s:.1f} s has no sound")
    after = pauses(recording, since_s=first)
    before = [Pause(0.0, first)] if first else []
    alignment = align(recording, melody, [*before, *after])
    return Playback(
        recording,
        first,
        tuple(pause for pause in after if pause.duration_s >= SILENCE_S - 1e-6),
        tuple(pause for pause in after if pause.duration_s < SILENCE_S - 1e-6),
        alignment.skips,
        alignment.recognised,
    )


def listen(sound: Observation, file: Path) -> Playback:
    """Find silences, glitches and skips in the ``listened_s`` seconds of a recording after the tap.

    Args:
        sound: the observation ``sound`` of the recording.
        file: the recording.

    Raises:
        ValueError: the file is no 16-bit WAV file, has no sound, or is shorter than ``listened_s``.
        FileNotFoundError: the recording is missing.
    """
    start_s = sound["tapped"] - sound["began"]
    recording = read_wav(file).between(start_s, start_s + sound["listened_s"])
    if recording.duration_s < sound["listened_s"] - SILENCE_S:
        heard, wanted = recording.duration_s, sound["listened_s"]
        raise ValueError(f"{file.name} has {heard:.1f} s after the tap, {wanted:g} s were listened to")
    return playback(recording, Melody.from_observation(sound["melody"]))


def waits(observations: Sequence[Observation], sound: Observation) -> list[float]:
    """Return the times, s from the tap, at which the player ran out of sound, from its observations ``player``."""
    players = [item for item in observations if item["event"] == "player"]
    return [item["at"] - sound["tapped"] for item in players if item["what"] == "waiting"]


def values(heard: Playback, waits_s: Sequence[float]) -> list[Value]:
    """Return the values of `METRICS` for a recording, without `LOOK_RESOLUTION`.

    Args:
        heard: the audible playback.
        waits_s: times at which the player ran out of sound, s from the tap. A silence without such a time counts as
            stutter: the host caused it.
    """
    stutters = [
        pause.duration_s
        for pause in heard.silences
        if not any(pause.start_s - _NOTICE_S <= wait <= pause.end_s for wait in waits_s)
    ]
    listened_s = heard.recording.duration_s - heard.first_sound_s
    return [
        Value("time_to_first_sound", heard.first_sound_s),
        Value("silence_time", heard.silence_s),
        Value("silences", float(len(heard.silences))),
        Value("silence_longest", max((pause.duration_s for pause in heard.silences), default=0.0)),
        Value("silence_share", 100 * heard.silence_s / listened_s),
        Value("glitches", float(len(heard.glitches))),
        Value("skips", float(len(heard.skips))),
        Value("skipped_time", sum(skip.jump_s for skip in heard.skips if skip.jump_s > 0)),
        Value("repeated_time", -sum(skip.jump_s for skip in heard.skips if skip.jump_s < 0)),
        Value("stutter_time", sum(stutters)),
        Value("recognised", 100 * heard.recognised),
    ]


def seen(listened: Observation) -> list[Value]:
    """Return the values of `METRICS` for an Android app, whose playback was timed by the screen and not recorded.

    The result has no values of glitches, skips, stutter and recognition. Silences that are shorter than the time
    between two screen samples can be missed. The result is empty if the app never played (``startup_s`` is None).

    Args:
        listened: the observation ``listened``.
    """
    startup_s = listened["startup_s"]
    if startup_s is None:
        return []
    silences = [float(silence["duration_s"]) for silence in listened["silences"]]
    played_s = listened["listened_s"] - startup_s
    share = [Value("silence_share", min(100.0, 100 * sum(silences) / played_s))] if played_s > 0 else []
    return [
        Value("time_to_first_sound", startup_s),
        Value("silence_time", sum(silences)),
        Value("silences", float(len(silences))),
        Value("silence_longest", max(silences, default=0.0)),
        *share,
    ]


def score(observations: Sequence[Observation], folder: Path) -> list[Value]:
    """Return the values of `METRICS` and of `INTERFACE_BYTES` for a cell.

    Args:
        observations: all observations of the cell: one is ``sound`` or, with an Android app, ``listened``.
        folder: folder of the cell, which has the recording.

    Raises:
        ValueError: as for `listen`; or the recording is outside of `folder`.
        FileNotFoundError: the recording is missing.
    """
    scores = [value for item in observations for value in interface_bytes(item)] + look_resolution(observations)
    for item in observations:
        if item["event"] == "listened":
            scores += seen(item)
        if item["event"] == "sound":
            scores += values(listen(item, inside(folder, item["file"])), waits(observations, item))
    return scores
