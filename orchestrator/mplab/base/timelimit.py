"""A limit on the time of what the main thread does."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from mplab.base.errors import StepError

TimeLimit = Callable[[float, str], AbstractContextManager[None]]
"""Makes a context that raises StepError after so many seconds; the text names what took too long."""


@contextmanager
def alarm(seconds: float, what: str) -> Iterator[None]:
    """Raise StepError in the main thread after `seconds`; uses SIGALRM, so contexts cannot be nested."""

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise StepError(f"{what}: not finished within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
