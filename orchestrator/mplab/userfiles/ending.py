"""When a run ends before its plan does: its time is over, or too much goes wrong."""

from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mplab.base.suggest import show
from mplab.format.units import Percent
from mplab.userfiles.yaml import Document

_DAY = timedelta(days=1)


def parse_time_of_day(found: object) -> time:
    """``"06:00"``. Raises ValueError."""
    try:
        return datetime.strptime(str(found), "%H:%M").time()  # noqa: DTZ007 - of any day, this host's
    except ValueError:
        raise ValueError(f'{show(found)}: a time of day is needed, like "06:00"') from None


TimeOfDay = Annotated[
    time,
    BeforeValidator(parse_time_of_day),
    WithJsonSchema({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "examples": ["06:00"]}),
]


class IntervalFile(BaseModel):
    """When a run has told enough: the 95 % intervals of a metric are narrow for every transport."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str = Field(min_length=1, description="Name of the metric.")
    within: Annotated[Percent, Field(gt=0)] = Field(description="Half of an interval's width at most, of a median.")
    of: Literal["differences", "medians"] = Field(
        "differences", description="Of a transport against the best single path, by block; or of each by itself."
    )
    after: int = Field(6, ge=3, le=1000, description="So many blocks are run in any case.")
    scenarios: tuple[str, ...] = Field((), description="Labels of the scenarios that are looked at; all by default.")
    links: tuple[str, ...] = Field((), description="Link conditions that are looked at; all by default.")


class StopFile(BaseModel):
    """What ends a run before its plan is done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int | None = Field(None, ge=1, description="So many cells in a row that are not ok.")
    interval: IntervalFile | None = Field(None, description="Intervals that are narrow enough.")


@dataclass(frozen=True)
class EnoughRule:
    """When a run has told enough; ``place`` is its file and line. Scenarios and links: empty is all."""

    metric: str
    within_percent: float
    of: str
    after: int
    scenarios: tuple[str, ...]
    links: tuple[str, ...]
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        """As in manifest.json."""
        content = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        del content["place"]
        return content


def enough_rule(file: IntervalFile | None, document: Document) -> EnoughRule | None:
    """As a document says, with its place there."""
    if file is None:
        return None
    place = document.place(("stop", "interval"))
    return EnoughRule(file.metric, file.within, file.of, file.after, file.scenarios, file.links, place)


@dataclass(frozen=True)
class Ending:
    """What ends a run before its plan is done.

    Attributes:
        max_s: so long it may take, from each start on, seconds.
        until: by then it is to have ended, by this host's clock.
        failures: so many cells in a row that are not ok end it.
        interval: when it has told enough.
    """

    max_s: float | None = None
    until: time | None = None
    failures: int | None = None
    interval: EnoughRule | None = None

    def deadline(self, begun: datetime) -> datetime | None:
        """When a run that has `begun` is to have ended, or None."""
        found = [begun + timedelta(seconds=self.max_s)] if self.max_s is not None else []
        if self.until is not None:
            at = begun.replace(hour=self.until.hour, minute=self.until.minute, second=0, microsecond=0)
            found.append(at if at > begun else at + _DAY)
        return min(found, default=None)

    def to_json(self) -> dict[str, Any]:
        """As in manifest.json; empty when nothing does."""
        until = self.until.strftime("%H:%M") if self.until is not None else None
        interval = self.interval.to_json() if self.interval is not None else None
        given = {"max_s": self.max_s, "until": until, "failures": self.failures, "interval": interval}
        return {name: value for name, value in given.items() if value is not None}


AT_THE_END = Ending()
"""Nothing ends it before."""
