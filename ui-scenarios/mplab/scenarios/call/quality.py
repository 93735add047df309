"""Rate the speech that a phone received: locate it in a recording, and compute its delay and its PESQ MOS."""

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
    """Conversion between positions in a recorded track and wall-clock times.

    The program that records writes pairs: the number of samples so far, and the wall-clock time. The time is too late
    if the program had to wait for a processor. Each pair is therefore corrected by the smallest delay of all pairs
    within 1 s before and after it. A delay that lasts longer is a pause of the track: the player requested no samples.

    Args:
        pairs: number of samples so far, and unix time, s; about ten pairs per second.
        rate_hz: number of samples per second.
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
        """Return start (unix time, s; error of up to 0.2 s) and length (s) of each pause of the track."""
        steps = np.diff(self._began)
        return [[float(self._times[at]) - _AROUND_S, float(steps[at])] for at in np.flatnonzero(steps > _LEAST_PAUSE_S)]

    @property
    def pause_s(self) -> float:
        """Return the total length of all pauses of the track, s."""
        return float(np.maximum(np.diff(self._began), 0).sum())


RATE_HZ = 16_000
"""Sampling rate of all `Samples`, that of wide-band PESQ."""
WORST_MOS = 1.0
"""MOS of speech that did not arrive: the lowest value of the scale in nikravesh2016 §3.3."""
LATEST_S = 10.0
"""Longest delay from mouth to ear at which speech is searched for, s."""
PIECE_S = 1.5
"""Length of the pieces in which an utterance is searched for, s. A player stretches longer pieces too much."""
FOUND_STRENGTH = 0.5
"""Smallest normalised correlation at which a piece counts as found."""

_MODULE = "pesqc2"
_MARGIN_S = 0.25
_EARLY_S = 0.1
_SILENT_RMS = 1e-4

Samples = NDArray[np.float64]


class _Pesq(Protocol):
    """Type of the module ``pesqc2``, which has no type annotations."""

    NoUtterancesError: type[Exception]

    def pesq(self, fs: int, ref: Samples, deg: Samples, mode: str) -> float: ...


@dataclass(frozen=True)
class FoundAt:
    """Best match of a piece of sound in a recording.

    Attributes:
        index: number of the recording's sample at which the match begins.
        strength: normalised correlation; 1: the recording has an exact copy.
    """

    index: int
    strength: float


@dataclass(frozen=True)
class Mos:
    """MOS-LQO by PESQ with Corrigendum 2 of P.862: narrow band (ITU-T P.862.1) and wide band (ITU-T P.862.2)."""

    narrow: float
    wide: float


def read_wav(path: Path) -> Samples:
    """Return the sound in a 16-bit mono WAV file as samples between −1 and 1, resampled to 16 kHz."""
    with wave.open(str(path)) as file:
        return from_bytes(file.readframes(file.getnframes()), file.getframerate())


def from_bytes(data: bytes, rate_hz: int) -> Samples:
    """Convert 16-bit little-endian samples at `rate_hz` to samples between −1 and 1, resampled to 16 kHz."""
    samples: Samples = np.frombuffer(data, dtype="<i2") / 32768
    common = gcd(rate_hz, RATE_HZ)
    if rate_hz == RATE_HZ:
        return samples
    changed: Samples = resample_poly(samples, RATE_HZ // common, rate_hz // common)
    return changed


def is_silent(samples: Samples) -> bool:
    """Return whether the RMS level of the samples is below −80 dB relative to full scale; True without samples."""
    return len(samples) == 0 or float(np.sqrt(np.mean(samples**2))) < _SILENT_RMS


def find(part: Samples, recording: Samples, *, first: int = 0, last: int | None = None) -> FoundAt:
    """Locate `part` in `recording` by cross-correlation. Return the best match.

    Args:
        part: samples to search for.
        recording: samples to search in.
        first: lowest index at which the match may begin; negative: before the recording, where silence is assumed.
        last: highest index at which the match may begin; None: the index at which `part` ends with the recording.
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
    """Return `length` samples from index `start` on, plus 0.25 s on both sides.

    Samples outside of the recording are silence.
    """
    margin = round(_MARGIN_S * RATE_HZ)
    first, last = start - margin, start + length + margin
    before, after = max(0, -first), max(0, last - len(recording))
    return np.pad(recording[max(0, first) : max(0, last)], (min(before, last - first), min(after, last - first)))


@dataclass(frozen=True)
class ReceivedUtterance:
    """Delays and quality of one utterance that the phone received.

    Attributes:
        delays_s: delay from mouth to ear of each piece of the utterance that was found, s.
        mos: PESQ MOS of the utterance; None: PESQ is not installed.
    """

    delays_s: tuple[float, ...]
    mos: Mos | None


def hear(
    reference: Samples, recording: Samples, clock: Clock, *, bounds_s: tuple[float, float], said_at: float
) -> ReceivedUtterance:
    """Locate an utterance in the phone's recording. Return its delays and its MOS.

    Args:
        reference: all speech of the call, 16 kHz.
        recording: all sound that the phone played, 16 kHz.
        clock: wall-clock times of `recording`.
        bounds_s: start and end of the utterance in `reference`, s.
        said_at: unix time at which the utterance began at the caller, s.
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
    """Return the PESQ MOS of received speech (`degraded`) compared with its reference; None: PESQ is not installed.

    Both have 16 kHz. If the received speech is silent, or PESQ finds no utterance in it, its MOS is `WORST_MOS`.
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
