"""Record a phone's screen during a cell, in several parts: Android's screenrecord stops after 180 s."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.adb.screen import LONGEST_FILM_S, ScreenRecording

_POLL_S = 0.2
_EARLY_S = 1.0


@dataclass(frozen=True)
class FilmFile:
    """One file of a film.

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
        """Stop the recording and copy its parts to the host.

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
