"""One ``mplab`` command as a child of a campaign: begun, watched, and ended in an orderly way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from mplab.base.enter import die_with_parent
from mplab.base.errors import HAS_PLACE

_PATIENCE_S = 180.0
"""So long a command has after each signal before the next one."""
MPLAB = (sys.executable, "-m", "mplab")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Worker:
    """A command that goes on. When this process dies, however it dies, the command is told to end.

    Args:
        arguments: of ``mplab``.
        log: file that gets what it says.
        program: what the arguments are given to.
    """

    def __init__(self, arguments: Sequence[str], log: Path, program: Sequence[str] = MPLAB) -> None:
        self.log = log
        self._stops: list[float] = []
        parent = os.getpid()
        with log.open("ab") as file:
            # A process group of its own: Ctrl-C comes to it from here, once.
            self._process = subprocess.Popen(
                [*program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                process_group=0,
                preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),  # noqa: PLW1509 - prctl only
            )

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    @property
    def stopping(self) -> bool:
        """It has been told to end."""
        return bool(self._stops)

    def poll(self) -> int | None:
        """Its exit code, negative after a signal; None while it goes on."""
        code = self._process.poll()
        if code is None and self._stops and time.monotonic() - self._stops[-1] > _PATIENCE_S:
            self._signal()
        return code

    def stop(self) -> None:
        """Tell it to end; as long as it does not, `poll` tells it again, and at last kills it."""
        if not self._stops:
            self._signal()

    def cpu_s(self) -> float:
        """Processor time that it and its children have had, seconds."""
        total = 0.0
        try:
            process = psutil.Process(self.pid)
            family = [process, *process.children(recursive=True)]
        except psutil.Error:
            return total
        for member in family:
            try:
                times = member.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def said(self) -> str:
        """What its error was, in one line; "" when it said none."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [
            line.removeprefix("mplab:").strip() for line in lines if line.startswith("mplab:") or HAS_PLACE.match(line)
        ]
        return errors[-1] if errors else ""

    def _signal(self) -> None:
        number = _SIGNALS[min(len(self._stops), len(_SIGNALS) - 1)]
        self._stops.append(time.monotonic())
        self._process.send_signal(number)
