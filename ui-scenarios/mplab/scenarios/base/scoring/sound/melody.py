"""Find in a recording the positions of the melody that was sent, and from them the jumps of the playback.

The melody has notes of equal length; each note is one of a few tones. No sequence of one second occurs twice in it. A
scenario writes the melody to an observation: ``{"note_s": …, "tones_hz": […], "notes": "3fa0…"}``. ``notes`` has one
hexadecimal digit per note, an index into ``tones_hz``.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mplab.analysis.metric import Observation
from mplab.scenarios.base.scoring.sound.recording import FRAME_S, Pause, Recording

SKIP_S = 0.1
"""Smallest jump in the melody that counts as a skip, s. Smaller ones are within the error of the pauses' lengths."""

_WINDOW_FRAMES = 100
"""Length of the excerpts that are searched in the melody: 8.3 notes of 0.12 s. With sixteen tones, a sequence of eight
notes does not recur within minutes."""
_LEAST_FRAMES = 40
_STEP_FRAMES = 10
_SPECTRUM_S = 0.04
_PURITY = 0.4
"""Smallest share of a frame's energy that its strongest tone must have; below it, the frame has no note."""
_MATCH = 0.75
"""Smallest share of an excerpt's frames that must match the melody; unrelated sequences match in 1/16 of the frames."""
_CERTAIN = 0.9
"""Share of an excerpt's frames that must match at the expected position, so that it is not searched elsewhere. A note
has twelve frames: at a position that is wrong by two frames, fewer frames match."""
_NEAR = (0, 1, -1, 2, -2)
_COARSE = 4
_TIE = 0.05
_NO_TONE = 255


@dataclass(frozen=True)
class Melody:
    """A melody that is played in an endless loop, as its observation describes it (see this module)."""

    note_s: float
    tones_hz: tuple[float, ...]
    notes: str

    @classmethod
    def from_observation(cls, described: Observation) -> "Melody":
        """Return the melody that a scenario's observation describes."""
        return cls(float(described["note_s"]), tuple(described["tones_hz"]), str(described["notes"]))

    def then(self, other: "Melody") -> "Melody":
        """Return this melody followed by `other`, which must have the same tones and note length."""
        return Melody(self.note_s, self.tones_hz, self.notes + other.notes)

    def frames(self) -> NDArray[np.uint8]:
        """Return the tones of one round of the melody: for each frame of `FRAME_S`, the index into `tones_hz`."""
        tones = np.array([int(note, 16) for note in self.notes], dtype=np.uint8)
        count = round(len(tones) * self.note_s / FRAME_S)
        return np.asarray(tones[(np.arange(count) * FRAME_S / self.note_s + 1e-9).astype(int)])


@dataclass(frozen=True)
class Position:
    """The position in the melody that was recognised at one time of the recording.

    Attributes:
        at_s: time from the start of the recording, s.
        source_s: position in the melody, s from its first note; less than the melody's length.
    """

    at_s: float
    source_s: float


@dataclass(frozen=True)
class Skip:
    """A jump of the playback position in the melody that is not due to a pause.

    Attributes:
        at_s: time of the jump, s from the start of the recording.
        jump_s: length of the part of the melody that was left out, s; if a part was repeated, minus its length.
    """

    at_s: float
    jump_s: float


@dataclass(frozen=True)
class Alignment:
    """The positions in a melody that were recognised in a recording.

    Attributes:
        positions: the recognised positions, in the order of the recording.
        skips: jumps of the playback between consecutive recognised positions.
        recognised: share of the recording's time without pauses in which the melody was recognised, 0 … 1.
    """

    positions: tuple[Position, ...]
    skips: tuple[Skip, ...]
    recognised: float


