"""The speech of a call: a recording made by the service `turn`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Utterance:
    """An utterance of one voice, 8 to 12 s; times in seconds since the start of the recording."""

    number: int
    voice: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Speech:
    """The recorded speech.

    Attributes:
        sent: WAV that the caller plays.
        reference: the same speech at 16 kHz.
        quiet: WAV of a quiet room, for the microphone of the phone.
        utterances: in their order.
    """

    sent: Path
    reference: Path
    quiet: Path
    utterances: tuple[Utterance, ...]

    @classmethod
    def of_service(cls, facts: Mapping[str, str]) -> "Speech":
        """Return the speech that the facts of the service `turn` name."""
        entries = json.loads(Path(facts["utterances"]).read_text())
        utterances = tuple(
            Utterance(number, entry["voice"], entry["start_s"], entry["end_s"])
            for number, entry in enumerate(entries, 1)
        )
        return cls(Path(facts["sent"]), Path(facts["reference"]), Path(facts["quiet"]), utterances)

    def within(self, duration_s: float) -> Sequence[Utterance]:
        """Return the utterances that end within `duration_s`; at least the first."""
        return self.utterances[:1] + tuple(item for item in self.utterances[1:] if item.end_s <= duration_s)
