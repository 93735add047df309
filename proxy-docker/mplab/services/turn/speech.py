"""Generate the speech for calls with espeak-ng, always the same, and note start and end of each utterance."""

import hashlib
import json
import subprocess
import wave
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from math import gcd
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML
from scipy.signal import resample_poly

from mplab.base.errors import DeviceError
from mplab.base.programs import Program

ESPEAK = Program("espeak-ng", ("espeak-ng",), ("--version",), "espeak-ng", "makes the speech of calls")

SENT_HZ, SCORED_HZ = 48_000, 16_000
"""Sampling rates, Hz, of the speech that the caller plays (as in Opus) and of its reference (as in PESQ)."""
LEAD_S, GAP_S = 1.0, 0.7
"""Silence before the first utterance, and after each utterance, s."""
UTTERANCE_S = (8.0, 12.0)
"""Shortest and longest utterance, s (ITU-T P.862.3)."""
_LEVEL_DBOV = -26.0
"""RMS level of each utterance, dB relative to full scale (ITU-T P.830)."""
_QUIET_DBOV, _QUIET_S = -75.0, 5.0
_TEXTS = Path(__file__).with_name("speech.yaml")
_VERSION = 1
_TIMEOUT_S = 30.0

Samples = NDArray[np.float64]


@dataclass(frozen=True)
class ScriptedUtterance:
    """One utterance of the speech: its voice and text; start and end are s from the start of the recording."""

    voice: str
    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class SpeechFiles:
    """Paths of the files of the recorded speech.

    Attributes:
        sent: WAV file with the speech that the caller plays: 48 kHz, 16 bit, mono.
        reference: WAV file with the same speech at 16 kHz, with which received speech is compared.
        utterances: JSON file with a list of `ScriptedUtterance`.
        quiet: WAV file with the noise of a quiet room, for the microphone of the phone: 48 kHz.
    """

    sent: Path
    reference: Path
    utterances: Path
    quiet: Path

    @classmethod
    def within(cls, directory: Path) -> "SpeechFiles":
        """Return the paths that the files have in `directory`."""
        names = ("speech-48k.wav", "speech-16k.wav", "utterances.json", "quiet.wav")
        return cls(*(directory / name for name in names))

    @property
    def complete(self) -> bool:
        """Return whether all files exist."""
        return all(path.is_file() for path in (self.sent, self.reference, self.utterances, self.quiet))


def make_recording(cache: Path) -> SpeechFiles:
    """Return the files of the recorded speech. Generate them unless `cache` has them.

    Files in the cache are used if they have the same texts and are from the same version of espeak-ng.

    Raises:
        DeviceError: espeak-ng failed, or the length of an utterance is outside of `UTTERANCE_S`.
    """
    texts = _TEXTS.read_bytes()
    key = hashlib.sha256(b"%d %s " % (_VERSION, ESPEAK.version().encode()) + texts).hexdigest()[:16]
    recording = SpeechFiles.within(cache / f"speech-{key}")
    if not recording.complete:
        _write(recording, YAML(typ="safe").load(texts))
    return recording


def _write(recording: SpeechFiles, entries: Sequence[Mapping[str, str | int]]) -> None:
    parts, utterances, position = [np.zeros(round(LEAD_S * SENT_HZ))], [], LEAD_S
    for entry in entries:
        voice, text = str(entry["voice"]), str(entry["text"])
        samples = _say(voice, int(entry["speed"]), text)
        length_s = len(samples) / SENT_HZ
        if not UTTERANCE_S[0] <= length_s <= UTTERANCE_S[1]:
            raise DeviceError("espeak-ng", f"{voice} says {text[:20]!r}… in {length_s:.1f} s: 8 to 12 s are wanted")
        utterances.append(ScriptedUtterance(voice, text, round(position, 6), round(position + length_s, 6)))
        parts += [samples, np.zeros(round(GAP_S * SENT_HZ))]
        position += length_s + GAP_S
    conversation = np.concatenate(parts)
    recording.sent.parent.mkdir(parents=True, exist_ok=True)
    write_wav(recording.sent, conversation, SENT_HZ)
    write_wav(recording.reference, resample_poly(conversation, 1, SENT_HZ // SCORED_HZ), SCORED_HZ)
    noise = np.random.default_rng(1).standard_normal(round(_QUIET_S * SENT_HZ))
    write_wav(recording.quiet, noise * 10 ** (_QUIET_DBOV / 20), SENT_HZ)
    recording.utterances.write_text(json.dumps([asdict(utterance) for utterance in utterances], indent=1))


def _say(voice: str, speed: int, text: str) -> Samples:
    """Return a spoken text as samples at `SENT_HZ` and `_LEVEL_DBOV`; no silence at its ends. Raises DeviceError."""
    argv = [str(ESPEAK.path()), "-v", voice, "-s", str(speed), "--stdout", text]
    result = subprocess.run(argv, capture_output=True, timeout=_TIMEOUT_S, check=False)
    if result.returncode != 0 or not result.stdout:
        raise DeviceError(
            "espeak-ng",
            "said nothing",
            command=tuple(argv),
            exit_code_found=result.returncode,
            stderr=result.stderr.decode(errors="replace"),
        )
    with wave.open(BytesIO(result.stdout)) as spoken:
        rate = spoken.getframerate()
        # The header of a streamed WAV has no true length: use the number of bytes received.
        samples = np.frombuffer(spoken.readframes(len(result.stdout) // 2), dtype="<i2") / 32768
    loud = np.flatnonzero(np.abs(samples) > 10 ** (-50 / 20))
    common = gcd(SENT_HZ, rate)
    resampled: Samples = resample_poly(samples[loud[0] : loud[-1] + 1], SENT_HZ // common, rate // common)
    return resampled * float(10 ** (_LEVEL_DBOV / 20) / np.sqrt(np.mean(resampled**2)))


def write_wav(path: Path, samples: Samples, rate_hz: int) -> None:
    """Write samples between −1 and 1 as a 16-bit mono WAV file. `path` exists only once the file is complete."""
    partial = path.with_suffix(".partial")
    with wave.open(str(partial), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes((np.clip(samples, -1, 1) * 32767).round().astype("<i2").tobytes())
    partial.rename(path)
