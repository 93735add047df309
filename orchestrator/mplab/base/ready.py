"""Waiting for the lab's own programs: each prints ``{"event": "ready"}`` when it can be used."""

import json
import time
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.base.machine import MachineProcess

_POLL_S = 0.01


def wait_ready(
    process: MachineProcess, log: Path, *, name: str, timeout_s: float = 10.0, since: int = 0
) -> dict[str, object]:
    """Wait for the ready line in `log` and return it.

    Args:
        process: what writes the log.
        log: its output.
        name: what errors call it.
        timeout_s: how long to wait.
        since: the size of the log, bytes, before the program was started: what is before is of another one.

    Raises:
        DeviceError: the program ended, or did not become ready in time; the message has its last words.
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
