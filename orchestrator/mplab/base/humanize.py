"""Format numbers, durations, times and sizes for people.

Exports `counted`, `duration`, `clock_time`, `space`.
"""

from datetime import datetime

_STEPS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def counted(count: int, word: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: ``1 cell``, ``60 cells``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def duration(seconds: float) -> str:
    """Format a duration in seconds: ``2 min 05 s``, ``48 s``, ``1 h 10 min``."""
    rounded = round(seconds)
    hours, rest = divmod(rounded, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {left:02} s" if minutes else f"{left} s"


def clock_time(t: float, now: float | None = None) -> str:
    """Format the time `t`, Unix seconds, in this host's time zone: ``06:00``.

    If `now` is missing or on another day, the date is included: ``Tue 24 Nov 06:00``. A time that has no date, because
    a damaged file contains it, is formatted as ``unknown time``.
    """
    try:
        at = datetime.fromtimestamp(t).astimezone()
    except (ValueError, OverflowError, OSError):
        return "unknown time"
    same_day = now is not None and datetime.fromtimestamp(now).astimezone().date() == at.date()
    return at.strftime("%H:%M" if same_day else "%a %d %b %H:%M")


def space(size_bytes: int) -> str:
    """Format a size in bytes: ``120 GB``, ``1.4 GB``, ``512 B``."""
    for step, unit in _STEPS:
        if size_bytes >= step:
            number = size_bytes / step
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    return f"{size_bytes} B"
