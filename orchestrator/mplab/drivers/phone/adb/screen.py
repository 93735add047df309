"""Save screenshots, screen recordings, element trees and the log of a phone.

Android's screenrecord stops after 180 s: `Film` records a cell in several parts.
"""

import shlex
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.drivers.phone.adb.phone import AdbPhone

LONGEST_FILM_S = 180
"""Longest recording of Android's screenrecord, s."""

BIT_RATE = 4_000_000
"""Bit rate of recordings, bit/s."""

_TREE_FILE = "mplab-window.xml"
_STOP_TIMEOUT_S = 15.0


def screenshot(phone: AdbPhone, target: Path) -> None:
    """Save the screen as PNG. Raises DeviceError when the phone gives no picture."""
    result = phone.link.run("screencap -p", timeout_s=30)
    if result.exit_code != 0 or not result.stdout.startswith(b"\x89PNG"):
        errors = result.stderr.decode(errors="replace")
        raise DeviceError(phone.label, "no screenshot", exit_code_found=result.exit_code, stderr=errors)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(result.stdout)


def hierarchy(phone: AdbPhone) -> str:
    """Return the tree of user interface elements on the phone's screen, as XML.

    Raises:
        DeviceError: there is no tree, e.g. because another automation uses the phone's accessibility service.
    """
    path = f"/data/local/tmp/{_TREE_FILE}"
    result = phone.link.run(f"rm -f {path}; uiautomator dump {path} && cat {path}; c=$?; rm -f {path}; exit $c")
    text = result.stdout.decode(errors="replace")
    if result.exit_code != 0 or "<hierarchy" not in text:
        errors = result.stderr.decode(errors="replace") or text
        raise DeviceError(phone.label, "no element tree", exit_code_found=result.exit_code, stderr=errors)
    begin = text.find("<?xml")
    return text[begin if begin >= 0 else text.index("<hierarchy") :]


class ScreenRecording:
    """Screen recording of at most 180 s; it starts when the object is made. `Film` has no limit.

    Args:
        phone: phone to record.
        log: host file for the output of screenrecord.
        bit_rate: bit rate of the video, bit/s.
        limit_s: maximum duration, s.

    Raises:
        DeviceError: screenrecord did not start.
    """

    def __init__(self, phone: AdbPhone, log: Path, *, bit_rate: int = BIT_RATE, limit_s: int = LONGEST_FILM_S) -> None:
        self._phone = phone
        self._log = log
        self._path = phone.outbox(log.with_suffix(".mp4"))
        self.began = time.time()
        """Host time at the start of the recording, s."""
        argv = ["screenrecord", "--bit-rate", str(bit_rate), "--time-limit", str(limit_s), self._path]
        self._process = phone.spawn(argv, log=log)

    @property
    def over(self) -> bool:
        """True when the recording has ended because its maximum duration has passed or the phone was lost."""
        return self._process.poll() is not None

    def save(self, target: Path) -> None:
        """Stop the recording and copy it to `target` (MP4). Raises DeviceError when there is no recording."""
        # screenrecord writes the index of the file only on SIGINT.
        self._phone.shell(["kill", "-INT", str(self._process.pid)], check=False)
        code = self._process.wait(_STOP_TIMEOUT_S)
        if code is None:
            code = self._process.stop()
        if self._phone.shell(["test", "-s", self._path], check=False).exit_code != 0:
            output = self._log.read_text(errors="replace")
            raise DeviceError(self._phone.label, "no screen recording", exit_code_found=code, stderr=output)
        self._phone.pull(self._path, target)
        self._phone.shell(["rm", "-f", self._path], check=False)


class LogCut:
    """Part of the phone's log (logcat) that begins when this object is made.

    Args:
        phone: phone whose log is read.

    Raises:
        DeviceError: the phone does not print its time.
    """

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone
        self._since = phone.link.run("date +%s.%N").stdout.decode().strip()[:-6]
        if not self._since.replace(".", "").isdigit():
            raise DeviceError(phone.label, f"'date +%s.%N' printed {self._since!r}, which is no time")

    def save(self, target: Path) -> None:
        """Save the log from the creation of this object until now. Its times are Unix seconds of the phone's clock.

        Raises:
            DeviceError: the phone gives no log.
        """
        result = self._phone.link.run(f"logcat -d -v epoch -T {shlex.quote(self._since)}", timeout_s=60)
        if result.exit_code != 0:
            errors = result.stderr.decode(errors="replace")
            raise DeviceError(self._phone.label, "no log", exit_code_found=result.exit_code, stderr=errors)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(result.stdout)


_POLL_S = 0.2
_EARLY_S = 1.0


@dataclass(frozen=True)
class FilmFile:
    """One part of a screen recording (`Film`).

    Attributes:
        path: MP4 file on the host.
        began: host time at which screenrecord was started, s; the first picture follows a little later.
    """

    path: Path
    began: float


class Film:
    """Screen recording in parts; it starts when the object is made.

    Between two parts, some tenths of a second are not recorded.

    Args:
        phone: phone to record.
        folder: host folder for ``1.mp4``, ``2.mp4``, ….
        logs: host folder for the output of screenrecord.
        part_s: maximum length of a part, s.

    Raises:
        DeviceError: screenrecord did not start.
    """

    def __init__(self, phone: AdbPhone, folder: Path, logs: Path, *, part_s: int = LONGEST_FILM_S) -> None:
        self._phone = phone
        self._folder = folder
        self._logs = logs
        self._part_s = part_s
        self._problem: DeviceError | None = None
        self._parts = [self._begin(1)]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="film", daemon=True)
        self._thread.start()

    def save(self) -> list[FilmFile]:
        """Stop the recording, copy its parts to the host, and return them in order.

        Raises:
            DeviceError: a part ended early, or could not be started or copied; the parts before it are copied.
        """
        self._end.set()
        self._thread.join()
        saved = []
        for number, part in enumerate(self._parts, 1):
            path = self._folder / f"{number}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            part.save(path)
            saved.append(FilmFile(path, part.began))
        if self._problem is not None:
            raise self._problem
        return saved

    def _begin(self, number: int) -> ScreenRecording:
        return ScreenRecording(self._phone, self._logs / f"film-{number}.log", limit_s=self._part_s)

    def _go_on(self) -> None:
        while not self._end.wait(_POLL_S):
            if not self._parts[-1].over:
                continue
            if time.time() < self._parts[-1].began + self._part_s - _EARLY_S:  # the next part would end early, too
                self._problem = DeviceError(self._phone.label, "its screen recording has ended by itself")
                return
            try:
                self._parts.append(self._begin(len(self._parts) + 1))
            except DeviceError as error:
                self._problem = error
                return