def align(recording: Recording, melody: Melody, silent: Sequence[Pause]) -> Alignment:
    """Find the positions of a melody in a recording.

    Args:
        recording: the recorded sound.
        melody: the melody that was sent, in an endless loop.
        silent: all pauses of the recording, long and short ones (`recording.pauses`).
    """
    heard = _tones(recording, melody.tones_hz)
    sent = melody.frames()
    positions: list[Position] = []
    recognised = np.zeros(len(heard), dtype=bool)
    sounding = 0
    for first, last in _between(silent, len(heard)):
        sounding += last - first
        for start, end in _windows(first, last):
            at_s = (start + end) / 2 * FRAME_S
            expected = _expected(positions, at_s, silent, melody) if positions else None
            offset = _best_offset(heard[start:end], sent, None if expected is None else expected - (end - start) // 2)
            if offset is not None:
                source = (offset + (end - start) / 2) % len(sent)
                positions.append(Position(at_s, source * FRAME_S))
                recognised[start:end] = True
    skips = tuple(_skips(positions, silent, len(sent) * FRAME_S))
    return Alignment(tuple(positions), skips, float(recognised.sum() / sounding) if sounding else 0.0)


def _tones(recording: Recording, tones_hz: Sequence[float]) -> NDArray[np.uint8]:
    """Return the tone in each frame of the recording, as an index of `tones_hz`; `_NO_TONE`: not a pure tone."""
    size, hop = round(_SPECTRUM_S * recording.rate_hz), recording.frame_samples
    count = len(recording.samples) // hop
    # Each spectrum covers the samples around the middle of its frame.
    margin = (size - hop) // 2
    padded = np.pad(recording.samples, (margin, size))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[: count * hop : hop] * np.hanning(size)
    times = np.arange(size) / recording.rate_hz
    waves = np.exp(-2j * np.pi * np.outer(times, np.array(tones_hz)))
    power = np.abs(frames @ waves) ** 2
    # Peak power of a pure tone with this energy, after the Hann window.
    total = np.sum(frames**2, axis=1) * size / 3
    best = np.argmax(power, axis=1).astype(np.uint8)
    pure = power.max(axis=1, initial=0.0) >= _PURITY * np.maximum(total, 1e-12)
    return np.asarray(np.where(pure, best, _NO_TONE), dtype=np.uint8)


def _between(silent: Sequence[Pause], count: int) -> Iterator[tuple[int, int]]:
    """Yield first frame and end frame (exclusive) of each part with sound: before, between and after the pauses."""
    first = 0
    for pause in silent:
        start, end = round(pause.start_s / FRAME_S), round(pause.end_s / FRAME_S)
        if start > first:
            yield first, min(start, count)
        first = end
    if first < count:
        yield first, count


def _windows(first: int, last: int) -> Iterator[tuple[int, int]]:
    length = min(_WINDOW_FRAMES, last - first)
    if length < _LEAST_FRAMES:
        return
    for start in range(first, last - length, _STEP_FRAMES):
        yield start, start + length
    yield last - length, last


def _best_offset(heard: NDArray[np.uint8], sent: NDArray[np.uint8], expected: int | None) -> int | None:
    """Return the frame of the melody `sent` at which the excerpt `heard` begins; None if it matches nowhere.

    Among frames that match about equally well, the one nearest to the frame `expected` is returned.
    """
    doubled = np.concatenate([sent, sent])

    def share(offset: int) -> float:
        return float(np.mean(doubled[offset : offset + len(heard)] == heard))

    if expected is not None:
        near = {offset: share(offset) for offset in ((expected + shift) % len(sent) for shift in _NEAR)}
        offset = max(near, key=lambda offset: near[offset])
        if near[offset] >= _CERTAIN:
            return offset
    exact = {int(offset): share(int(offset)) for offset in _candidates(heard, sent, doubled)}
    best = max(exact.values(), default=0.0)
    if best < _MATCH:
        return None
    good = [offset for offset in exact if exact[offset] >= best - _TIE]
    if expected is None:
        return good[len(good) // 2]
    return min(good, key=lambda offset: abs(_wrapped(offset - expected, len(sent))))


def _candidates(heard: NDArray[np.uint8], sent: NDArray[np.uint8], doubled: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return all frames of the melody at which the excerpt `heard` matches about as well as at the best frame.

    The result is empty if the best match is poor. Only every `_COARSE`-th frame of the excerpt is compared.
    """
    compared = range(0, len(heard), _COARSE)
    picked = [frame for frame in compared if heard[frame] != _NO_TONE]
    matches = np.zeros(len(sent), dtype=np.int16)
    for frame in picked:
        matches += doubled[frame : frame + len(sent)] == heard[frame]
    least = max(matches.max() - _TIE * len(compared) - 1, _MATCH * len(compared) * 0.8)
    return np.flatnonzero(matches >= least)


def _expected(positions: Sequence[Position], at_s: float, silent: Sequence[Pause], melody: Melody) -> int:
    """Return the frame of the melody that plays at `at_s` of the recording if nothing was skipped after `positions`."""
    last = positions[-1]
    played = at_s - last.at_s - _silent_between(silent, last.at_s, at_s)
    return round((last.source_s + played) / FRAME_S) % round(len(melody.notes) * melody.note_s / FRAME_S)


def _skips(positions: Sequence[Position], silent: Sequence[Pause], round_s: float) -> Iterator[Skip]:
    for before, after in itertools.pairwise(positions):
        played = after.at_s - before.at_s - _silent_between(silent, before.at_s, after.at_s)
        jump = _wrapped_s(after.source_s - before.source_s - played, round_s)
        if abs(jump) >= SKIP_S:
            yield Skip((before.at_s + after.at_s) / 2, float(jump))


def _silent_between(silent: Sequence[Pause], start_s: float, end_s: float) -> float:
    return sum(max(0.0, min(pause.end_s, end_s) - max(pause.start_s, start_s)) for pause in silent)


def _wrapped(distance: int, length: int) -> int:
    return (distance + length // 2) % length - length // 2


def _wrapped_s(distance: float, length: float) -> float:
    return (distance + length / 2) % length - length / 2
