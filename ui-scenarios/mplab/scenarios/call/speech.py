"""Find the files and utterances of the recorded speech that callers play; the service `turn` has generated it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Utterance:
    """One utterance of the recorded speech, 8 to 12 s long, by one voice; times are s from the recording's start."""

    number: int
    voice: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Speech:
    """Files of the recorded speech, and its utterances.

    Attributes:
        sent: WAV file that the caller plays.
        reference: WAV file with the same speech at 16 kHz.
        quiet: WAV file with the noise of a quiet room, for the microphone of the phone.
        utterances: the utterances in the order of the recording.
    """

    sent: Path
    reference: Path
    quiet: Path
    utterances: tuple[Utterance, ...]

    @classmethod
    def of_service(cls, facts: Mapping[str, str]) -> "Speech":
        """Return the speech of the service `turn`; `facts` are that service's facts, with the paths of the files."""
        entries = json.loads(Path(facts["utterances"]).read_text())
        utterances = tuple(
            Utterance(number, entry["voice"], entry["start_s"], entry["end_s"])
            for number, entry in enumerate(entries, 1)
        )
        return cls(Path(facts["sent"]), Path(facts["reference"]), Path(facts["quiet"]), utterances)

    def within(self, duration_s: float) -> Sequence[Utterance]:
        """Return the utterances that end within the first `duration_s` of the recording; at least one utterance."""
        return self.utterances[:1] + tuple(item for item in self.utterances[1:] if item.end_s <= duration_s)
