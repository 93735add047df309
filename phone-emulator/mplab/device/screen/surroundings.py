"""Define the environment of a scripted app: services of the device, the app's programs, and its stored data."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mplab.device.screen.layout import Item

_LINE_END = re.compile(rb"[\r\n]+")
_READ_BYTES = 65_536
_STOP_S = 2.0


class Work:
    """A program that an app has started.

    The program writes its output to an unnamed file, so it never blocks, even if no one reads the output.

    Args:
        argv: command line; the word ``python`` is this interpreter.
        environment: environment variables in addition to those of this process.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._read = 0
        self._rest = b""
        self.last_line = ""
        command = [sys.executable if word == "python" else word for word in argv]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError:
            self._output.close()
            raise

    def poll(self) -> int | None:
        """Return the program's exit code, or None while it runs."""
        return self._process.poll()

    def lines(self) -> list[str]:
        """Return the lines of output that were completed since the last call.

        CR also ends a line, because curl's progress bar uses it.
        """
        if self._output.closed:
            return []
        ended = self.poll() is not None
        lines: list[str] = []
        while new := os.pread(self._output.fileno(), _READ_BYTES, self._read):
            self._read += len(new)
            *complete, self._rest = _LINE_END.split(self._rest + new)
            lines += [line.decode(errors="replace") for line in complete]
        if ended and self._rest:
            lines.append(self._rest.decode(errors="replace"))
            self._rest = b""
        shown = [line.strip() for line in lines if line.strip()]
        if shown:
            self.last_line = shown[-1]
        return shown

    def stop(self) -> None:
        """End the program and its children by SIGTERM; after 2 s by SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
                break
        self._output.close()


@dataclass(frozen=True)
class Surroundings:
    """Services of the device for scripted apps.

    Attributes:
        start: function that starts a program in the device's network.
        folder: function that returns the host's path of a folder on the device; None: apps cannot access it.
        clock: monotonic clock, s.
        variables: name of an app's variable → value that replaces its initial one.
        proxy: function that returns the HTTP proxy in Android's settings, ``HOST:PORT``; "": no proxy.
    """

    start: Callable[[tuple[str, ...]], Work]
    folder: Callable[[str], Path | None]
    clock: Callable[[], float]
    variables: Mapping[str, str] = field(default_factory=dict)
    proxy: Callable[[], str] = str


@dataclass
class Stored:
    """Data of an app that survives the app's end, until the data is cleared.

    Attributes:
        starts: number of starts of the app.
        dialogs: names of the shown dialogs that may appear only once.
        variables: name → value of the variables that survive the app.
        lists: name → entries of the lists that survive the app.
    """

    starts: int = 0
    dialogs: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[Item]] = field(default_factory=dict)
