"""Compose melodies of random notes without rests. A short excerpt shows its position in the melody.

The same seed always gives the same melody.
"""

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mplab.base.errors import DeviceError
from mplab.base.programs import Program

FFMPEG = Program("ffmpeg", ("ffmpeg",), ("-version",), "ffmpeg", "encodes sound and sends it as a radio station does")
NOTE_S = 0.12
"""Length of a note, s: five MP3 frames at 48 kHz, so that each melody has a whole number of frames."""
TONES_HZ = tuple(round(440.0 * 2 ** (step / 6), 2) for step in range(16))
"""A whole-tone scale from a' (440 Hz). Neighbours are at least 50 Hz apart; the highest tone is below 2.5 kHz."""
RATE_HZ = 48_000
AMPLITUDE = 0.3
"""Peak amplitude as a share of full scale: a constant −13.5 dB RMS."""
_FRAME_SAMPLES = 1152
_MARGIN_FRAMES = 50
_ENCODE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class StationMelody:
    """A melody of notes of `NOTE_S`. Each hexadecimal digit of `notes` is a tone: an index of `TONES_HZ`."""

    notes: str

    @classmethod
    def composed(cls, seed: int, duration_s: float) -> "StationMelody":
        """Return a random melody of about `duration_s`. Adjacent notes differ, also the last and the first note."""
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        notes: list[int] = []
        count = round(duration_s / NOTE_S)
        for number in range(count):
            taken = {notes[-1]} if notes else set()
            if number == count - 1:
                taken.add(notes[0])
            notes.append(rng.choice([tone for tone in range(len(TONES_HZ)) if tone not in taken]))
        return cls("".join(f"{tone:x}" for tone in notes))

    @property
    def duration_s(self) -> float:
        """Return the duration of the melody, s."""
        return len(self.notes) * NOTE_S

    def describe(self) -> dict[str, object]:
        """Return the melody as JSON values: ``note_s``, ``tones_hz`` and ``notes``, which scoring of sound needs."""
        return {"note_s": NOTE_S, "tones_hz": list(TONES_HZ), "notes": self.notes}

    def samples(self) -> NDArray[np.int16]:
        """Return the sound of the melody: 16-bit mono samples at `RATE_HZ`. There are no clicks between the notes."""
        per_note = round(NOTE_S * RATE_HZ)
        tones = np.array(TONES_HZ)[[int(note, 16) for note in self.notes]]
        phase = np.cumsum(np.repeat(2 * np.pi * tones / RATE_HZ, per_note))
        return np.asarray(np.round(AMPLITUDE * 32767 * np.sin(phase)), dtype=np.int16)


def write_mp3(melody: StationMelody, path: Path, *, kbps: int) -> None:
    """Encode a melody as MP3 to the file `path`, so that it can be repeated without a gap.

    The bit rate is constant, `kbps` kbit/s. Frames are independent of each other, and there is no header frame. The
    encoder gets the end of the melody (`_MARGIN_FRAMES` frames), the melody, and the beginning of the melody again. Of
    the encoded frames, only those of the melody itself are kept.

    Raises:
        DeviceError: ffmpeg failed.
    """
    samples = melody.samples()
    margin = _MARGIN_FRAMES * _FRAME_SAMPLES
    padded = np.concatenate([samples[-margin:], samples, samples[:margin]])
    argv = [
        *(str(FFMPEG.path()), "-v", "error", "-f", "s16le", "-ar", str(RATE_HZ), "-ac", "1", "-i", "pipe:0"),
        *("-c:a", "libmp3lame", "-b:a", f"{kbps}k", "-reservoir", "0", "-ac", "2", "-write_xing", "0"),
        *("-id3v2_version", "0", "-f", "mp3", "pipe:1"),
    ]
    result = subprocess.run(argv, input=padded.tobytes(), capture_output=True, timeout=_ENCODE_TIMEOUT_S, check=False)
    frame_bytes = kbps * 1000 // 8 * _FRAME_SAMPLES // RATE_HZ
    first, count = _MARGIN_FRAMES * frame_bytes, len(samples) // _FRAME_SAMPLES * frame_bytes
    if result.returncode != 0 or len(result.stdout) < first + count:
        raise DeviceError(
            "ffmpeg",
            f"{path.name} was not encoded",
            command=tuple(argv),
            exit_code_found=result.returncode,
            stderr=result.stderr.decode(errors="replace"),
        )
    temporary = path.with_suffix(".new")
    temporary.write_bytes(result.stdout[first : first + count])
    temporary.replace(path)
