"""Store the quarantined phones, which must not be used until a person has checked them, with reason and time."""

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
    """The quarantine entry of one phone: reason and time."""

    serial: str
    reason: str
    since: str
    """Time of the entry, UTC, ISO 8601."""

    def refusal(self, label: str) -> LabNotReadyError:
        """Return the error for an attempt to use the quarantined phone; `label` is its name in messages."""
        return LabNotReadyError(
            f"{label}: in quarantine since {self.since}: {self.reason}. Check the phone, then run "
            f"'mplab phone release {self.serial}'"
        )


class Quarantine:
    """Phones in quarantine, kept in a folder.

    Args:
        folder: folder of the files; made when the first phone is put into quarantine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, serial: str, reason: str) -> Quarantined:
        """Put a phone into quarantine. If it is already in quarantine, keep and return the existing entry.

        Raises:
            MplabError: the folder cannot be made private, or the file cannot be written.
        """
        if (old := self.find(serial)) is not None:
            return old
        private_directory(self._folder.parent)
        private_directory(self._folder)
        since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        entry = Quarantined(serial, reason, since)
        replace(self._path(serial), (json.dumps(asdict(entry), indent=2) + "\n").encode())
        return entry

    def find(self, serial: str) -> Quarantined | None:
        """Return the phone's entry; None if it is not in quarantine. A damaged file also counts as an entry."""
        path = self._path(serial)
        if not path.exists():
            return None
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Quarantined(**json.loads(path.read_text(encoding="utf-8")))
        return Quarantined(serial, f"{path} cannot be read", "")

    def all(self) -> list[Quarantined]:
        """Return the entries of all phones in quarantine; damaged files are skipped."""
        entries = []
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                entries.append(Quarantined(**json.loads(path.read_text(encoding="utf-8"))))
        return entries

    def release(self, serial: str) -> bool:
        """Allow the use of a phone again; return False when it was not in quarantine."""
        existed = self._path(serial).exists()
        self._path(serial).unlink(missing_ok=True)
        return existed

    def check(self, serial: str, label: str) -> None:
        """Raise LabNotReadyError when a phone is in quarantine."""
        if (entry := self.find(serial)) is not None:
            raise entry.refusal(label)

    def _path(self, serial: str) -> Path:
        return self._folder / f"{quote(serial, safe='')}.json"
