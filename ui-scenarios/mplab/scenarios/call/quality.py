"""How good received speech is: where it is in a recording, and its PESQ MOS."""

import importlib
import importlib.util
import wave
from dataclasses import dataclass
from functools import cache
from math import gcd
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve, resample_poly

from .clock import Clock

RATE_HZ = 16_000
"""The sampling rate of everything here: that of wide-band PESQ."""
WORST_MOS = 1.0
"""Given to speech of which nothing came; the scale of the papers begins there (nikravesh2016 §3.3)."""
LATEST_S = 10.0
"""How long after it was said speech is looked for."""
PIECE_S = 1.5
"""Speech is looked for in pieces of this length: within a longer one a player stretches and shrinks too much."""
FOUND_STRENGTH = 0.5
"""From this correlation on a piece counts as found."""

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
    """Where something was found in a recording.

    Attributes:
        index: its first sample.
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
    """A 16-bit mono WAV file, at 16 kHz, between −1 and 1."""
    with wave.open(str(path)) as file:
        return from_bytes(file.readframes(file.getnframes()), file.getframerate())


def from_bytes(data: bytes, rate_hz: int) -> Samples:
    """16-bit little-endian samples, at 16 kHz, between −1 and 1."""
    samples: Samples = np.frombuffer(data, dtype="<i2") / 32768
    common = gcd(rate_hz, RATE_HZ)
    if rate_hz == RATE_HZ:
        return samples
    changed: Samples = resample_poly(samples, RATE_HZ // common, rate_hz // common)
    return changed


def is_silent(samples: Samples) -> bool:
    """Whether there is nothing to be heard (less than −80 dB of full scale)."""
    return len(samples) == 0 or float(np.sqrt(np.mean(samples**2))) < _SILENT_RMS


def find(part: Samples, recording: Samples, *, first: int = 0, last: int | None = None) -> FoundAt:
    """Where `part` is in `recording`, by cross-correlation.

    Args:
        first: earliest index that it may begin at.
        last: latest index; None: whatever lets it end with the recording.
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
    """`length` samples from `start` on, with a margin on both sides; silence where the recording has none."""
    margin = round(_MARGIN_S * RATE_HZ)
    first, last = start - margin, start + length + margin
    before, after = max(0, -first), max(0, last - len(recording))
    return np.pad(recording[max(0, first) : max(0, last)], (min(before, last - first), min(after, last - first)))


@dataclass(frozen=True)
class HeardUtterance:
    """What came of an utterance.

    Attributes:
        delays_s: from being said to being heard, of each piece that was found.
        mos: its PESQ MOS; None without the extra.
    """

    delays_s: tuple[float, ...]
    mos: Mos | None


def hear(
    reference: Samples, recording: Samples, clock: Clock, *, bounds_s: tuple[float, float], said_at: float
) -> HeardUtterance:
    """Find an utterance in what was recorded at 16 kHz, and rate it.

    Args:
        reference: everything that was said.
        recording: everything that was heard.
        clock: of the recording.
        bounds_s: where the utterance is in `reference`.
        said_at: when it was said, unix seconds.
    """
    start, end = (round(bound * RATE_HZ) for bound in bounds_s)
    length = round(PIECE_S * RATE_HZ)
    shifts, delays = [], []
    for first in range(start, end - length + 1, length):
        said = said_at + (first - start) / RATE_HZ
        expected = round(clock.position_at(said) * RATE_HZ)
        earliest, latest = expected - round(_EARLY_S * RATE_HZ), expected + round(LATEST_S * RATE_HZ)
        place = find(reference[first : first + length], recording, first=earliest, last=latest)
        if place.strength >= FOUND_STRENGTH:
            shifts.append(place.index - first)
            delays.append(clock.time_at(place.index / RATE_HZ) - said)
    # Not found: taken from where it would be without any delay, so that what is there instead is rated.
    shift = round(float(np.median(shifts))) if shifts else round(clock.position_at(said_at) * RATE_HZ) - start
    degraded = cut(recording, start + shift, end - start)
    return HeardUtterance(tuple(delays), mos(cut(reference, start, end - start), degraded))


def has_pesq() -> bool:
    """Whether PESQ is installed: it is an extra."""
    return importlib.util.find_spec(_MODULE) is not None


def mos(reference: Samples, degraded: Samples) -> Mos | None:
    """PESQ of speech at 16 kHz against what was said; None without the extra.

    Speech in which PESQ finds no utterance has `WORST_MOS`.
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
