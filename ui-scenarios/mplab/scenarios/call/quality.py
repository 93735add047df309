"""Rate received speech: locate it in a recording, find the wall-clock time of samples, and compute the PESQ MOS."""

import importlib
import importlib.util
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve, resample_poly

_AROUND_S = 1.0
_LEAST_PAUSE_S = 0.005


class Clock:
    """The wall-clock times of a track's samples.

    The recording program notes pairs: the number of samples so far, and the wall-clock time. A pair is late when the
    program waited for a processor. Each pair therefore takes the smallest delay of all pairs within 1 s before and
    after it. A delay that lasts longer is a pause of the track: the player requested no samples.

    Args:
        pairs: number of samples so far, and unix time, s; about ten pairs per second.
        rate_hz: samples per second.
    """

    def __init__(self, pairs: Sequence[Sequence[float]], rate_hz: float) -> None:
        columns = np.asarray(pairs, dtype=float)
        self._positions_s = columns[:, 0] / rate_hz
        self._times = columns[:, 1]
        late = self._times - self._positions_s
        starts = np.searchsorted(self._positions_s, self._positions_s - _AROUND_S)
        ends = np.searchsorted(self._positions_s, self._positions_s + _AROUND_S, side="right")
        self._began = np.array([late[start:end].min() for start, end in zip(starts, ends, strict=True)])

    def time_at(self, position_s: float) -> float:
        """Return the unix time, s, of the sample at `position_s` seconds from the start of the recording."""
        return float(np.interp(position_s, self._positions_s, self._began)) + position_s

    def position_at(self, time: float) -> float:
        """Return the position, in seconds from the start of the recording, of the sample at a unix time, s."""
        position_s: float = np.interp(time, np.maximum.accumulate(self._began + self._positions_s), self._positions_s)
        return float(position_s)

    def pauses(self) -> list[list[float]]:
        """Return the pauses of the track: start (unix seconds, within 0.2 s) and length (seconds)."""
        steps = np.diff(self._began)
        return [[float(self._times[at]) - _AROUND_S, float(steps[at])] for at in np.flatnonzero(steps > _LEAST_PAUSE_S)]

    @property
    def pause_s(self) -> float:
        """Total length of all pauses, s."""
        return float(np.maximum(np.diff(self._began), 0).sum())


RATE_HZ = 16_000
"""Sampling rate of all samples in this module, that of wide-band PESQ."""
WORST_MOS = 1.0
"""MOS of speech that did not arrive: the lowest value of the papers' scale (nikravesh2016 §3.3)."""
LATEST_S = 10.0
"""Longest delay at which speech is searched for, s."""
PIECE_S = 1.5
"""Length of the pieces in which speech is searched for, s. A player stretches and shrinks longer pieces too much."""
FOUND_STRENGTH = 0.5
"""Minimum correlation of a piece that counts as found."""

_MODULE = "pesqc2"
_MARGIN_S = 0.25
_EARLY_S = 0.1
_SILENT_RMS = 1e-4

Samples = NDArray[np.float64]


class _Pesq(Protocol):
    """The module ``pesqc2``."""

    NoUtterancesError: type[Exception]

    def pesq(self, fs: int, ref: Samples, deg: Samples, mode: str) -> float: ...


@dataclass(frozen=True)
class FoundAt:
    """Best match of some samples in a recording.

    Attributes:
        index: first sample of the match.
        strength: normalised correlation, 1 for a copy.
    """

    index: int
    strength: float


@dataclass(frozen=True)
class Mos:
    """PESQ MOS-LQO: ITU-T P.862.1 (narrow band), P.862.2 (wide band), with Corrigendum 2 of P.862."""

    narrow: float
    wide: float


def read_wav(path: Path) -> Samples:
    """Read a 16-bit mono WAV file as samples between −1 and 1 at 16 kHz."""
    with wave.open(str(path)) as file:
        return from_bytes(file.readframes(file.getnframes()), file.getframerate())


