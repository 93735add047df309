"""Waiting for the lab's own programs: each prints ``{"event": "ready"}`` when it can be used."""

import json
import time
from pathlib import Path

from orchestrator.errors import DeviceError
from orchestrator.lab.nodes import NodeProcess

_POLL_S = 0.01


def wait_ready(process: NodeProcess, log: Path, *, name: str, timeout_s: float = 10.0) -> dict[str, object]:
    """Wait for the ready line in `log` and return it.

    Raises:
        DeviceError: the program ended, or did not become ready in time; the message has its last words.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        ended = process.poll() is not None
        for line in log.read_text(errors="replace").splitlines():
            if record := _event(line, "ready"):
                return record
        if ended or time.monotonic() > deadline:
            what = "ended before it was ready" if ended else f"was not ready within {timeout_s:g} s"
            raise DeviceError(name, what, exit_code_found=process.poll(), stderr=log.read_text(errors="replace"))
        time.sleep(_POLL_S)


def _event(line: str, name: str) -> dict[str, object] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("event") == name else None
