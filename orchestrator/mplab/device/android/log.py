"""The phone's log."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass

_MOST_LINES = 20_000


@dataclass(frozen=True)
class LogLine:
    """One line.

    Attributes:
        number: counts from 1 since the device was made.
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
    """The youngest lines; readers may wait for more."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._count = 0
        self._more = asyncio.Event()

    def add(self, tag: str, text: str, *, level: str = "I", pid: int = 1337) -> None:
        """Write lines."""
        for part in text.splitlines() or [""]:
            self._count += 1
            self._lines.append(LogLine(self._count, time.time(), pid, level, tag, part))
        self._more.set()

    def clear(self) -> None:
        """Forget them all."""
        self._lines.clear()

    def lines(self, after: int = 0) -> list[LogLine]:
        """Those that came after line number `after`."""
        return [line for line in self._lines if line.number > after]

    @property
    def last(self) -> int:
        """Number of the last line that has been written."""
        return self._count

    async def wait(self, after: int) -> None:
        """Until a line after number `after` has been written."""
        while self._count <= after:
            self._more.clear()
            await self._more.wait()
