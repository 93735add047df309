"""Wait for conditions that no event reports, by checking them at intervals."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mplab.base.errors import DeviceError
from mplab.base.machine import MachineProcess

T = TypeVar("T")

_POLL_S = 0.01


def wait_until(condition: Callable[[], T], timeout_s: float, *, interval_s: float) -> T:
    """Call `condition` until its result is true or the time is over; return its last result.

    If the last result is false, the caller must raise an error, because only the caller can describe the state of the
    condition. `condition` may raise errors to end the wait.

    Args:
        condition: function that is called at least once. The time is checked only between two calls.
        timeout_s: maximum waiting time, seconds.
        interval_s: pause between two calls, seconds.
    """
    deadline = time.monotonic() + timeout_s
    while not (result := condition()) and time.monotonic() <= deadline:
        time.sleep(interval_s)
    return result


def wait_ready(
    process: MachineProcess, log: Path, *, name: str, timeout_s: float = 10.0, since: int = 0
) -> dict[str, object]:
    """Wait for the line ``{"event": "ready"}`` that mplab's own programs print; return its JSON object.

    Args:
        process: process that writes the log.
        log: file with the process's output.
        name: name of the process in messages.
        timeout_s: maximum waiting time, seconds.
        since: size of the log in bytes before the process was started; earlier output belongs to another process.

    Raises:
        DeviceError: the process ended, or was not ready in time; the message includes the end of its output.
    """
    ended, said = False, ""

    def look() -> dict[str, object] | None:
        nonlocal ended, said
        ended = process.poll() is not None  # before the log is read: the last line of the log counts
        said = log.read_bytes()[since:].decode(errors="replace")
        return next(filter(None, map(_ready, said.splitlines())), None)

    record = wait_until(lambda: look() or ended, timeout_s, interval_s=_POLL_S)
    if isinstance(record, dict):
        return record
    problem = "ended before it was ready" if ended else f"was not ready within {timeout_s:g} s"
    raise DeviceError(name, problem, exit_code_found=process.poll(), stderr=said)


def _ready(line: str) -> dict[str, object] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("event") == "ready" else None
