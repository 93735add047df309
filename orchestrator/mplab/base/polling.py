"""Wait for mplab's own programs, which print ``{"event": "ready"}`` when they can be used."""

import json
import time
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.base.machine import MachineProcess

_POLL_S = 0.01


def wait_ready(
    process: MachineProcess, log: Path, *, name: str, timeout_s: float = 10.0, since: int = 0
) -> dict[str, object]:
    """Wait for the ready line in `log` and return its record.

    Args:
        process: process that writes the log.
        log: file with the process's output.
        name: name of the process in messages.
        timeout_s: maximum waiting time, seconds.
        since: size of the log in bytes before the process was started; earlier output belongs to another process.

    Raises:
        DeviceError: the process ended, or was not ready in time; the message includes the end of its output.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        ended = process.poll() is not None
        said = log.read_bytes()[since:].decode(errors="replace")
        for line in said.splitlines():
            if record := _event(line, "ready"):
                return record
        if ended or time.monotonic() > deadline:
            what = "ended before it was ready" if ended else f"was not ready within {timeout_s:g} s"
            raise DeviceError(name, what, exit_code_found=process.poll(), stderr=said)
        time.sleep(_POLL_S)


def _event(line: str, name: str) -> dict[str, object] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("event") == name else None
