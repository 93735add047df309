"""Phones that are not to be used until somebody has looked at them: a file for each, with reason and time."""

import contextlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from mplab.base.errors import LabNotReadyError
from mplab.base.files import replace
from mplab.base.lock import private_directory


@dataclass(frozen=True)
class Quarantined:
    """One phone."""

    serial: str
    reason: str
    since: str
    """UTC, ISO 8601."""

    def refusal(self, label: str) -> LabNotReadyError:
        """What says so to whoever wants the phone that messages call `label`."""
        return LabNotReadyError(
            f"{label}: in quarantine since {self.since}: {self.reason}. Look at it, then run "
            f"'mplab phone release {self.serial}'"
        )


class Quarantine:
    """The phones in a folder.

    Args:
        folder: made when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, serial: str, reason: str) -> Quarantined:
        """Keep a phone from being used; one that is there already keeps its first reason. Raises MplabError."""
        if (old := self.find(serial)) is not None:
            return old
        private_directory(self._folder.parent)
        private_directory(self._folder)
        since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        found = Quarantined(serial, reason, since)
        replace(self._path(serial), (json.dumps(asdict(found), indent=2) + "\n").encode())
        return found

    def find(self, serial: str) -> Quarantined | None:
        """What keeps a phone from being used, or None."""
        path = self._path(serial)
        if not path.exists():
            return None
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Quarantined(**json.loads(path.read_text(encoding="utf-8")))
        return Quarantined(serial, f"{path} cannot be read", "")

    def all(self) -> list[Quarantined]:
        """Every phone that is in it."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                found.append(Quarantined(**json.loads(path.read_text(encoding="utf-8"))))
        return found

    def release(self, serial: str) -> bool:
        """Let a phone be used again; False when nothing kept it."""
        there = self._path(serial).exists()
        self._path(serial).unlink(missing_ok=True)
        return there

    def check(self, serial: str, label: str) -> None:
        """Raises LabNotReadyError when a phone is in it."""
        if (found := self.find(serial)) is not None:
            raise found.refusal(label)

    def _path(self, serial: str) -> Path:
        return self._folder / f"{quote(serial, safe='')}.json"
