"""Run a program on the phone and write its output to a host file."""

import contextlib
import shlex
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from mplab.base.errors import DeviceError, last_words
from mplab.drivers.phone.adb import wire
from mplab.drivers.phone.adb.link import FAILURES, Link

LOST = 255
"""Exit code if the phone was lost before the program ended; adb uses the same code."""

_START_TIMEOUT_S = 20.0
_KILL_GRACE_S = 5.0
_MARK = b"mplab-pid "

_HELD = """exec 3<&0
{program} </dev/null 3<&- &
p=$!
echo "mplab-pid $p"
( read -r x; kill -TERM $p; i=0; while [ $i -lt 20 ] && kill -0 $p; do sleep 0.1; i=$((i+1)); done; kill -KILL $p ) \\
  <&3 3<&- >/dev/null 2>&1 &
w=$!
exec 3<&-
wait $p
c=$?
kill -KILL $w
exit $c"""
"""Shell script that runs the program and a watcher.

When the connection ends, adbd sends no signal to programs without a terminal. Standard input, however, stays open only
as long as the connection exists. Therefore the watcher reads standard input and kills the program when it ends. It
reads by a built-in command: another program would survive the watcher, and adbd reports no exit code while a process
has the program's standard input, which is the same socket as its standard output."""


class AdbProcess:
    """`MachineProcess` for a program on the phone. If the connection to the phone is lost, the program ends.

    Args:
        link: connection to the phone.
        argv: the program and its arguments.
        log: host file to which the output is appended.
        as_root: returns its argument, a command line, changed so that it runs as root.
        kill: sends a signal to a process on the phone: ``kill("TERM", pid)``.

    Raises:
        DeviceError: the program could not be started.
    """

    def __init__(
        self,
        link: Link,
        argv: Sequence[str],
        *,
        log: Path,
        as_root: Callable[[str], str],
        kill: Callable[[str, int], object],
    ) -> None:
        self._link = link
        self._argv = tuple(argv)
        self._kill = kill
        self._log = log
        self._code: int | None = None
        self._pid = 0
        self._started = threading.Event()
        self._ended = threading.Event()
        self._begun = bytearray()
        log.parent.mkdir(parents=True, exist_ok=True)
        command = as_root(_HELD.format(program=shlex.join(argv)))
        try:
            self._stream = wire.ShellStream(link.server.client, link.serial, command, timeout_s=_START_TIMEOUT_S)
        except FAILURES as error:
            text = f"a program could not be started: {error}; {link.whereabouts()}"
            raise DeviceError(link.label, text, command=self._argv) from error
        self._reader = threading.Thread(target=self._read, name=f"adb {argv[0]}", daemon=True)
        self._reader.start()
        if not self._started.wait(_START_TIMEOUT_S) or not self._pid:
            self._stream.close()
            raise DeviceError(
                link.label, "a program could not be started", command=self._argv, exit_code_found=self._code,
                stderr=last_words(log),
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Process id of the program on the phone."""
        return self._pid

    def poll(self) -> int | None:
        """Return the program's exit code, or None while it runs; 255 when the phone was lost."""
        return self._code

    def wait(self, timeout_s: float) -> int | None:
        """Wait at most `timeout_s` for the program to end; return its exit code, or None when it still runs."""
        self._ended.wait(timeout_s)
        return self._code

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM to the program, wait up to `timeout_s`, then send SIGKILL; return the exit code."""
        for name, grace_s in (("TERM", timeout_s), ("KILL", _KILL_GRACE_S)):
            if self._code is not None:
                break
            with contextlib.suppress(DeviceError):
                self._kill(name, self._pid)
            self.wait(grace_s)
        self._stream.close()
        self._reader.join(_KILL_GRACE_S)
        return LOST if self._code is None else self._code

    def _read(self) -> None:
        code = LOST
        try:
            with self._log.open("ab", buffering=0) as log:
                code = self._stream.read(lambda _kind, data: self._take(data, log.write))
        except wire.LostError:
            pass
        finally:
            self._code = code
            self._stream.close()
            self._started.set()
            self._ended.set()

    def _take(self, data: bytes, write: Callable[[bytes], object]) -> None:
        if self._pid:
            write(data)
            return
        # The program's output can arrive before the line with its pid, or directly after it.
        self._begun += data
        before, mark, rest = self._begun.partition(_MARK)
        number, end, after = rest.partition(b"\n")
        if not mark or not end:
            return
        self._pid = int(number)
        write(bytes(before + after))
        self._started.set()
