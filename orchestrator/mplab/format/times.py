"""Read times of records, which programs of other users may have written: only dates of a sensible range are times."""

from datetime import UTC, datetime

END_OF_TIME_S = 1e11
"""Limit of times, Unix seconds: sums of later times cannot be converted to a date."""


def sensible(moment: datetime) -> datetime:
    """Return a time with a time zone unchanged. Raises ValueError if it is before 1970 or after `END_OF_TIME_S`."""
    if not 0 <= moment.timestamp() < END_OF_TIME_S:
        raise ValueError("not a time")
    return moment


def time_of(text: str) -> datetime | None:
    """Return a time of ISO 8601 in UTC, which is also its time zone if it names none; None: it is not `sensible`."""
    try:
        moment = datetime.fromisoformat(text)
        return sensible(moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None
