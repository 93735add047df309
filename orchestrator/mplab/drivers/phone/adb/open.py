"""From a phone of a lab file to one that can be used."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from mplab.base.undo import UndoJournal
from mplab.drivers.phone.adb.phone import AdbPhone, AdbSettings
from mplab.drivers.phone.adb.server import AdbServer, default_home, user_keys
from mplab.drivers.phone.settings import AdbPhoneFile, AndroidPhoneFile


def settings_of(file: AndroidPhoneFile) -> AdbSettings:
    """Return what a lab file says of how a phone is used; serial and interfaces only a real phone has there."""
    root = file.root or "auto"
    if not isinstance(file, AdbPhoneFile):
        return AdbSettings(root=root)
    named = file.interfaces.model_dump(exclude_none=True) if file.interfaces is not None else {}
    return AdbSettings(serial=file.serial or "", interfaces=named, root=root)


@contextlib.contextmanager
def adb_server(home: Path | None = None) -> Iterator[AdbServer]:
    """A server of one's own that shows phones the key of the user's adb, too.

    Args:
        home: where its own key is; default: `default_home`.

    Raises:
        LabNotReadyError, DeviceError: it cannot be started.
    """
    with AdbServer(home or default_home(), keys=user_keys()) as server:
        yield server


@contextlib.contextmanager
def open_phone(
    name: str, file: AdbPhoneFile, *, home: Path | None = None, journal: UndoJournal | None = None
) -> Iterator[AdbPhone]:
    """A phone with a server of its own, for as long as the context.

    Args:
        name: in the lab.
        file: what the lab file says of it.
        home: see `adb_server`.
        journal: takes the undo of its changes, for when this process is killed.

    Raises:
        LabNotReadyError, DeviceError: it cannot be used; the message says why.
    """
    with adb_server(home) as server, AdbPhone(name, server, settings_of(file), journal=journal) as phone:
        yield phone
