"""Retention: the rules in a campaign file, and ``retention.jsonl``, the log of what was compressed or removed."""

from itertools import pairwise
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mplab.format.events import Event
from mplab.format.names import Name
from mplab.format.units import AgeS, format_age_s


class RetentionFile(BaseModel):
    """How long runs are kept; what is not named is kept for ever."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compress_after: AgeS | None = Field(None, description="Captures are compressed (gzip) when the run is so old.")
    captures: AgeS | None = Field(None, description="They are removed; tables, scores and reports stay.")
    runs: AgeS | None = Field(None, description="Whole runs are removed.")
    keep_last: int = Field(5, ge=1, description="So many finished runs of each experiment lose nothing.")
    keep: tuple[Name, ...] = Field((), description="Runs of experiments with one of these tags are never touched.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        given = {"compress_after": self.compress_after, "captures": self.captures, "runs": self.runs}
        ages = [(key, age) for key, age in given.items() if age is not None]
        if not ages:
            raise ValueError("retention needs 'compress_after', 'captures' or 'runs'")
        for (earlier, age), (later, other) in pairwise(ages):
            if other <= age:
                raise ValueError(f"{later} {format_age_s(other)}: must be more than {earlier}, {format_age_s(age)}")
        return self


class RetentionEvent(Event):
    """An event of ``retention.jsonl``: of a run, or next to the runs."""


class CaptureCompressed(RetentionEvent):
    """A capture was compressed; in the log of its run."""

    file: str
    """Relative to the run directory."""
    to: str
    rule: str
    """As the campaign file has it: ``compress_after: 7 d``."""
    bytes: int
    sha256: str
    compressed_bytes: int


class CaptureRemoved(RetentionEvent):
    """A capture is removed; in the log of its run."""

    file: str
    rule: str
    bytes: int
    sha256: str


class RunRemoved(RetentionEvent):
    """A run is removed; in the log next to the runs."""

    run: str
    rule: str
    bytes: int
    manifest_sha256: str
