"""Time limit for code that runs in the main thread."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from mplab.base.errors import StepError

TimeLimit = Callable[[float, str], AbstractContextManager[None]]
"""Function (seconds, step) → context that raises StepError after this time; the message names the step."""


@contextmanager
def alarm(seconds: float, what: str) -> Iterator[None]:
    """Raise StepError in the main thread if the block runs for more than `seconds`; the message begins with `what`.

    Contexts cannot be nested, because they use SIGALRM.
    """

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise StepError(f"{what}: not finished within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
