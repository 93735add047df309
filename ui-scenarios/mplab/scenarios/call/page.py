"""Read measurements and recorded sound from the web page that made a call, after the call."""

import base64
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

from mplab.base.errors import StepError
from mplab.drivers.ui import BrowserUi

Track = Literal["heard", "spoken"]
"""Recorded track of one browser. ``heard``: sound that it received and played; ``spoken``: sound of its microphone."""

STATE = "return document.body.dataset.state;"
_EVENTS = "return Object.fromEntries(call.events.map(([at, name]) => [name, at]));"
_STATS = "return call.stats;"
_BEATS = "return call.beats;"

_INBOUND = (
    "packetsReceived",
    "packetsLost",
    "packetsDiscarded",
    "bytesReceived",
    "headerBytesReceived",
    "jitter",
    "totalSamplesReceived",
    "concealedSamples",
    "silentConcealedSamples",
    "concealmentEvents",
    "insertedSamplesForDeceleration",
    "removedSamplesForAcceleration",
    "jitterBufferDelay",
    "jitterBufferTargetDelay",
    "jitterBufferMinimumDelay",
    "jitterBufferEmittedCount",
    "totalAudioEnergy",
    "audioLevel",
)
_PAIR = ("currentRoundTripTime", "totalRoundTripTime", "responsesReceived", "bytesSent", "bytesReceived")
_CANDIDATE = ("candidateType", "protocol", "relayProtocol", "networkType", "address", "port")
_REMOTE_INBOUND = ("roundTripTime", "jitter", "packetsLost", "fractionLost")
_OUTBOUND = ("packetsSent", "bytesSent", "headerBytesSent", "retransmittedPacketsSent")


Sample: TypeAlias = Mapping[str, Any]
"""One sample of WebRTC's ``getStats``: the unix time ``at``, s, and the values at that time, by group."""


class _About(TypedDict):
    """Description of a recorded track by the page's recorder."""

    samples: int
    kept: int
    pieces: int
    rate: int
    clock: list[list[float]]
    gaps: int


def events(ui: BrowserUi) -> dict[str, float]:
    """Return a mapping: name of a state of the call → unix time at which the call last entered this state, s."""
    times: dict[str, float] = ui.evaluate(_EVENTS)
    return times


def statistics(ui: BrowserUi) -> list[Sample]:
    """Return the samples of ``getStats``, one for each second, in the units of W3C webrtc-stats."""
    return [_flat(sample) for sample in ui.evaluate(_STATS)]


def late_beats(ui: BrowserUi) -> list[list[float]]:
    """Return stalls of the browser as pairs: unix time when a timer tick or voice packet was due, s; its delay, s."""
    beats: list[list[float]] = ui.evaluate(_BEATS)
    return beats


def _flat(sample: Sample) -> Sample:
    groups = {
        "inbound": _INBOUND,
        "outbound": _OUTBOUND,
        "pair": _PAIR,
        "local": _CANDIDATE,
        "remote": _CANDIDATE,
        "remoteInbound": _REMOTE_INBOUND,
    }
    return {
        "at": sample["at"],
        **{
            name: {key: sample[name][key] for key in keys if key in sample[name]}
            for name, keys in groups.items()
            if sample[name]
        },
    }


@dataclass(frozen=True)
class Sound:
    """The recording of one track.

    Attributes:
        data: mono samples, 16 bits each.
        rate_hz: number of samples per second.
        clock: pairs of sample number and wall-clock time, the argument of `quality.Clock`.
        gaps: number of gaps in the track's time stamps.
    """

    data: bytes
    rate_hz: int
    clock: list[list[float]]
    gaps: int


def sound(ui: BrowserUi, track: Track) -> Sound:
    """Return the recording of a track, read from the page.

    Raises:
        StepError: there is no such track, it has no samples, or they cannot all be read.
    """
    about: _About | None = ui.evaluate(f"return call.{track} && call.{track}.about();")
    if not about or not about["samples"]:
        raise StepError(f"call: no sound: the track {track!r} has no samples")
    pieces = [base64.b64decode(ui.evaluate(f"return call.{track}.piece({index});")) for index in range(about["pieces"])]
    data = b"".join(pieces)
    if len(data) != 2 * about["kept"]:
        raise StepError(f"call: {len(data) // 2} of {about['kept']} samples of the track {track!r} were read")
    return Sound(data, about["rate"], about["clock"], about["gaps"])


def write_wav(path: Path, data: bytes, rate_hz: int) -> None:
    """Write 16-bit mono samples as a WAV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(data)