def from_bytes(data: bytes, rate_hz: int) -> Samples:
    """Return 16-bit little-endian samples as samples between −1 and 1 at 16 kHz."""
    samples: Samples = np.frombuffer(data, dtype="<i2") / 32768
    common = gcd(rate_hz, RATE_HZ)
    if rate_hz == RATE_HZ:
        return samples
    changed: Samples = resample_poly(samples, RATE_HZ // common, rate_hz // common)
    return changed


def is_silent(samples: Samples) -> bool:
    """Return whether the level of the samples is below −80 dB of full scale; True for no samples."""
    return len(samples) == 0 or float(np.sqrt(np.mean(samples**2))) < _SILENT_RMS


def find(part: Samples, recording: Samples, *, first: int = 0, last: int | None = None) -> FoundAt:
    """Locate `part` in `recording` by cross-correlation.

    Args:
        part: samples to search for.
        recording: samples to search in.
        first: lowest start index; negative indices are silence.
        last: highest start index; None: the index at which `part` ends together with the recording.
    """
    last = len(recording) - len(part) if last is None else last
    before, after = max(0, -first), max(0, last + len(part) - len(recording))
    window = np.pad(recording[max(0, first) : last + len(part)], (before, after))
    if len(window) < len(part):
        return FoundAt(first, 0.0)
    products = fftconvolve(window, part[::-1], mode="valid")
    sums = np.concatenate(([0.0], np.cumsum(window**2)))
    norms = np.sqrt(np.maximum(sums[len(part) :] - sums[: -len(part)], 1e-9) * max(float(np.sum(part**2)), 1e-9))
    at = int(np.argmax(products))
    return FoundAt(first + at, float(products[at] / norms[at]))


def cut(recording: Samples, start: int, length: int) -> Samples:
    """Return `length` samples from `start` on, and 0.25 s more on both sides. Beyond the recording there is silence."""
    margin = round(_MARGIN_S * RATE_HZ)
    first, last = start - margin, start + length + margin
    before, after = max(0, -first), max(0, last - len(recording))
    return np.pad(recording[max(0, first) : max(0, last)], (min(before, last - first), min(after, last - first)))


@dataclass(frozen=True)
class ReceivedUtterance:
    """A received utterance.

    Attributes:
        delays_s: delay from mouth to ear of each piece that was found.
        mos: PESQ MOS; None: PESQ is not installed.
    """

    delays_s: tuple[float, ...]
    mos: Mos | None


def hear(
    reference: Samples, recording: Samples, clock: Clock, *, bounds_s: tuple[float, float], said_at: float
) -> ReceivedUtterance:
    """Locate an utterance in a recording, and rate it.

    Args:
        reference: all speech of the call, 16 kHz.
        recording: all sound that the phone played, 16 kHz.
        clock: of the recording.
        bounds_s: start and end of the utterance in `reference`.
        said_at: unix time at which the utterance starts at the caller, s.
    """
    start, end = (round(bound * RATE_HZ) for bound in bounds_s)
    length = round(PIECE_S * RATE_HZ)
    shifts, delays = [], []
    for first in range(start, end - length + 1, length):
        said_at_piece = said_at + (first - start) / RATE_HZ
        expected = round(clock.position_at(said_at_piece) * RATE_HZ)
        earliest, latest = expected - round(_EARLY_S * RATE_HZ), expected + round(LATEST_S * RATE_HZ)
        match = find(reference[first : first + length], recording, first=earliest, last=latest)
        if match.strength >= FOUND_STRENGTH:
            shifts.append(match.index - first)
            delays.append(clock.time_at(match.index / RATE_HZ) - said_at_piece)
    # Not found: rate the sound at the position of an undelayed utterance.
    shift = round(float(np.median(shifts))) if shifts else round(clock.position_at(said_at) * RATE_HZ) - start
    degraded = cut(recording, start + shift, end - start)
    return ReceivedUtterance(tuple(delays), mos(cut(reference, start, end - start), degraded))


def has_pesq() -> bool:
    """Return whether PESQ, an optional package, is installed."""
    return importlib.util.find_spec(_MODULE) is not None


def mos(reference: Samples, degraded: Samples) -> Mos | None:
    """Return the PESQ MOS of speech at 16 kHz against its reference; None: PESQ is not installed.

    Silence, and speech in which PESQ finds no utterance, have `WORST_MOS`.
    """
    if not has_pesq():
        return None
    if is_silent(degraded):
        return Mos(WORST_MOS, WORST_MOS)
    module = _pesq()
    try:
        return Mos(*(float(module.pesq(RATE_HZ, reference, degraded, mode)) for mode in ("nb", "wb")))
    except module.NoUtterancesError:
        return Mos(WORST_MOS, WORST_MOS)


@cache
def _pesq() -> _Pesq:
    return cast("_Pesq", importlib.import_module(_MODULE))  # a module without types
