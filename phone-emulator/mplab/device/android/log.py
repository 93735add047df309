"""Store the phone's log."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass

_MOST_LINES = 20_000


@dataclass(frozen=True)
class LogLine:
    """A line of the log.

    Attributes:
        number: position since the device was made, from 1.
        time: Unix time, seconds.
        level: ``V``, ``D``, ``I``, ``W``, ``E``, ``F``.
    """

    number: int
    time: float
    pid: int
    level: str
    tag: str
    text: str


class LogBuffer:
    """A buffer of the newest lines; readers can wait for more."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._count = 0
        self._more = asyncio.Event()

    def add(self, tag: str, text: str, *, level: str = "I", pid: int = 1337) -> None:
        """Append lines."""
        for part in text.splitlines() or [""]:
            self._count += 1
            self._lines.append(LogLine(self._count, time.time(), pid, level, tag, part))
        self._more.set()

    def clear(self) -> None:
        """Remove all lines."""
        self._lines.clear()

    def lines(self, after: int = 0) -> list[LogLine]:
        """Return the lines after line number `after`."""
        return [line for line in self._lines if line.number > after]

    @property
    def last(self) -> int:
        """Return the number of the last line."""
        return self._count

    async def wait(self, after: int) -> None:
        """Wait until a line after number `after` has been written."""
        while self._count <= after:
            self._more.clear()
            await self._more.wait()
