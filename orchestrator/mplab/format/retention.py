"""Retention: the rules in a campaign file, and ``retention.jsonl``, the log of compressed and removed files."""

from itertools import pairwise
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mplab.format.events import Event
from mplab.format.names import Name
from mplab.format.units import AgeS, format_age_s


class RetentionFile(BaseModel):
    """Maximum age of runs and their captures. Without a limit, they are kept forever."""

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
    """Event of ``retention.jsonl``, in a run directory or next to the run directories."""


class CaptureCompressed(RetentionEvent):
    """A capture was compressed; logged in its run."""

    file: str
    """Path relative to the run directory."""
    to: str
    rule: str
    """Rule as in the campaign file: ``compress_after: 7 d``."""
    bytes: int
    sha256: str
    compressed_bytes: int


class CaptureRemoved(RetentionEvent):
    """A capture was removed; logged in its run."""

    file: str
    rule: str
    bytes: int
    sha256: str


class RunRemoved(RetentionEvent):
    """A run was removed; logged next to the runs."""

    run: str
    rule: str
    bytes: int
    manifest_sha256: str
