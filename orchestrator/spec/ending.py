"""When a run ends before its plan does: its time is over, or too much goes wrong."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from orchestrator.spec.suggest import show

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


@dataclass(frozen=True)
class Ending:
    """What ends a run before its plan is done.

    Attributes:
        max_s: so long it may take, from each start on, seconds.
        until: by then it is to have ended, by this host's clock.
        failures: so many cells in a row that are not ok end it.
    """

    max_s: float | None = None
    until: time | None = None
    failures: int | None = None

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
        given = {"max_s": self.max_s, "until": until, "failures": self.failures}
        return {name: value for name, value in given.items() if value is not None}


AT_THE_END = Ending()
"""Nothing ends it before."""
