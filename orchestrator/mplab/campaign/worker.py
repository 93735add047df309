"""Run one ``mplab`` command as a child of a campaign: start it, watch it, end it in an orderly way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from mplab.base.errors import HAS_PLACE
from mplab.base.kernel import die_with_parent

_PATIENCE_S = 180.0
"""Time, in seconds, that a command has after each signal before the next one."""
MPLAB = (sys.executable, "-m", "mplab")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Worker:
    """A running command. If this process dies, for any reason, the command receives SIGTERM.

    Args:
        arguments: arguments of ``mplab``.
        log: file that receives its output.
        program: command line that precedes the arguments.
    """

    def __init__(self, arguments: Sequence[str], log: Path, program: Sequence[str] = MPLAB) -> None:
        self.log = log
        self._stops: list[float] = []
        parent = os.getpid()
        with log.open("ab") as file:
            # Its own process group: Ctrl-C reaches it only through this process, once.
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
        """Return the id of its process."""
        return self._process.pid

    @property
    def stopping(self) -> bool:
        """Return whether the command was signalled to end."""
        return bool(self._stops)

    def poll(self) -> int | None:
        """Return the command's exit code, negative after a signal; None while it runs.

        If it still runs `_PATIENCE_S` after a signal to end, send the next, stronger signal.
        """
        code = self._process.poll()
        if code is None and self._stops and time.monotonic() - self._stops[-1] > _PATIENCE_S:
            self._signal()
        return code

    def stop(self) -> None:
        """Signal the command to end. While it does not end, `poll` sends stronger signals, SIGKILL last."""
        if not self._stops:
            self._signal()

    def cpu_s(self) -> float:
        """Return the CPU time of the command and its children, seconds."""
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
        """Return the command's last error message in one line; "" if it logged none."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [
            line.removeprefix("mplab:").strip() for line in lines if line.startswith("mplab:") or HAS_PLACE.match(line)
        ]
        return errors[-1] if errors else ""

    def _signal(self) -> None:
        number = _SIGNALS[min(len(self._stops), len(_SIGNALS) - 1)]
        self._stops.append(time.monotonic())
        self._process.send_signal(number)
